// SPDX-License-Identifier: MIT
// The words that types of placed tensors are made of: dims with extents, placements, axes. Each carries the plan-time
// value that it stands for, so decide() judges types by the same rule as it places plans.
#pragma once
#include <dovetail/mesh/split.hpp>
#include <tuple>
#include <type_traits>

namespace dovetail::typed {

/// A dim of a tensor: `Of<embed, 576>`, `Of<kv_heads, 3, 9>` (3 followers of 9 leaders), units of `Unit`.
template <class D, i64 Size, i64 Lead = Size, i64 Unit = 1>
struct Of {
  using Dim = D;
  static constexpr Extent extent = dovetail::extent<D>(Size, Lead, Unit);
};

/// The dims of a tensor, outermost first.
template <class... O>
struct Shape {
  static constexpr Dims dims = dovetail::dims(O::extent...);
};

// Placements on one axis.
/// Every rank holds all of the value.
struct Whole {
  using Dim = void;
  static constexpr Place place = whole_place;
};
/// The value is the sum over the axis.
struct Partial {
  using Dim = void;
  static constexpr Place place = partial_sum;
};
/// The value is the maximum over the axis.
struct PartialMax {
  using Dim = void;
  static constexpr Place place = partial_max;
};
/// Each rank holds its part of D.
template <class D>
struct Split {
  using Dim = D;
  static constexpr Place place = split_on(dim_of<D>);
};
/// Split on a sharing follower of D; the value is the sum over those who hold an element.
template <class D>
struct Shared {
  using Dim = D;
  static constexpr Place place = shared_on(dim_of<D>);
};

/// Placement P on axis A.
template <class A, class P>
struct On {
  using Axis = A;
  using Placement = P;
};

namespace spelling {

/// The word for a place. @param Sight words with a Dim each, among which the place's dim is
template <Place P, class First = void, class... Sight>
constexpr auto word() {
  if constexpr (P.whole()) {
    return Whole{};
  } else if constexpr (P.partial()) {
    return std::conditional_t<P.kind == Kind::partial_sum, Partial, PartialMax>{};
  } else if constexpr (std::is_void_v<typename First::Dim>) {  // NOLINT(bugprone-branch-clone): void has no dim_of
    return word<P, Sight...>();
  } else if constexpr (P.dim == dim_of<typename First::Dim>) {
    return std::conditional_t<P.kind == Kind::split, Split<typename First::Dim>, Shared<typename First::Dim>>{};
  } else {
    return word<P, Sight...>();
  }
}

}  // namespace spelling
}  // namespace dovetail::typed
