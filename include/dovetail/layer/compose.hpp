// SPDX-License-Identifier: MIT
// Layers made of layers: Sequential, Repeat, Cycle, Residual, Parallel, as types and as functions. A type is a thin
// wrapper: run-time models call the functions with their own bodies. `depth` of a type is the number of its numbered
// layers, what a pipeline deals to its stages.
#pragma once
#include <dovetail/layer/ops.hpp>

namespace dovetail {

/// Numbered layers inside a layer type: its Repeats and Cycles.
template <class L>
constexpr i32 depth_of() {
  if constexpr (requires { L::depth; }) return L::depth;
  else return 0;
}
/// Children of the outermost Sequential, what a pipeline deals where nothing repeats.
template <class L>
constexpr i32 children_of() {
  if constexpr (requires { L::children; }) return L::children;
  else return 1;
}

namespace ops {

/// `count` numbered layers under the role `layers.*`, dealt from the kinds in turn: kind(builder, argument, which).
constexpr Value cycle(Builder& outer, Value input, i32 count, i32 kinds, auto const& kind) {
  if (count < 0) outer.fail(Verdict{.rule = Rule::size_range, .extent = count});
  return outer.in_layer(nullptr, outer.layers_role(), input, [&](Builder& b, Value x) {
    for (i32 done = 0; done < count;) {
      i32 const run = b.take_layers(x, count - done), periods = run / kinds;
      auto const one = [&](Builder& inner, Value v, i32 at) {
        return inner.numbered(v, [&](Builder& layer, Value u) { return kind(layer, u, at % kinds); });
      };
      if (periods)
        x = b.loop(x, periods, [&](Builder& inner, Value v) {
          for (i32 k = 0; k < kinds; ++k) v = one(inner, v, done + k);
          return v;
        });
      for (i32 k = periods * kinds; k < run; ++k) {  // a pipeline may cut inside a period
        x = one(b, x, done + k);
        b.settle(x);
      }
      if (!b.in_loop()) b.plan.stages[b.stage()].layers += run;
      done += run;
    }
    b.end_layers(x);
    return x;
  });
}

/// `count` numbered layers of one kind: body(builder, argument).
constexpr Value repeat(Builder& b, Value x, i32 count, auto const& body) {
  return cycle(b, x, count, 1, [&](Builder& inner, Value v, i32) { return body(inner, v); });
}

/// x + body(x).
constexpr Value residual(Builder& b, Value x, auto const& body) { return add(b, x, body(b, x)); }

}  // namespace ops

/// L after L.
template <class... L>
struct Sequential {
  static constexpr i32 depth = (depth_of<L>() + ... + 0), children = sizeof...(L);
  static constexpr Value apply(Builder& b, Value x) {
    constexpr Value (*parts[children + 1])(Builder&, Value) = {&apply_layer<L>...};  // one more: there may be none
    bool const deal = b.claim_children();
    for (i32 i = 0; i < children; ++i) {
      if (deal) b.take_layers(x, 1);
      x = parts[i](b, x);
    }
    return x;
  }
};

/// Count numbered layers of one kind.
template <i32 Count, class L>
struct Repeat {
  static constexpr i32 depth = Count;
  static constexpr Value apply(Builder& b, Value x) { return ops::repeat(b, x, Count, &apply_layer<L>); }
};

/// Count layers in all, dealt from the pattern L...; the last period may be cut short.
template <i32 Count, class... L>
struct Cycle {
  static_assert(sizeof...(L) > 0, "a cycle deals from at least one kind of layer");
  static constexpr i32 depth = Count;
  static constexpr Value apply(Builder& b, Value x) {
    return ops::cycle(b, x, Count, sizeof...(L), [](Builder& inner, Value v, i32 which) {
      constexpr Value (*kinds[])(Builder&, Value) = {&apply_layer<L>...};
      return kinds[which](inner, v);
    });
  }
};

/// x + (L after L ...)(x).
template <class... L>
struct Residual {
  static constexpr i32 depth = (depth_of<L>() + ... + 0);
  static constexpr Value apply(Builder& b, Value x) {
    return ops::residual(b, x, [](Builder& inner, Value v) {
      constexpr i32 count = sizeof...(L);
      constexpr Value (*parts[count + 1])(Builder&, Value) = {&apply_layer<L>...};
      for (i32 i = 0; i < count; ++i) v = parts[i](inner, v);
      return v;
    });
  }
};

/// First(x) + Rest(x) + ...
template <class First, class... Rest>
struct Parallel {
  static constexpr i32 depth = depth_of<First>() + (depth_of<Rest>() + ... + 0);
  static constexpr Value apply(Builder& b, Value x) {
    constexpr Value (*parts[])(Builder&, Value) = {&apply_layer<First>, &apply_layer<Rest>...};
    Value sum = parts[0](b, x);
    for (std::size_t i = 1; i < sizeof...(Rest) + 1; ++i) sum = ops::add(b, sum, parts[i](b, x));
    return sum;
  }
};

}  // namespace dovetail
