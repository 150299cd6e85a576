// SPDX-License-Identifier: MIT
// Layouts as text, for files and command lines: policy/layout_reader.hpp makes policies of the text, and this plans
// them by the functions that plan types, refused with the same sentences. docs/layouts.md is the grammar.
#pragma once
#include <dovetail/policy/layout_reader.hpp>

namespace dovetail {

/// A plan made at run time, with the axes that it points to.
struct LayoutPlan {
  Layout layout{};
  OwnedPlan owned{};
  Plan view() const { return owned.view(); }
};

/// Plans `model` under a layout, accepted or not: the verdict is in the plan.
/// @param layers numbered layers of the model, what a pipeline deals
/// @param model function (Builder&, Value ids) -> Value
/// @throws std::invalid_argument for a negative number of layers
inline LayoutPlan try_layout(Layout const& layout, i32 layers, auto const& model) {
  if (layers < 0) throw std::invalid_argument(words("the model has ", layers, " numbered layers; 0 or more is legal"));
  auto const nest = [&](auto const& self, Builder& b, Value x, std::vector<Policy> const& policies, std::size_t from,
                        auto const& body) -> Value {
    if (from == policies.size()) return body(b, x);
    return b.under(policies[from], x,
                   [&](Builder& inner, Value v) { return self(self, inner, v, policies, from + 1, body); });
  };
  auto const planned = [&](Builder& builder, Value ids) {
    for (auto const& r : layout.roles) builder.add_role_policy(r);
    return nest(nest, builder, ids, layout.outer, 0, [&](Builder& outer, Value x) {
      auto const staged = [&](Builder& b, Value v) { return nest(nest, b, v, layout.inner, 0, model); };
      if (!layout.pipeline) return staged(outer, x);
      Cut cut;
      if (layout.cuts.empty()) cut.layers = pipeline::deal_evenly(layers, layout.pipeline->size);
      for (i32 n : layout.cuts) cut.layers.push(n);
      for (auto const& stage : layout.stages) {
        cut.policies.push({});
        for (auto const& p : stage) cut.policies.back().push(p);
      }
      return pipeline::run(outer, x, layout.pipeline, layers, cut, staged);
    });
  };
  return LayoutPlan{layout, build(planned)};
}

/// The same, refused with an exception.
/// @throws LayoutError with the rule's sentence, LayoutTextError for a role that no layer has
inline LayoutPlan plan_layout(Layout const& layout, i32 layers, auto const& model) {
  LayoutPlan made = try_layout(layout, layers, model);
  if (!made.owned.verdict.ok()) throw LayoutError(made.owned.verdict);
  for (auto const& r : layout.roles) {
    bool used = false;
    std::vector<std::string> known;
    for (auto const& s : made.owned.scopes) {
      std::string const path = s.path.chars, last = path.substr(path.rfind('.') + 1);
      used = used || last == r.role.chars;
      bool const listed = last.empty() || last == "*" || std::find(known.begin(), known.end(), last) != known.end();
      if (!listed) known.push_back(last);
    }
    if (used) continue;
    std::string all;
    for (auto const& role : known) all += (all.empty() ? "" : ", ") + role;
    throw LayoutTextError(words("layout \"", excerpt(layout.text), "\": no layer has the role '", r.role,
                                "'; the model's are ", all, "; see docs/layouts.md"));
  }
  return made;
}

}  // namespace dovetail
