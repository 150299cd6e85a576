// SPDX-License-Identifier: MIT
// Who holds what of a dim: balanced blocks or stated shares, in whole units, over one axis or a stack of several.
// Every function is constexpr and total: a rank beyond the units gets an empty range, never a wrong one. The planner
// asks it at compile time, the loader and the executor at run time: one truth.
#pragma once
#include <dovetail/mesh/axis.hpp>
#include <dovetail/tensor/extent.hpp>
#include <dovetail/tensor/placement.hpp>

namespace dovetail {

/// Block `rank` of `extent` cut into `ranks`, in units; the first (units mod ranks) blocks have one unit more.
/// @pre extent >= 0, unit >= 1, 0 <= rank < ranks; where the unit does not divide the extent the last unit is short.
/// @post the blocks of all ranks are disjoint, in order, and cover [0, extent).
constexpr Range block(i64 extent, i64 unit, int ranks, int rank) {
  i64 const units = ceil_div(extent, unit), base = units / ranks, extra = units % ranks;
  auto const cut = [&](i64 r) {
    i64 const at = (r * base + (r < extra ? r : extra)) * unit;
    return at < extent ? at : extent;
  };
  return {cut(rank), cut(rank + 1)};
}

/// Units that `rank` gets of `units` under the axis' shares: largest remainder, ties to the lower rank.
constexpr i64 units_of(i64 units, AxisInfo const& axis, int rank) {
  if (!axis.shares) return block(units, 1, axis.size, rank).size();
  i64 total = 0, given = 0;
  for (int r = 0; r < axis.size; ++r) total += axis.shares[r];
  for (int r = 0; r < axis.size; ++r) given += units * axis.shares[r] / total;
  i64 const mine = units * axis.shares[rank] % total;
  i64 ahead = 0;  // ranks whose remainder is served before this one's
  for (int r = 0; r < axis.size; ++r) {
    i64 const other = units * axis.shares[r] % total;
    ahead += other > mine || (other == mine && r < rank);
  }
  return units * axis.shares[rank] / total + (ahead < units - given && mine > 0);
}

/// Part of `range` that `rank` of the axis owns, in units counted from the start of the range.
constexpr Range part(Range range, i64 unit, AxisInfo const& axis, int rank) {
  if (!axis.shares) {
    Range const b = block(range.size(), unit, axis.size, rank);
    return {range.lo + b.lo, range.lo + b.hi};
  }
  i64 const units = ceil_div(range.size(), unit);
  i64 before = 0;
  for (int r = 0; r < rank; ++r) before += units_of(units, axis, r);
  auto const cut = [&](i64 u) { return range.lo + u * unit < range.hi ? range.lo + u * unit : range.hi; };
  return {cut(before), cut(before + units_of(units, axis, rank))};
}

/// What a rank with leaders [lo, hi) of `lead` holds of a sharing follower's `size`: every follower one of them reads.
constexpr Range held_of(Range leaders, i64 size, i64 lead) {
  if (!leaders.size()) return {leaders.lo * size / lead, leaders.lo * size / lead};
  return {leaders.lo * size / lead, ceil_div(leaders.hi * size, lead)};
}
/// What it owns: owned ranges of all ranks are disjoint and cover [0, size).
constexpr Range owned_of(Range leaders, i64 size, i64 lead) {
  return {ceil_div(leaders.lo * size, lead), ceil_div(leaders.hi * size, lead)};
}

/// The axes of a stage, outermost first.
using Mesh = Vec<AxisInfo const*, max_axes>;
/// A rank's coordinate on each axis of its stage's mesh.
using Coordinate = Vec<i32, max_axes>;

/// Leaders of an extent of `lead` (in the extent's unit) that the rank at `at` has, under a stack of axes on one dim:
/// the outer axis cuts first, an inner one cuts what is left.
constexpr Range leading_range(Extent const& e, i64 lead, Places const& places, Mesh const& mesh, Coordinate const& at) {
  Range r{0, lead};
  for (i32 a = 0; a < mesh.size(); ++a)
    if (places[a].cut() && e.dim->follows_or_is(places[a].dim)) r = part(r, e.unit, *mesh[a], at[a]);
  return r;
}

/// True where a split of this extent by any axis is a sharing one.
constexpr bool is_shared_follower(Extent const& e) { return e.dim->follows == Follows::shares && e.lead != e.size; }

/// Range of a fixed extent that a rank holds.
constexpr Range held(Extent const& e, Places const& places, Mesh const& mesh, Coordinate const& at) {
  Range const lead = leading_range(e, e.lead, places, mesh, at);
  return e.lead == e.size ? lead : held_of(lead, e.size, e.lead);
}
/// Range of a fixed extent that a rank owns: every element is owned once by the ranks that differ on the cut axes.
constexpr Range owned(Extent const& e, Places const& places, Mesh const& mesh, Coordinate const& at) {
  Range const lead = leading_range(e, e.lead, places, mesh, at);
  return e.lead == e.size ? lead : owned_of(lead, e.size, e.lead);
}

}  // namespace dovetail
