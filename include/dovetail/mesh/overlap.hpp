// SPDX-License-Identifier: MIT
// What two ranks have in common of a value, counted in elements of one run: the reference for how much every
// exchange moves. A rank *brings* to an exchange along an axis what no rank before it on that axis holds, so that each
// element is sent by one of them even where sharing followers make held ranges overlap.
#pragma once
#include <dovetail/mesh/region.hpp>

namespace dovetail {

/// Part of an extent that a rank holds. @param leaders what is split: `e.lead`, or what a run binds a symbol to
constexpr Range held_part(Extent const& e, i64 leaders, Places const& places, Mesh const& mesh, Coordinate const& at) {
  Range const mine = leading_range(e, leaders, places, mesh, at);
  return e.lead == e.size ? mine : held_of(mine, e.size, e.lead);
}

/// Part that it brings to an exchange along `axis`.
/// @pre no axis inside `axis` cuts the same dim.
/// @post the parts of the axis' ranks are disjoint, in order, and cover what one rank held if the axis did not cut.
constexpr Range brought_part(Extent const& e, i64 leaders, Places places, Mesh const& mesh, Coordinate const& at,
                             i32 axis) {
  Range const mine = leading_range(e, leaders, places, mesh, at);
  if (e.lead == e.size) return mine;
  places[axis] = whole_place;
  Range const all = leading_range(e, leaders, places, mesh, at);
  Range brought = owned_of(mine, e.size, e.lead);
  if (mine.lo == all.lo && mine.size() > 0) brought.lo = held_of(mine, e.size, e.lead).lo;
  return brought;
}

/// Elements of a run's value in a box: `range_of(extent, leaders)` is the box' range of each dim.
constexpr i64 elements_in(Dims const& d, RunShape run, auto const& range_of) {
  i32 const symbols = leading_symbols(d);
  i64 width = 1;
  for (i32 k = symbols; k < d.size(); ++k) width *= range_of(d[k], d[k].lead).size();
  if (!symbols || !width) return width;
  Range const sequences = range_of(d[0], i64{run.size()});
  i64 count = 0;
  for (i64 s = sequences.lo; s < sequences.hi; ++s) {
    i64 rows = 1;
    for (i32 k = 1; k < symbols; ++k) rows *= range_of(d[k], extent_in(run[s], d[k].symbol)).size();
    count += rows;
  }
  return count * width;
}

}  // namespace dovetail
