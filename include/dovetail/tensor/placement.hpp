// SPDX-License-Identifier: MIT
// A placement says, for one mesh axis, what its ranks hold of a value: all of it, a split of a dim, a split whose
// holders' sum is the value (Shared), or a part of a sum or maximum (Partial). A value has one placement an axis.
#pragma once
#include <dovetail/tensor/dim.hpp>

namespace dovetail {

inline constexpr int max_axes = 6;  ///< axes of one stage's mesh

/// What the ranks of one axis hold of a value: all of it, parts, or terms of a sum or maximum.
enum class Kind : std::uint8_t { whole, split, shared, partial_sum, partial_max };

/// Placement of a value on one axis.
struct Place {
  Kind kind = Kind::whole;
  DimInfo const* dim = nullptr;  ///< for split and shared: the leading dim

  constexpr bool whole() const { return kind == Kind::whole; }
  constexpr bool partial() const { return kind >= Kind::partial_sum; }
  constexpr bool cut() const { return kind == Kind::split || kind == Kind::shared; }
  friend constexpr bool operator==(Place const&, Place const&) = default;
};

/// Each rank holds its part of the dim.
constexpr Place split_on(DimInfo const* dim) { return {Kind::split, dim}; }
/// Each rank holds the image of its part of the leading dim; images overlap.
constexpr Place shared_on(DimInfo const* dim) { return {Kind::shared, dim}; }
inline constexpr Place whole_place{};                            ///< each rank holds all of it
inline constexpr Place partial_sum{Kind::partial_sum, nullptr};  ///< the value is the sum over the axis
inline constexpr Place partial_max{Kind::partial_max, nullptr};  ///< the value is the maximum over the axis

/// Placement of one value on every axis of its stage's mesh.
struct Places {
  Place at[max_axes]{};
  constexpr Place& operator[](i64 axis) { return at[axis]; }
  constexpr Place const& operator[](i64 axis) const { return at[axis]; }
  friend constexpr bool operator==(Places const&, Places const&) = default;
};

/// The same placement with every Partial axis made whole: what may cross a seam.
constexpr Places settled(Places p) {
  for (auto& place : p.at)
    if (place.partial()) place = whole_place;
  return p;
}

}  // namespace dovetail
