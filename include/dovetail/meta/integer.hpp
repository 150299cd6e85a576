// SPDX-License-Identifier: MIT
// The integer types that every other header speaks in: counts and sizes are 64 bit, indices into a plan 32 bit.
#pragma once
#include <cstdint>

namespace dovetail {

using i64 = std::int64_t;  ///< extents, element counts, bytes: a layer of a large model passes 2^31 elements
using i32 = std::int32_t;  ///< indices of values, steps, loops and stages in a plan

inline constexpr i64 KiB = i64{1} << 10;  ///< in bytes, as are MiB and GiB
inline constexpr i64 MiB = i64{1} << 20;  ///< 1024 KiB
inline constexpr i64 GiB = i64{1} << 30;  ///< 1024 MiB

/// Half-open range [lo, hi) of global indices.
struct Range {
  i64 lo = 0, hi = 0;
  constexpr i64 size() const { return hi > lo ? hi - lo : 0; }
  constexpr bool contains(i64 i) const { return lo <= i && i < hi; }
  friend constexpr bool operator==(Range const&, Range const&) = default;
};

/// Common part of two ranges; empty where they do not meet.
constexpr Range intersect(Range a, Range b) {
  i64 const lo = a.lo > b.lo ? a.lo : b.lo, hi = a.hi < b.hi ? a.hi : b.hi;
  return {lo, hi > lo ? hi : lo};
}

/// a / b, rounded up. @pre a >= 0, b > 0
constexpr i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

}  // namespace dovetail
