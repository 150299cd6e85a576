// SPDX-License-Identifier: MIT
// `plan_of<Layout>`: what users name. A layout that breaks a rule is refused with one static_assert whose literal
// states the rule and its page, and whose template arguments are the user's own types and numbers; later asserts about
// that plan stay silent. plan/sentence.hpp says the same at run time.
#pragma once
#include <dovetail/plan/legal.hpp>
#include <dovetail/plan/plan_of.hpp>
#include <dovetail/plan/refused.hpp>
#include <type_traits>

namespace dovetail {

// ---- words of the message, as compilers print them
template <auto* Layer>
struct in_layer {};  ///< the innermost layer that is a type
struct no_layer {};  ///< the rule was broken outside every layer that is a type
template <auto* Axis>
struct on_axis {};  ///< the axis of the mesh
struct no_axis {};  ///< there is no axis to name
template <auto* Dim>
struct of_dim {};  ///< the dim of the tensor
struct no_dim {};  ///< stages that were spelt out, or a pipeline that has none of its own
template <i64 Least, i64 Most>
struct sizes {};          ///< of the axis: what would be legal
struct larger_shares {};  ///< there are units enough, but a stated share gives a rank none of them
/// Role path, op or parameter.
template <Text Words>
struct at {
  static constexpr bool is_legal = false;
};

// ---- one template a rule: its arguments are the message
template <class At, class Layer, auto* Dim, i64 Units, auto* Axis, i64 Ranks, class Legal>
struct placement_split {
  static_assert(At::is_legal,
                "placement/split: a rank of this axis would hold no unit of the dim (more ranks than units, or too "
                "small a share); arguments: path, layer, dim, units, axis, ranks, legal sizes; see "
                "docs/errors/placement-split.md");
};
template <class At, class Layer, class Op, auto* Axis, auto* First, auto* Second>
struct placement_ambiguous {
  static_assert(At::is_legal,
                "placement/ambiguous: a policy maps two dims of one op's parameters to one axis, which can split only "
                "one; arguments: path, layer, op, axis, the two dims; see docs/errors/placement-ambiguous.md");
};
template <class At, class Layer, class Op, auto* Dim, auto* Axis>
struct op_undeclared {
  static_assert(At::is_legal,
                "op/undeclared: a dim arrives split at an op that does not say what it does with it; arguments: path, "
                "layer, op, dim, axis; see docs/errors/op-undeclared.md");
};
template <class At, class Layer, class Op, auto* Dim>
struct op_roles {
  static_assert(At::is_legal,
                "op/roles: what an op says of a dim contradicts its operands or results; arguments: path, layer, op, "
                "dim; see docs/errors/op-roles.md");
};
template <class At, class Layer, class Op, auto* Dim, i64 One, i64 Other>
struct op_extents {
  static_assert(At::is_legal,
                "op/extents: one dim has two extents in one op (0: known only in a run); arguments: path, layer, op, "
                "dim, the two extents; see docs/errors/op-extents.md");
};
template <class At, class Layer, class Taken, i64 One, class Yielded, i64 Other>
struct loop_dims {
  static_assert(
      At::is_legal,
      "loop/dims: a repeated layer yields other dims than it takes; arguments: path, layer, the first dim that "
      "it takes and its extent, what it yields there; see docs/errors/loop-dims.md");
};
template <class At, class Layer, auto* Axis, i64 Ranks, auto* Other>
struct mesh_branches {
  static_assert(At::is_legal,
                "mesh/branches: two sibling layers bring in different axes, so each would be computed again by the "
                "other's ranks; arguments: path, layer, its axis, ranks, the other axis; see "
                "docs/errors/mesh-branches.md");
};
template <class At, class Layer, auto* Axis, auto* Outer>
struct mesh_order {
  static_assert(At::is_legal,
                "mesh/order: two paths nest the same axes in different orders; arguments: path, layer, axis that is "
                "out of order, axis that it stands in; see docs/errors/mesh-order.md");
};
template <class At, class Layer, auto* Axis, auto* Dim>
struct policy_twice {
  static_assert(At::is_legal,
                "policy/twice: a policy maps the same dims to the same axis as one around it; arguments: path, layer, "
                "axis, first dim; see docs/errors/policy-twice.md");
};
template <class At, class Layer, class Axis>
struct pipeline_nested {
  static_assert(At::is_legal,
                "pipeline/nested: a pipeline or stage stands inside a pipeline or a repeated layer; arguments: path, "
                "layer, axis; see docs/errors/pipeline-nested.md");
};
template <class At, class Layer, class Axis, i64 Layers, i64 Stated, i64 Stages>
struct pipeline_units {
  static_assert(
      At::is_legal,
      "pipeline/units: the stages do not fit the axis, or their layers do not add up to the model's; "
      "arguments: path, layer, axis, layers to deal, layers dealt, stages; see docs/errors/pipeline-units.md");
};
template <class Name, class Layer>
struct parameter_name {
  static_assert(Name::is_legal,
                "parameter/name: two parameters of one model have one name; arguments: name, layer; see "
                "docs/errors/parameter-name.md");
};

template <class At, class Layer, class DimOrAxis, i64 Number, i64 Unit, i64 Leaders>
struct size_range {
  static_assert(
      At::is_legal,
      "size/range: an extent, unit, axis, share or count of layers is no positive number or too large, the extent "
      "of a leader is smaller than its follower's, or what is rotated does not make pairs; arguments: path, layer, "
      "dim or axis, the number, its unit, its leaders; see docs/errors/size-range.md");
};
template <class At, class Type>
struct layer_apply {
  static_assert(At::is_legal,
                "layer/apply: a type stands where a layer is expected, but has no static constexpr function "
                "Value apply(Builder&, Value); arguments: path, type; see docs/errors/layer-apply.md");
};
template <class At, class Layer, class Op>
struct layer_value {
  static_assert(
      At::is_legal,
      "layer/value: a layer uses or returns a value, parameter or state that the plan does not have, or an op "
      "yields none; arguments: path, layer, op; see docs/errors/layer-value.md");
};
template <class At, class Type>
struct policy_arguments {
  static_assert(
      At::is_legal,
      "policy/arguments: a policy takes an axis, a layer, then dims, in this order; arguments: path, the type "
      "that is no axis or no dim; see docs/errors/policy-arguments.md");
};
template <class At, class Layer, auto* Axis, auto* Dim>
struct policy_unused {
  static_assert(At::is_legal,
                "policy/unused: a policy maps dims that nothing inside it has, so its ranks would all do the same; "
                "arguments: path, layer, axis, the first of the dims; see docs/errors/policy-unused.md");
};
template <class At, class Layer, class DimOrAxis, class OtherAxis>
struct name_legal {
  static_assert(At::is_legal,
                "name/legal: a name is empty or has characters that are not printable ASCII, or two axes of one stage "
                "have one name; arguments: path, layer, dim or axis, the other axis; see docs/errors/name-legal.md");
};
template <class At, class Layer, class What, i64 Most>
struct plan_room {
  static_assert(At::is_legal,
                "plan/room: there is no room for as many of something as a layer or a layout has; arguments: path, "
                "layer, constant that bounds it, its value; see docs/errors/plan-room.md");
};
template <class At, class Layer, class Axis, i64 Stage>
struct pipeline_empty {
  static_assert(At::is_legal,
                "pipeline/empty: a stage of a pipeline computes nothing; arguments: path, layer, axis, stage; see "
                "docs/errors/pipeline-empty.md");
};
/// Not of a verdict: there is none where planning stops half-way.
template <class Layout>
struct layer_constant {
  static_assert(sizeof(Layout*) == 0,
                "layer/constant: planning this type is no constant expression: the apply of a layer in it, or a "
                "function that it calls, is not constexpr; see docs/errors/layer-constant.md");
};

namespace refusing {

template <std::size_t N>
constexpr Text<N> text_of(char const* words) {
  char chars[N]{};
  for (std::size_t i = 0; i + 1 < N; ++i) chars[i] = words[i];
  return Text<N>(chars);
}
constexpr std::size_t room_of(char const* words) {
  std::size_t n = 1;
  while (*words++) ++n;
  return n;
}

template <auto* Layer>
constexpr auto layer_word() {
  if constexpr (Layer != nullptr) return in_layer<Layer>{};
  else return no_layer{};
}
template <auto* Axis>
constexpr auto axis_word() {
  if constexpr (Axis != nullptr) return on_axis<Axis>{};
  else return no_axis{};
}

template <auto* Dim>
constexpr auto dim_word() {
  if constexpr (Dim != nullptr) return of_dim<Dim>{};
  else return no_dim{};
}

template <i64 Most>
constexpr auto legal_word() {
  if constexpr (Most > 0) return sizes<1, Most>{};
  else return larger_shares{};
}

/// The verdict on a layout as types.
template <class Layout>
struct Refusal {
  static constexpr Verdict v = StaticPlan<Layout>::value.verdict;
  using Path = at<text_of<room_of(v.path.chars)>(v.path.chars)>;
  using Op = at<text_of<room_of(v.op)>(v.op)>;
  using Layer = decltype(layer_word<v.layer>());
  using Axis = decltype(axis_word<v.axis>());
  using DimOrAxis = std::conditional_t<v.dim != nullptr, decltype(dim_word<v.dim>()), Axis>;
};

/// Inherits the template of the broken rule, and with it the assertion. (A function that named it would be one more
/// thing that clang finds not to be constant.)
template <class R, Rule>
struct Judged {};
template <class R>
struct Judged<R, Rule::placement_split>
    : placement_split<typename R::Path, typename R::Layer, R::v.dim, R::v.units, R::v.axis, R::v.ranks,
                      decltype(legal_word < share_too_small(R::v) ? 0 : most_ranks(R::v) > ())> {};
template <class R>
struct Judged<R, Rule::placement_ambiguous>
    : placement_ambiguous<typename R::Path, typename R::Layer, typename R::Op, R::v.axis, R::v.dim, R::v.other_dim> {};
template <class R>
struct Judged<R, Rule::op_undeclared>
    : op_undeclared<typename R::Path, typename R::Layer, typename R::Op, R::v.dim, R::v.axis> {};
template <class R>
struct Judged<R, Rule::op_roles> : op_roles<typename R::Path, typename R::Layer, typename R::Op, R::v.dim> {};
template <class R>
struct Judged<R, Rule::op_extents>
    : op_extents<typename R::Path, typename R::Layer, typename R::Op, R::v.dim, R::v.extent, R::v.units> {};
template <class R>
struct Judged<R, Rule::loop_dims> : loop_dims<typename R::Path, typename R::Layer, decltype(dim_word<R::v.dim>()),
                                              R::v.extent, decltype(dim_word<R::v.other_dim>()), R::v.units> {};
template <class R>
struct Judged<R, Rule::mesh_branches>
    : mesh_branches<typename R::Path, typename R::Layer, R::v.axis, R::v.ranks, R::v.other_axis> {};
template <class R>
struct Judged<R, Rule::mesh_order> : mesh_order<typename R::Path, typename R::Layer, R::v.axis, R::v.other_axis> {};
template <class R>
struct Judged<R, Rule::policy_twice> : policy_twice<typename R::Path, typename R::Layer, R::v.axis, R::v.dim> {};
template <class R>
struct Judged<R, Rule::pipeline_nested> : pipeline_nested<typename R::Path, typename R::Layer, typename R::Axis> {};
template <class R>
struct Judged<R, Rule::pipeline_units>
    : pipeline_units<typename R::Path, typename R::Layer, typename R::Axis, R::v.extent, R::v.units, R::v.ranks> {};
template <class R>
struct Judged<R, Rule::parameter_name> : parameter_name<typename R::Path, typename R::Layer> {};
template <class R>
struct Judged<R, Rule::size_range>
    : size_range<typename R::Path, typename R::Layer, typename R::DimOrAxis, R::v.extent, R::v.units, R::v.ranks> {};
template <class R>
struct Judged<R, Rule::layer_apply> : layer_apply<typename R::Path, typename R::Layer> {};
template <class R>
struct Judged<R, Rule::layer_value> : layer_value<typename R::Path, typename R::Layer, typename R::Op> {};
template <class R>
struct Judged<R, Rule::policy_arguments> : policy_arguments<typename R::Path, typename R::Layer> {};
template <class R>
struct Judged<R, Rule::policy_unused> : policy_unused<typename R::Path, typename R::Layer, R::v.axis, R::v.dim> {};
template <class R>
struct Judged<R, Rule::name_legal>
    : name_legal<typename R::Path, typename R::Layer, typename R::DimOrAxis, decltype(axis_word<R::v.other_axis>())> {};
template <class R>
struct Judged<R, Rule::plan_room> : plan_room<typename R::Path, typename R::Layer, typename R::Op, R::v.extent> {};
template <class R>
struct Judged<R, Rule::pipeline_empty>
    : pipeline_empty<typename R::Path, typename R::Layer, typename R::Axis, R::v.extent> {};

}  // namespace refusing

/// A layout, planned and judged: naming it is the error where a rule is broken. The assertion stands at class scope,
/// since in the body of a function clang would report it twice.
template <class Layout>
struct planned {
  static constexpr Rule rule = StaticPlan<Layout>::value.verdict.rule;
  static constexpr bool accepted = StaticPlan<Layout>::is_constant && rule == Rule::ok;
  using Judged = refusing::Judged<refusing::Refusal<Layout>, rule>;
  static_assert(sizeof(std::conditional_t<StaticPlan<Layout>::is_constant, Judged, layer_constant<Layout>>) > 0);
};

namespace refusing {

template <class Layout>
inline constexpr bool is_accepted = planned<Layout>::accepted;

template <class Layout>
constexpr auto const& plan_or_refused() {
  if constexpr (planned<Layout>::accepted) return StaticPlan<Layout>::value;
  else return refused;
}

}  // namespace refusing

/// The plan of a layout, a reference to constant data: `constexpr auto& plan = plan_of<Layout>;`.
template <class Layout>
inline constexpr auto const& plan_of = refusing::plan_or_refused<Layout>();

}  // namespace dovetail
