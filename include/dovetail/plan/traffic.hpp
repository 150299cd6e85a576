// SPDX-License-Identifier: MIT
// Predicted communication: what each rank receives in one pass of a plan, in messages and bytes, by step, by kind and
// by axis. It is exactly what the executor does; tests compare it with what communicators count. A send is counted
// where it arrives, and a step in a loop as often as it runs.
#pragma once
#include <dovetail/mesh/cost.hpp>
#include <dovetail/mesh/overlap.hpp>
#include <dovetail/plan/peers.hpp>
#include <dovetail/plan/storage_bytes.hpp>

namespace dovetail {

/// Elements that `giver` has and `taker` comes to need in an exchange of `before` into `after` along `axis`.
constexpr i64 exchanged_elements(Tensor const& before, Tensor const& after, Mesh const& mesh, i32 axis,
                                 Coordinate const& giver, Coordinate const& taker, RunShape run) {
  return elements_in(before.dims, run, [&](Extent const& e, i64 leaders) {
    return intersect(brought_part(e, leaders, before.places, mesh, giver, axis),
                     held_part(e, leaders, after.places, mesh, taker));
  });
}
/// Elements that two ranks both hold of a value.
constexpr i64 shared_elements(Tensor const& t, Mesh const& mesh, Coordinate const& a, Coordinate const& b,
                              RunShape run) {
  return elements_in(t.dims, run, [&](Extent const& e, i64 leaders) {
    return intersect(held_part(e, leaders, t.places, mesh, a), held_part(e, leaders, t.places, mesh, b));
  });
}
/// Elements that a rank brings to an exchange along `axis`.
constexpr i64 brought_elements(Tensor const& t, Mesh const& mesh, i32 axis, Coordinate const& at, RunShape run) {
  return elements_in(t.dims, run,
                     [&](Extent const& e, i64 leaders) { return brought_part(e, leaders, t.places, mesh, at, axis); });
}

/// What `rank` receives in one execution of a step.
constexpr Cost step_traffic(Plan const& plan, i32 step, i64 rank, RunShape run, StorageBytes const& bytes) {
  Step const& s = plan.steps[step];
  RankPlace const place = plan.place_of(rank);
  if (place.stage != s.stage || (!communicates(s.kind) && s.kind != StepKind::send)) return {};
  Tensor const &before = plan.values[s.operands[0].value], &after = plan.values[s.results[0]];
  Mesh const& mesh = plan.mesh(s.stage);
  i64 const size = bytes[before.storage];
  auto const local = [&](Coordinate const& at) { return local_elements(after.dims, after.places, mesh, at, run); };
  if (s.kind == StepKind::send) return point_to_point_cost(local(place.at), size);
  i32 const ranks = mesh[s.axis]->size, me = place.at[s.axis];
  auto const member = [&](int i) {
    Coordinate at = place.at;
    at[s.axis] = i;
    return at;
  };
  switch (s.kind) {
    case StepKind::all_reduce: return all_reduce_cost(local(place.at), size, ranks, me);
    case StepKind::reduce_scatter: return reduce_scatter_cost([&](int i) { return local(member(i)); }, size, ranks, me);
    case StepKind::all_gather:
      return all_gather_cost([&](int i) { return brought_elements(before, mesh, s.axis, member(i), run); }, size, ranks,
                             me);
    case StepKind::all_to_all:
      return all_to_all_cost(
          [&](int i) { return exchanged_elements(before, after, mesh, s.axis, member(i), place.at, run); }, size, ranks,
          me);
    default:  // share_reduce
      return all_to_all_cost([&](int i) { return shared_elements(before, mesh, member(i), place.at, run); }, size,
                             ranks, me);
  }
}

inline constexpr int step_kinds = static_cast<int>(StepKind::tie) + 1;  ///< how many StepKind has
inline constexpr int max_reported_axes = 32;                            ///< names of axes in one plan

/// What crosses one axis, by its name.
struct AxisTraffic {
  char const* axis = "";
  Cost cost{};
};

/// Traffic of one pass. Sends are of no axis: `total` is the sum over kinds, and the sum over axes plus the sends.
struct TrafficReport {
  Cost by_kind[step_kinds]{};
  Vec<AxisTraffic, max_reported_axes> by_axis{};
  Cost total{};

  constexpr Cost of(StepKind kind) const { return by_kind[static_cast<int>(kind)]; }
  constexpr Cost along(char const* axis) const {
    for (auto const& a : by_axis)
      if (same_text(a.axis, axis)) return a.cost;
    return {};
  }
  constexpr void add(Plan const& plan, Step const& s, Cost cost) {
    by_kind[static_cast<int>(s.kind)] += cost;
    total += cost;
    if (s.axis < 0) return;
    char const* const axis = plan.mesh(s.stage)[s.axis]->name;
    for (auto& a : by_axis)
      if (same_text(a.axis, axis)) {
        a.cost += cost;
        return;
      }
    by_axis.push(AxisTraffic{axis, cost});
  }
};

/// Adds what one rank receives in one pass.
constexpr void add_traffic(TrafficReport& report, Plan const& plan, i64 rank, RunShape run, StorageBytes const& bytes) {
  i32 const stage = plan.place_of(rank).stage;
  for (i32 i = 0; i < plan.steps.size(); ++i) {
    Step const& s = plan.steps[i];
    if (s.stage != stage || (!communicates(s.kind) && s.kind != StepKind::send)) continue;
    Cost const once = step_traffic(plan, i, rank, run, bytes);
    i64 const times = plan.executions(s.loop);
    report.add(plan, s, Cost{once.messages * times, once.bytes * times});
  }
}

/// What one rank receives in one pass.
constexpr TrafficReport traffic(Plan const& plan, i64 rank, RunShape run, StorageBytes const& bytes) {
  TrafficReport report;
  add_traffic(report, plan, rank, run, bytes);
  return report;
}

/// What all ranks together receive in one pass.
constexpr TrafficReport total_traffic(Plan const& plan, RunShape run, StorageBytes const& bytes) {
  TrafficReport report;
  for (i64 rank = 0; rank < plan.ranks(); ++rank) add_traffic(report, plan, rank, run, bytes);
  return report;
}

/// What a rank receives along the axis of this name.
constexpr Cost traffic_by_axis(Plan const& plan, char const* axis, i64 rank, RunShape run, StorageBytes const& bytes) {
  return traffic(plan, rank, run, bytes).along(axis);
}

}  // namespace dovetail
