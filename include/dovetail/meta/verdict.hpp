// SPDX-License-Identifier: MIT
// The verdict on a layout: the first rule it breaks, with the user's own names and numbers. It travels in the plan as
// plain constexpr data; plan/refuse.hpp turns it into one compile error, layout/ into one exception with one sentence.
#pragma once
#include <dovetail/meta/named.hpp>

namespace dovetail {

/// Rules of layouts. Each has a page of its name in docs/errors.
enum class Rule : std::uint8_t {
  ok,
  placement_split,      ///< more ranks than units, or a share that gives a rank no unit
  placement_ambiguous,  ///< a policy maps two dims of one parameter to one axis
  op_undeclared,        ///< a dim arrives split at an op that does not say what it does with it
  op_roles,             ///< an op's roles contradict its operands or result
  op_extents,           ///< one dim with two extents in one op
  mesh_branches,        ///< two siblings bring in different axes
  mesh_order,           ///< two paths nest the same axes in another order
  policy_twice,         ///< the same axis with the same dims, nested
  pipeline_nested,      ///< a pipeline inside a pipeline, or inside a repeated layer
  pipeline_units,       ///< more stages than layers, or a stated cut that does not add up
  parameter_name,       ///< two parameters with one name
  loop_dims,            ///< a repeated layer yields other dims than it takes
  size_range,           ///< an extent, a unit, an axis or a count of layers that is no positive number or too large
  layer_apply,          ///< a type stands where a layer is expected, and is none
  layer_value,          ///< a layer uses or returns a value that the plan does not have
  policy_arguments,     ///< a policy is given something that is no axis, or no dim
  policy_unused,        ///< a policy maps no dim that the layer inside has
  pipeline_empty,       ///< a stage that computes nothing
  name_legal,           ///< a name that is empty or not printable, or two axes of one name in one stage
  plan_room,            ///< more of something than a bounded part of the plan takes
};
inline constexpr int rule_count = 21;  ///< how many Rule has

/// What is wrong with a layout: the rule, and the names and numbers that its sentence needs.
struct Verdict {
  Rule rule = Rule::ok;
  LayerInfo const* layer = nullptr;  ///< innermost layer of the user's types
  Name path{};                       ///< role path, the name of the layer at run time
  DimInfo const* dim = nullptr;
  DimInfo const* other_dim = nullptr;
  AxisInfo const* axis = nullptr;
  AxisInfo const* other_axis = nullptr;
  char const* op = "";
  i64 extent = 0;  ///< of the dim; layers for pipeline rules
  i64 units = 0;   ///< what the extent has to deal out
  i64 ranks = 0;   ///< what asked for it
  i64 left = 0;    ///< units that the axes outside the refused one leave to the rank that gets fewest
  constexpr bool ok() const { return rule == Rule::ok; }
};

/// Id of the rule as errors and documentation pages spell it.
constexpr char const* id_of(Rule r) {
  constexpr char const* ids[] = {"ok",
                                 "placement/split",
                                 "placement/ambiguous",
                                 "op/undeclared",
                                 "op/roles",
                                 "op/extents",
                                 "mesh/branches",
                                 "mesh/order",
                                 "policy/twice",
                                 "pipeline/nested",
                                 "pipeline/units",
                                 "parameter/name",
                                 "loop/dims",
                                 "size/range",
                                 "layer/apply",
                                 "layer/value",
                                 "policy/arguments",
                                 "policy/unused",
                                 "pipeline/empty",
                                 "name/legal",
                                 "plan/room"};
  return ids[static_cast<int>(r)];
}

}  // namespace dovetail
