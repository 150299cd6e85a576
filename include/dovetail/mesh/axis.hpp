// SPDX-License-Identifier: MIT
// A mesh axis: a name, a size and, for unequal devices, stated shares. A user writes `struct Tp : Axis<"tp", 3> {};`
// or `struct Tp : Axis<"tp", Shares<3, 1>{}> {};`; a layout text makes the same values at run time.
#pragma once
#include <dovetail/meta/named.hpp>

namespace dovetail {

/// Stated shares of the ranks of an axis: `Shares<3, 1>` gives the first rank three quarters.
template <i64... Weights>
struct Shares {
  static_assert(((Weights >= 0) && ...) && (Weights + ... + 0) > 0, "shares are not negative, and not all zero");
  static constexpr i64 weights[sizeof...(Weights)] = {Weights...};
  static constexpr AxisInfo axis(char const* name) { return {name, static_cast<i32>(sizeof...(Weights)), weights}; }
};

/// Base of a named axis. Size is a number of ranks, or `Shares<3, 1>{}`.
template <Text Label, auto Size>
struct Axis {
  static constexpr auto label = Label;
  static constexpr AxisInfo describe_axis() {
    if constexpr (requires { Size.axis(""); }) {
      return Size.axis(Label.chars);
    } else {
      static_assert(Size >= 1, "an axis needs at least one rank");
      return {Label.chars, static_cast<i32>(Size), nullptr};
    }
  }
};

}  // namespace dovetail
