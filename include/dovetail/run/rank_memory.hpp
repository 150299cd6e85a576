// SPDX-License-Identifier: MIT
// Where everything that a rank holds lies: values in one arena that grows when a run outgrows it, weights and caches
// for each iteration of the loops around them, all made at construction. Which part is held: run/rank_views.hpp.
#pragma once
#include <dovetail/plan/arena.hpp>
#include <dovetail/run/rank_views.hpp>
#include <dovetail/run/weight_store.hpp>
#include <optional>

namespace dovetail {

/// What one rank holds: weights, caches, and the arena of its values.
template <Device D>
class RankMemory {
 public:
  /// @param plan, device, views must live as long as this
  /// @throws WeightError where a weight cannot be had
  RankMemory(Plan const& plan, i64 rank, D& device, RankViews const& views,
             WeightSource<typename D::Scalar> const& source, ExecutorOptions options)
      : plan_(plan),
        device_(device),
        views_(views),
        planner_(plan, rank, storage_bytes()),
        weights_(plan, plan.place_of(rank), device, source),
        iteration_(index(plan.loops.size()), 0) {
    make_caches(plan.place_of(rank), options);
  }
  RankMemory(RankMemory const&) = delete;

  static constexpr StorageBytes storage_bytes() {
    StorageBytes b;
    for (int s = 0; s < storage_kinds; ++s) b.of[s] = D::bytes_of(static_cast<Storage>(s));
    return b;
  }

  /// Makes room for the values of a run.
  void fit(RunShape run) {
    Arena const& arena = planner_.fit(run);
    if (arena_ && arena.bytes <= arena_room_) return;
    arena_.reset();
    arena_.emplace(device_.memory(arena.bytes));
    arena_room_ = arena.bytes;
  }
  /// What follows is of this iteration of the loop.
  void enter(i32 loop, i32 iteration) { iteration_[index(loop)] = iteration; }

  /// Of a value of this rank's stage, in the current iteration.
  void* of(i32 value) const {
    if (i32 const s = views_.cache_of(value); s >= 0) return cache(s);
    i64 const offset = planner_.arena().offset[value];
    if (offset >= 0) return static_cast<std::byte*>(arena_->get()) + offset;
    return weights_.plain(value, [this](i32 loop) { return flat_iteration(loop); });
  }
  std::byte* bytes(i32 value) const { return static_cast<std::byte*>(of(value)); }
  void* cache(i32 state) const { return cache(state, flat_iteration(plan_.states[state].loop)); }
  void* cache(i32 state, i64 iteration) const {
    return caches_[index(state)][static_cast<std::size_t>(iteration)].get();
  }
  typename D::Weight const& weight(i32 parameter) const {
    return weights_.at(parameter, flat_iteration(plan_.parameters[parameter].loop));
  }
  bool shares_buffer(i32 a, i32 b) const { return planner_.arena().shares_buffer(a, b); }

  i64 arena_bytes() const { return planner_.arena().bytes; }
  i64 weight_bytes() const { return weights_.logical_bytes(); }
  i64 packed_bytes() const { return weights_.packed_bytes(); }
  i64 cache_bytes() const { return cache_bytes_; }

 private:
  Plan const& plan_;
  D& device_;
  RankViews const& views_;
  ArenaPlanner planner_;
  WeightStore<D> weights_;
  std::vector<i32> iteration_;                             ///< by loop
  std::vector<std::vector<typename D::Memory>> caches_{};  ///< by state, then by iteration
  std::optional<typename D::Memory> arena_{};
  i64 arena_room_ = 0, cache_bytes_ = 0;

  static std::size_t index(i32 i) { return static_cast<std::size_t>(i); }

  void make_caches(RankPlace const& place, ExecutorOptions options) {
    std::vector<SequenceRun> all(static_cast<std::size_t>(options.sequences), SequenceRun{options.capacity, 0, 0});
    RunShape const run{all.data(), static_cast<i32>(all.size())};
    for (auto const& s : plan_.states) {
      caches_.emplace_back();
      if (s.stage != place.stage) continue;
      Tensor const& t = plan_.values[s.value];
      i64 const size =
          local_elements(t.dims, t.places, plan_.mesh(place.stage), place.at, run) * D::bytes_of(t.storage);
      for (i64 i = 0; i < plan_.executions(s.loop); ++i) {
        caches_.back().push_back(device_.memory(size));
        cache_bytes_ += size;
      }
    }
  }
  /// Number of the current iteration, counted through all loops around.
  i64 flat_iteration(i32 loop) const {
    return loop < 0 ? 0 : flat_iteration(plan_.loops[loop].parent) * plan_.loops[loop].count + iteration_[index(loop)];
  }
};

}  // namespace dovetail
