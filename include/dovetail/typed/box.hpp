// SPDX-License-Identifier: MIT
// Boxes: the part of a tensor that a rank holds, as one range a dim, and the copy of what two boxes have in common.
// Every redistribution by hand is such copies around one exchange.
#pragma once
#include <dovetail/mesh/split.hpp>

/// Tensors whose placement is part of their type, for code that is placed by hand.
namespace dovetail::typed {

/// One range of global indices a dim.
struct Box {
  Vec<Range, max_dims> ranges{};

  constexpr i64 elements() const {
    i64 n = 1;
    for (auto const& r : ranges) n *= r.size();
    return n;
  }
};

/// What the rank at `at` holds. @pre all extents are fixed
constexpr Box box_of(Dims const& dims, Places const& places, Mesh const& mesh, Coordinate const& at) {
  Box b;
  for (auto const& e : dims) b.ranges.push(held(e, places, mesh, at));
  return b;
}

/// Copies the elements that both boxes hold; buffers are row-major. @pre the boxes are of the same dims
template <class T>
void copy_common(T const* from, Box const& there, T* to, Box const& here) {
  i32 const dims = here.ranges.size();
  Box common;
  for (i32 k = 0; k < dims; ++k) common.ranges.push(intersect(there.ranges[k], here.ranges[k]));
  i64 const count = common.elements();
  for (i64 n = 0; n < count; ++n) {
    i64 source = 0, target = 0, rest = n, left = count;
    for (i32 k = 0; k < dims; ++k) {
      left /= common.ranges[k].size();
      i64 const i = common.ranges[k].lo + rest / left;
      rest %= left;
      source = source * there.ranges[k].size() + i - there.ranges[k].lo;
      target = target * here.ranges[k].size() + i - here.ranges[k].lo;
    }
    to[target] = from[source];
  }
}

}  // namespace dovetail::typed
