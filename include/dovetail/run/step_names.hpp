// SPDX-License-Identifier: MIT
// Names of steps and of the tensors they make, for errors: the role path of the layer, the op, the parameter it holds.
#pragma once
#include <dovetail/plan/plan.hpp>
#include <string>

namespace dovetail {

/// "layers.*.mlp.gate matmul"; "set-up" for step -1.
inline std::string step_name(Plan const& plan, i32 step) {
  if (step < 0) return "set-up";
  Step const& s = plan.steps[step];
  std::string const path = plan.scopes[s.scope].path.chars;
  return (path.empty() ? "" : path + " ") + (s.op ? s.op->name : name_of(s.kind));
}

/// The tensor that a step works on: its parameter, or its result in the plan's dims.
inline std::string step_tensor(Plan const& plan, i32 step) {
  if (step < 0) return "none";
  Step const& s = plan.steps[step];
  if (!s.parameters.empty()) return plan.parameters[s.parameters[0].parameter].name.chars;
  if (s.results.empty()) return "none";
  std::string text = "v" + std::to_string(s.results[0]) + "[";
  for (auto const& e : plan.values[s.results[0]].dims)
    text += (text.back() == '[' ? "" : ",") + std::string(e.dim->name);
  return text + "]";
}

}  // namespace dovetail
