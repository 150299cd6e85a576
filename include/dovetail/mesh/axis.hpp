// SPDX-License-Identifier: MIT
// A mesh axis: a name, a size and, for unequal devices, stated shares. A user writes `struct Tp : Axis<"tp", 3> {};`
// or `struct Tp : Axis<"tp", Shares<3, 1>{}> {};`; a layout text makes the same values at run time.
#pragma once
#include <concepts>
#include <dovetail/meta/named.hpp>

namespace dovetail {

inline constexpr i64 max_ranks = 1000000;  ///< of one stage, all of its replicas counted
inline constexpr i64 max_share = 1 << 20;  ///< shares are ratios: products with them must not overflow

/// Stated shares of the ranks of an axis: `Shares<3, 1>` gives the first rank three quarters.
template <i64... Weights>
struct Shares {
  static constexpr i64 weights[sizeof...(Weights) + 1] = {Weights...};  // one more, for there may be none
  static constexpr AxisInfo axis(char const* name) { return {name, static_cast<i32>(sizeof...(Weights)), weights}; }
};

/// Base of a named axis. Size is a number of ranks, or `Shares<3, 1>{}`.
template <Text Label, auto Size>
struct Axis {
  static constexpr auto label = Label;
  static constexpr AxisInfo describe_axis() {
    if constexpr (requires { Size.axis(""); }) return Size.axis(Label.chars);
    else return {Label.chars, static_cast<i32>(Size), nullptr};
  }
};

/// A type that is an axis.
template <class A>
concept NamesAxis = requires {
  { A::describe_axis() } -> std::same_as<AxisInfo>;
};

/// What is wrong with an axis: its size or the sum of its shares where that is not positive, or a share that is
/// negative or beyond max_share. @return 1 where nothing is
constexpr i64 faulty_size(AxisInfo const& a) {
  i64 total = 0;
  for (i32 r = 0; a.shares && r < a.size; ++r) {
    if (a.share(r) < 0 || a.share(r) > max_share) return a.share(r);
    total += a.share(r);
  }
  return a.size < 1 ? a.size : a.shares && !total ? 0 : 1;
}

}  // namespace dovetail
