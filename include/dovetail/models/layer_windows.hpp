// SPDX-License-Identifier: MIT
// Which layers of a model attend to a sliding window and which to all: a pattern as families state it, and the shortest
// period of any list of layers, so that a plan has one loop body a kind of layer and not one a layer.
#pragma once
#include <dovetail/layer/compose.hpp>
#include <utility>

namespace dovetail {

/// Latest keys that a query of each layer sees, 0 for all: function of the layer index.
struct LayerWindows {
  i64 window = 0;
  i32 full_every = 0;  ///< every so many layers the last one sees all (Gemma 2: 2); 0: each has the window

  constexpr i64 operator()(i32 layer) const { return full_every && (layer + 1) % full_every == 0 ? 0 : window; }
};

/// The least p for which layers p apart have one window; `layers` where there is no period.
constexpr i32 period_of(i32 layers, auto const& window_of) {
  for (i32 p = 1; p < layers; ++p) {
    bool repeats = true;
    for (i32 l = p; l < layers && repeats; ++l) repeats = window_of(l) == window_of(l - p);
    if (repeats) return p;
  }
  return layers < 1 ? 1 : layers;
}

/// `Count` layers as a type: Kind<L> is the layer that stands at L of the windows' shortest period.
template <i32 Count, auto Windows, template <i32> class Kind>
struct WindowedLayers {
  static constexpr i32 depth = Count;
  static constexpr Value apply(Builder& b, Value x) {
    return []<i32... L>(Builder & inner, Value v, std::integer_sequence<i32, L...>) {
      return Cycle<Count, Kind<L>...>::apply(inner, v);
    }
    (b, x, std::make_integer_sequence<i32, period_of(Count, Windows)>{});
  }
};

}  // namespace dovetail
