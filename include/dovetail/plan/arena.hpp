// SPDX-License-Identifier: MIT
// The activation arena of a rank: where each value lies, so that values that are alive together never overlap, and how
// many bytes that takes. What depends on the plan is found out once; for a run only sizes and offsets are computed,
// without allocation, so the executor asks again whenever the extents of a run change.
#pragma once
#include <dovetail/mesh/region.hpp>
#include <dovetail/plan/buffers.hpp>
#include <dovetail/plan/storage_bytes.hpp>

namespace dovetail {

inline constexpr i64 arena_alignment = 64;  ///< bytes: offsets and sizes are multiples, a cache line or a wide vector

/// Where the values of one rank lie in one block of memory, in one run.
struct Arena {
  List<i64> offset{};  ///< byte offset by value id; -1: not in the arena
  List<i32> buffer{};  ///< by value id: equal where values share a buffer; -1: not in the arena
  i64 bytes = 0;       ///< what the rank needs
  i64 peak = 0;        ///< most bytes that are alive at once: no arena is smaller

  /// True where two values lie in the same bytes, so that a loop need not copy one to the other.
  constexpr bool shares_buffer(i32 a, i32 b) const { return buffer[a] >= 0 && buffer[a] == buffer[b]; }
};

/// Makes the arena of one rank for runs of any extents, so that what all runs share is worked out once.
class ArenaPlanner {
 public:
  /// @param plan must live as long as this.
  constexpr ArenaPlanner(Plan const& plan, i64 rank, StorageBytes const& bytes)
      : place_(plan.place_of(rank)), mesh_(plan.mesh(place_.stage)) {
    Buffers const buffers(plan, place_.stage);
    for (i32 v = 0; v < plan.values.size(); ++v) arena_.offset.push(-1), arena_.buffer.push(buffers.of(v));
    for (i32 leader : buffers.leaders()) {
      Tensor const& t = plan.values[leader];
      i64 const width = local_width(t.dims, t.places, mesh_, place_.at) * bytes[t.storage];
      Block made{width, rows_of(t), 0, 0, members_.size(), 0};
      for (i32 v = leader; v >= 0; v = buffers.next(v)) members_.push(v);
      made.end = members_.size();
      blocks_.push(made);
    }
    find_conflicts(buffers);
    for (i32 i = 0; i < blocks_.size(); ++i) order_.push(i), placed_.push(i);
  }

  /// Lays the buffers out for a run: first fit, the largest first. The same run gives the same offsets everywhere.
  constexpr Arena const& fit(RunShape run) {
    bool changed = !fitted_;
    for (auto& r : rows_) {
      i64 const now = local_rows(r.dims, r.places, mesh_, place_.at, run);
      changed = changed || now != r.count;
      r.count = now;
    }
    if (changed) lay_out();
    fitted_ = true;
    return arena_;
  }
  constexpr Arena const& arena() const { return arena_; }

 private:
  /// Values with the same symbolic dims, split alike, have the same number of rows in every run.
  struct Rows {
    Dims dims{};
    Places places{};
    i64 count = -1;
  };
  struct Block {
    i64 row_bytes = 0;
    i32 rows = 0;
    i64 size = 0, offset = 0;
    i32 begin = 0, end = 0;  ///< of its values in members_
  };
  RankPlace place_;
  Mesh mesh_;
  Arena arena_{};
  List<Rows> rows_{};
  List<Block> blocks_{};
  List<i32> members_{};
  Array<char> conflicts_{};               ///< square, by block
  List<i32> moments_{}, moment_begin_{};  ///< blocks that are alive when one of them begins to be
  List<i32> order_{}, placed_{};          ///< room for lay_out()
  bool fitted_ = false;

  constexpr i32 rows_of(Tensor const& t) {
    Rows wanted;
    for (i32 k = 0; k < leading_symbols(t.dims); ++k) wanted.dims.push(t.dims[k]);
    for (i32 a = 0; a < mesh_.size(); ++a)
      if (t.places[a].cut() && find(wanted.dims, t.places[a].dim)) wanted.places[a] = t.places[a];
    for (i32 i = 0; i < rows_.size(); ++i)
      if (rows_[i].dims == wanted.dims && rows_[i].places == wanted.places) return i;
    rows_.push(wanted);
    return rows_.size() - 1;
  }

  constexpr void find_conflicts(Buffers const& buffers) {
    i32 const n = blocks_.size();
    List<char> square;
    for (i32 i = 0; i < n; ++i)
      for (i32 k = 0; k < n; ++k)
        if (k < i) square.push(square[k * n + i]);
        else square.push(k > i && buffers.meet(buffers.leaders()[i], buffers.leaders()[k]) ? 1 : 0);
    conflicts_ = Array<char>(square);
    auto const alive = [&](i32 block, i64 moment) {
      for (i32 m = blocks_[block].begin; m < blocks_[block].end; ++m)
        if (meet(buffers.life(members_[m]), Interval{moment, moment})) return true;
      return false;
    };
    moment_begin_.push(0);
    for (i32 v : members_) {
      for (i32 i = 0; i < n; ++i)
        if (alive(i, buffers.life(v).from)) moments_.push(i);
      moment_begin_.push(moments_.size());
    }
  }

  constexpr void lay_out() {
    i32 const n = blocks_.size();
    order_.cut(0), placed_.cut(0);
    for (i32 i = 0; i < n; ++i) {
      Block& b = blocks_[i];
      b.size = ceil_div(b.row_bytes * rows_[b.rows].count, arena_alignment) * arena_alignment;
      order_.push(i);
      for (i32 k = i; k > 0 && blocks_[order_[k - 1]].size < b.size; --k) order_[k] = order_[k - 1], order_[k - 1] = i;
    }
    arena_.bytes = 0;
    for (i32 i : order_) {
      Block& b = blocks_[i];
      b.offset = 0;
      for (i32 p : placed_) {  // in order of offset: the first gap between buffers alive at the same time
        if (!conflicts_[i64{i} * n + p]) continue;
        if (b.offset + b.size <= blocks_[p].offset) break;
        i64 const after = blocks_[p].offset + blocks_[p].size;
        b.offset = b.offset > after ? b.offset : after;
      }
      placed_.push(i);
      for (i32 k = placed_.size() - 1; k > 0 && blocks_[placed_[k - 1]].offset > b.offset; --k)
        placed_[k] = placed_[k - 1], placed_[k - 1] = i;
      for (i32 m = b.begin; m < b.end; ++m) arena_.offset[members_[m]] = b.offset;
      arena_.bytes = arena_.bytes > b.offset + b.size ? arena_.bytes : b.offset + b.size;
    }
    arena_.peak = 0;
    for (i32 m = 0; m + 1 < moment_begin_.size(); ++m) {
      i64 sum = 0;
      for (i32 k = moment_begin_[m]; k < moment_begin_[m + 1]; ++k) sum += blocks_[moments_[k]].size;
      arena_.peak = arena_.peak > sum ? arena_.peak : sum;
    }
  }
};

/// The arena of one rank for one run.
constexpr Arena arena_of(Plan const& plan, i64 rank, RunShape run, StorageBytes const& bytes) {
  ArenaPlanner planner(plan, rank, bytes);
  return planner.fit(run);
}

}  // namespace dovetail
