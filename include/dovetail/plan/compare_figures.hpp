// SPDX-License-Identifier: MIT
// What is compared of layouts: the workload that all of them are asked at, and the figures of each, by device and
// between devices. Plain values: plan/compare.hpp fills them from the prediction functions, tables, JSON and pictures
// read them.
#pragma once
#include <dovetail/plan/compare_holding.hpp>
#include <dovetail/plan/traffic.hpp>

namespace dovetail {

inline constexpr i64 max_compared_devices = 1024;  ///< of one layout: figures are listed by device

/// What layouts are compared at: the same requests for each.
struct Workload {
  i64 sequences = 1;   ///< requests that are served together, at least 1
  i64 context = 1024;  ///< tokens a request that the caches hold, at least 1; the last of them is what decode computes
  i64 tokens = 512;    ///< tokens a request that a prefill computes, at least 1
  StorageBytes bytes = f32_storage;

  std::vector<SequenceRun> prefill() const { return each({0, tokens, 1}); }
  std::vector<SequenceRun> decode() const { return each({context - 1, 1, 1}); }
  std::vector<SequenceRun> cached() const { return each({context, 0, 0}); }

 private:
  std::vector<SequenceRun> each(SequenceRun const& one) const {
    return std::vector<SequenceRun>(static_cast<std::size_t>(sequences), one);
  }
};

/// What a device needs and receives in one pass.
struct PassFigures {
  i64 arena = 0;  ///< bytes for activations
  i64 flops = 0;
  TrafficReport received{};
};

/// What one device stores, needs and waits for.
struct DeviceFigures {
  i64 rank = 0;
  i64 replica = 0, replicas = 1;  ///< its number among the devices of its stage that work on other requests
  i64 pipeline = 0;               ///< copy of the whole pipeline that it belongs to
  i32 stage = 0;
  Range sequences{};           ///< requests that it works on
  i64 weights = 0, cache = 0;  ///< bytes that it stores
  PassFigures prefill{}, decode{};
  std::vector<i64> senders{};    ///< devices of other stages that it waits for
  std::vector<i64> peers{};      ///< devices that it exchanges with, in its stage
  std::vector<Holding> holds{};  ///< by part of the model
};

/// What one device sends another, between stages.
struct Link {
  i64 from = 0, to = 0;
  Cost prefill{}, decode{};
};
/// Devices along one axis that exchange, and how many times in one pass.
struct AxisExchange {
  char const* axis = "";
  std::vector<i64> devices{};
  i64 times = 0;
};

/// One layout. Names of axes are the plan's: it must live as long as this.
struct LayoutFigures {
  std::string title{};
  std::string refusal{};  ///< a sentence where the layout cannot be compared; then there is nothing else
  i64 parameters = 0, replicas = 0;
  i32 stages = 0, result_stage = 0;
  bool decodes = true;  ///< false for an encoder: without a cache there is no decode step
  std::vector<ModelPart> parts{};
  std::vector<DeviceFigures> devices{};
  std::vector<Link> links{};
  std::vector<AxisExchange> exchanges{};
  TrafficReport prefill{}, decode{};  ///< of all devices together

  bool ok() const { return refusal.empty(); }
  /// The pass that a picture shows: a decode step where there is one.
  PassFigures const& shown(DeviceFigures const& d) const { return decodes ? d.decode : d.prefill; }
  Cost shown(Link const& l) const { return decodes ? l.decode : l.prefill; }
};

namespace comparing {

inline void add_once(std::vector<i64>& list, i64 rank) {
  for (i64 known : list)
    if (known == rank) return;
  list.push_back(rank);
}

}  // namespace comparing

/// A layout that could not even be planned: its sentence stands where figures would.
inline LayoutFigures refused_figures(std::string const& title, std::string const& refusal) {
  LayoutFigures f;
  f.title = title, f.refusal = refusal.empty() ? "it cannot be planned" : refusal;
  return f;
}

}  // namespace dovetail
