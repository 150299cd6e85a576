// SPDX-License-Identifier: MIT
// What an axis does not divide: the parts of a stage in which no value is split or partial over it, so that each of
// its ranks computes the same. Legal, and often meant (a norm between two split layers); a fresh axis around one layer
// makes it most of the model, which a user should see.
#pragma once
#include <dovetail/plan/plan.hpp>
#include <dovetail/plan/wording.hpp>
#include <vector>

namespace dovetail {

namespace redundancy {

/// Does a step read or make anything that is not whole on the axis?
inline bool divides(Plan const& plan, Step const& s, i32 axis) {
  auto const placed = [&](i32 value) { return !plan.values[value].places[axis].whole(); };
  for (auto const& o : s.operands)
    if (!o.witness && placed(o.value)) return true;
  for (auto const& p : s.parameters)
    if (placed(p.value)) return true;
  for (i32 r : s.results)
    if (placed(r)) return true;
  return false;
}

}  // namespace redundancy

/// Names of the parts of a stage that every rank of a mesh axis computes alike: role paths of whole layers, "op" or
/// "op (path)" for steps between layers that are divided, "everything" where nothing is divided. In plan order, once.
inline std::vector<std::string> computed_alike(Plan const& plan, i32 stage, i32 axis) {
  std::vector<bool> divided(static_cast<std::size_t>(plan.scopes.size()), false);
  auto const is_divided = [&](i32 scope) { return divided[static_cast<std::size_t>(scope)]; };
  bool any = false;
  for (auto const& s : plan.steps) {
    if (s.kind != StepKind::compute || s.stage != stage || !redundancy::divides(plan, s, axis)) continue;
    any = true;
    for (i32 scope = s.scope; scope >= 0; scope = plan.scopes[scope].parent)
      divided[static_cast<std::size_t>(scope)] = true;
  }
  if (!any) return {"everything"};
  std::vector<std::string> parts;
  for (auto const& s : plan.steps) {
    if (s.kind != StepKind::compute || s.stage != stage || redundancy::divides(plan, s, axis)) continue;
    Name around{};  // of the innermost layer around the step that the axis does divide
    for (i32 scope = s.scope; scope >= 0; scope = plan.scopes[scope].parent)
      if (is_divided(scope)) {
        around = plan.scopes[scope].path;
        break;
      }
    std::string part = around.empty() ? words(s.op->name) : words(s.op->name, " (", around, ")");
    for (i32 scope = s.scope; scope >= 0 && !is_divided(scope); scope = plan.scopes[scope].parent)
      if (!(plan.scopes[scope].path == around))
        part = plan.scopes[scope].path.chars;  // the outermost has the last word
    bool known = false;
    for (auto const& p : parts) known = known || p == part;
    if (!known) parts.push_back(part);
  }
  return parts;
}

}  // namespace dovetail
