// SPDX-License-Identifier: MIT
// From a layer to a plan. `build` runs any planning function, at compile time or at run time; `plan_of<Layout>` is
// the plan of a type as static constant data: built once to learn its sizes, built again to be stored.
#pragma once
#include <dovetail/plan/loop.hpp>
#include <dovetail/plan/stages.hpp>

namespace dovetail {

/// Plans `model`, a function (Builder&, Value token_ids[batch,sequence]) -> Value. The verdict is in the result.
constexpr OwnedPlan build(auto const& model) {
  List<Mesh> meshes;
  for (int run = 0;; ++run) {  // a second run where siblings met the axes in another order than the longest path
    Builder b;
    b.preset(meshes);
    Value const ids = b.input(dims(extent<batch>(Symbol::batch), extent<sequence>(Symbol::tokens)), Storage::token);
    Value const result = model(b, ids);
    if (b.finish(result) || run == 2) return OwnedPlan(b.plan);
    meshes = b.meshes();
  }
}

/// A layer type: planning is running its `apply`.
template <class L>
concept Layer = requires(Builder& b, Value x) {
  { L::apply(b, x) } -> std::same_as<Value>;
};

/// Runs L as a layer of its own scope. A type that is no layer is refused.
template <class L>
constexpr Value apply_layer(Builder& b, Value x) {
  if constexpr (Layer<L>)
    return b.in_layer(layer_of<L>, "", x, [](Builder& inner, Value v) { return L::apply(inner, v); });
  else return b.fail(Verdict{.rule = Rule::layer_apply, .layer = layer_of<L>}), x;
}

namespace storing {

struct Sizes {
  i32 steps, values, parameters, states, stages, loops, scopes, edges, ties, inputs, outputs;
};

/// Arrays of exactly the plan's sizes; an empty part keeps one element that no view shows.
template <Sizes N>
struct Arrays {
  template <class T, i32 Count>
  using Array = T[Count > 0 ? Count : 1];
  Array<Step, N.steps> steps{};
  Array<Tensor, N.values> values{};
  Array<Parameter, N.parameters> parameters{};
  Array<State, N.states> states{};
  Array<Stage, N.stages> stages{};
  Array<Loop, N.loops> loops{};
  Array<Scope, N.scopes> scopes{};
  Array<Edge, N.edges> edges{};
  Array<Tie, N.ties> ties{};
  Array<i32, N.inputs> inputs{};
  Array<Output, N.outputs> outputs{};
  i32 result = -1, above = 0;
  Verdict verdict{};
};

template <class Layout>
constexpr OwnedPlan built() {
  return build([](Builder& b, Value x) { return apply_layer<Layout>(b, x); });
}

template <class Layout>
constexpr Sizes sizes_of() {
  OwnedPlan const p = built<Layout>();
  return {p.steps.size(),  p.values.size(), p.parameters.size(), p.states.size(), p.stages.size(), p.loops.size(),
          p.scopes.size(), p.edges.size(),  p.ties.size(),       p.inputs.size(), p.outputs.size()};
}

constexpr void copy(auto const& from, auto& to) {
  for (i32 i = 0; i < from.size(); ++i) to[i] = from[i];
}

template <class Layout, Sizes N>
constexpr Arrays<N> stored() {
  OwnedPlan const p = built<Layout>();
  Arrays<N> a{};
  copy(p.steps, a.steps), copy(p.values, a.values), copy(p.parameters, a.parameters), copy(p.states, a.states);
  copy(p.stages, a.stages), copy(p.loops, a.loops), copy(p.scopes, a.scopes), copy(p.edges, a.edges);
  copy(p.ties, a.ties), copy(p.inputs, a.inputs), copy(p.outputs, a.outputs);
  a.result = p.result, a.above = p.above, a.verdict = p.verdict;
  return a;
}

template <Sizes N>
constexpr Plan view_of(Arrays<N> const& a) {
  Plan p;
  p.steps = {a.steps, N.steps}, p.values = {a.values, N.values}, p.parameters = {a.parameters, N.parameters};
  p.states = {a.states, N.states}, p.stages_list = {a.stages, N.stages}, p.loops = {a.loops, N.loops};
  p.scopes = {a.scopes, N.scopes}, p.edges = {a.edges, N.edges}, p.ties = {a.ties, N.ties};
  p.inputs = {a.inputs, N.inputs}, p.outputs = {a.outputs, N.outputs};
  p.result = a.result, p.above = a.above, p.verdict = a.verdict;
  return p;
}

}  // namespace storing

namespace storing {

template <class Layout, Sizes N>
struct Stored {
  static constexpr bool is_constant = true;
  static constexpr Arrays<N> arrays = stored<Layout, N>();
  static constexpr Plan value = view_of(arrays);
};
struct NotConstant {
  static constexpr bool is_constant = false;
  static constexpr Plan value{};
};

// The default argument fails, and with it the first function, where planning is no constant expression.
template <class Layout, Sizes N = sizes_of<Layout>()>
constexpr Stored<Layout, N> stored_if_constant(int);
template <class Layout>
constexpr NotConstant stored_if_constant(...);

}  // namespace storing

/// The plan of a type, checked or not; `plan_of` in plan/refuse.hpp is what users name.
template <class Layout>
struct StaticPlan : decltype(storing::stored_if_constant<Layout>(0)) {};

}  // namespace dovetail
