// SPDX-License-Identifier: MIT
// Pipelines: the policy that adds ranks. `Pipelined<Pp, Model>` deals the numbered layers evenly, the first stages one
// more, embedding and head at the ends; `Cuts<12, 10, 8>` states the layers of each stage; `PipelineStage<L>`s spell
// the stages out, each with policies of its own.
#pragma once
#include <dovetail/policy/mapped.hpp>

namespace dovetail {

/// Numbered layers of each stage.
template <i32... Layers>
struct Cuts {
  static constexpr i32 layers[] = {Layers...};
};

/// The layer L as a stage of its own.
template <class L>
struct PipelineStage {
  static constexpr bool is_pipeline_stage = true;
  static constexpr i32 depth = depth_of<L>();
  static constexpr Value apply(Builder& b, Value x) { return apply_layer<L>(b, x); }
};

namespace pipeline {

/// Layers of each stage, dealt evenly; the first stages one more. @return empty where there are fewer than stages.
constexpr List<i32> deal_evenly(i32 layers, i32 stages) {
  List<i32> dealt;
  for (i32 s = 0; s < stages && layers >= stages; ++s) dealt.push(static_cast<i32>(block(layers, 1, stages, s).size()));
  return dealt;
}

/// Runs `body` as a pipeline whose stages run `cut.layers` numbered layers each.
/// @param units numbered layers there are, for the error where the cut does not fit.
constexpr Value run(Builder& b, Value x, AxisInfo const* axis, i32 units, Cut const& cut, auto const& body) {
  if (!b.accepts(axis)) return body(b, x);
  i64 stated = 0;
  for (i32 n : cut.layers) {
    if (n < 0)
      return b.fail(
                 Verdict{.rule = Rule::pipeline_units, .axis = axis, .extent = units, .units = n, .ranks = axis->size}),
             x;
    stated += n;
  }
  if (cut.layers.size() != axis->size || stated != units) {
    b.fail(Verdict{.rule = Rule::pipeline_units, .axis = axis, .extent = units, .units = stated, .ranks = axis->size});
    return body(b, x);
  }
  b.open_pipeline(axis, cut, x);
  x = body(b, x);
  b.close_pipeline();
  return x;
}

template <class T>
constexpr bool is_stage = requires {
  T::is_pipeline_stage;
};

}  // namespace pipeline

/// A pipeline of axis A, around one layer, a layer and its `Cuts`, or `PipelineStage`s; other arguments are refused.
template <class A, class... L>
struct Pipelined {
  static constexpr i32 depth = 0;
  static constexpr Value apply(Builder& b, Value x) {
    return b.fail(Verdict{.rule = Rule::policy_arguments, .layer = layer_of<Pipelined>}), x;
  }
};

/// Cuts the layer's own sequence evenly.
template <NamesAxis A, class L>
requires(!pipeline::is_stage<L>) struct Pipelined<A, L> {
  static constexpr i32 depth = depth_of<L>(), children = children_of<L>();
  static constexpr Value apply(Builder& b, Value x) {
    i32 const units = depth ? depth : children;
    Cut cut;
    cut.layers = pipeline::deal_evenly(units, axis_of<A>->size), cut.deals_children = depth == 0;
    return pipeline::run(b, x, axis_of<A>, units, cut, &apply_layer<L>);
  }
};

/// Cuts it where stated.
template <NamesAxis A, i32... N, class L>
struct Pipelined<A, Cuts<N...>, L> {
  static constexpr i32 depth = depth_of<L>(), children = children_of<L>();
  static constexpr Value apply(Builder& b, Value x) {
    Cut cut;
    (cut.layers.push(N), ...);
    cut.deals_children = depth == 0;
    return pipeline::run(b, x, axis_of<A>, depth ? depth : children, cut, &apply_layer<L>);
  }
};

/// Stages spelt out.
template <NamesAxis A, class... S>
requires(sizeof...(S) > 0 && (pipeline::is_stage<S> && ...)) struct Pipelined<A, S...> {
  static constexpr i32 depth = (depth_of<S>() + ...);
  static constexpr Value apply(Builder& b, Value x) {
    constexpr Value (*stages[sizeof...(S)])(Builder&, Value) = {&apply_layer<S>...};
    i32 const count = sizeof...(S);
    if (b.accepts(axis_of<A>) && count != axis_of<A>->size)
      b.fail(Verdict{.rule = Rule::pipeline_units,
                     .axis = axis_of<A>,
                     .extent = count,
                     .units = count,
                     .ranks = axis_of<A>->size});
    b.open_pipeline(axis_of<A>, Cut{}, x);
    for (i32 s = 0; s < count; ++s) {
      if (s) b.next_stage();
      x = stages[s](b, x);
    }
    b.close_pipeline();
    return x;
  }
};

}  // namespace dovetail
