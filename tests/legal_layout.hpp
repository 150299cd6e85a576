// SPDX-License-Identifier: MIT
// Which layouts a planner must refuse, found without a planner: from the shapes of the unsplit model's parameters and
// the policies as the text states them. Units are dealt one by one over every coordinate, so nothing here shares a
// formula with the library. Also what must hold of every plan that was made.
#pragma once
#include <algorithm>
#include <dovetail/plan/coverage.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <dovetail/run/weight_store.hpp>
#include <set>

#include "tiny_model.hpp"

namespace legal {

using namespace dovetail;

/// Rules that a layout breaks for certain, and rules that it may break where values move between policies.
struct Expected {
  std::set<Rule> must{}, may{};
};

/// Units of each rank of an axis: balanced, or by largest remainder.
inline std::vector<i64> dealt(i64 units, AxisInfo const& axis) {
  std::vector<i64> got(static_cast<std::size_t>(axis.size), 0);
  i64 total = 0, given = 0;
  for (i32 r = 0; r < axis.size; ++r) total += axis.share(r);
  std::vector<std::pair<i64, i32>> remainders;
  for (i32 r = 0; r < axis.size; ++r) {
    got[static_cast<std::size_t>(r)] = units * axis.share(r) / total;
    given += got[static_cast<std::size_t>(r)];
    remainders.emplace_back(-(units * axis.share(r) % total), r);
  }
  std::sort(remainders.begin(), remainders.end());
  for (i64 k = 0; k < units - given; ++k)
    ++got[static_cast<std::size_t>(remainders[static_cast<std::size_t>(k)].second)];
  return got;
}
/// Does a rank with a share end without a unit?
inline bool leaves_empty(i64 units, std::vector<AxisInfo const*> const& axes, std::size_t from = 0) {
  if (from == axes.size()) return units == 0;
  auto const got = dealt(units, *axes[from]);
  for (i32 r = 0; r < axes[from]->size; ++r)
    if (axes[from]->share(r) && leaves_empty(got[static_cast<std::size_t>(r)], axes, from + 1)) return true;
  return false;
}

/// A parameter of the model: the roles that its path passes through, and the dims that policies name.
struct Inventory {
  struct Entry {
    enum Where { first, layers, last } where = first;
    std::vector<i64> at{};  ///< of the layers that a pipeline deals
    std::vector<std::string> roles{};
    std::vector<std::pair<DimInfo const*, i64>> units{};
  };
  std::vector<Entry> entries{};
  std::set<std::string> names{};  ///< with layer indices

  explicit Inventory(tiny::Model const& model) {
    LayoutPlan const planned = plan_layout(read_layout("single"), model.layers, model.apply);
    Plan const plan = planned.view();
    i64 numbered = 1;  // where repeats nest, more than a pipeline deals
    for (auto const& p : plan.parameters)
      each_iteration(plan, p.layer, p.loop, [&](i64, i64 layer) {
        names.insert(indexed_name(p.name, layer));
        numbered = std::max(numbered, layer + 1);
      });
    for (auto const& p : plan.parameters) {
      Entry e;
      each_iteration(plan, p.layer, p.loop, [&](i64, i64 layer) { e.at.push_back(layer * model.layers / numbered); });
      std::string const path = p.name.chars;
      for (std::size_t at = 0, dot; (dot = path.find('.', at)) != path.npos; at = dot + 1)
        e.roles.push_back(path.substr(at, dot - at));
      e.where = e.roles[0] == "layers" ? Entry::layers
                : e.roles[0] == "embedding" || e.roles[0] == "positions" || e.roles[0].starts_with("skip")
                    ? Entry::first
                    : Entry::last;
      for (auto const& d : plan.values[p.value].dims)
        e.units.emplace_back(d.dim->leader ? d.dim->leader : d.dim, ceil_div(d.lead, d.unit));
      entries.push_back(e);
    }
  }
};

namespace judging {

inline bool maps(Policy const& p, DimInfo const* dim) {
  return std::find(p.dims.begin(), p.dims.end(), dim) != p.dims.end();
}
inline bool same_dims(Policy const& a, Policy const& b) {
  return a.dims.size() == b.dims.size() &&
         std::all_of(a.dims.begin(), a.dims.end(), [&](auto d) { return maps(b, d); });
}
/// Policies are entered in this order; the innermost on an axis holds.
inline void judge_stack(std::vector<Policy> const& stack, Expected& e) {
  for (std::size_t i = 0; i < stack.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (stack[i].axis == stack[k].axis && !stack[i].dims.empty() && same_dims(stack[i], stack[k]))
        e.must.insert(Rule::policy_twice);
}
/// A policy that maps something maps a dim that is there; one rank has nothing to share. Activations have a batch and
/// a sequence, but for what is inside a layer, where they may have other dims than the parameters.
inline void judge_use(Policy const& p, std::set<DimInfo const*> const& there, bool inside_layer, Expected& e) {
  if (p.dims.empty() || p.axis->size == 1) return;
  bool used = false;
  for (auto const* dim : p.dims) used = used || there.contains(dim);
  if (used) return;
  bool const activations = maps(p, dim_of<batch>) || maps(p, dim_of<sequence>);
  (activations || inside_layer ? e.may : e.must).insert(Rule::policy_unused);
}
/// Dims of the parameters that `fits`.
inline std::set<DimInfo const*> dims_of(Inventory const& inventory, auto const& fits) {
  std::set<DimInfo const*> dims;
  for (auto const& entry : inventory.entries)
    for (auto const& [dim, units] : entry.units)
      if (fits(entry)) dims.insert(dim);
  return dims;
}
inline std::vector<AxisInfo const*> axes_of(std::vector<Policy> const& stack) {
  std::vector<AxisInfo const*> axes;
  for (auto const& p : stack)
    if (std::find(axes.begin(), axes.end(), p.axis) == axes.end()) axes.push_back(p.axis);
  return axes;
}
inline void judge_parameter(Inventory::Entry const& entry, std::vector<Policy> const& stack, Expected& e) {
  auto const axes = axes_of(stack);
  for (auto const* axis : axes) {
    Policy const& innermost =
        *std::find_if(stack.rbegin(), stack.rend(), [&](auto const& p) { return p.axis == axis; });
    std::set<DimInfo const*> split;
    for (auto const& [dim, units] : entry.units)
      if (maps(innermost, dim)) split.insert(dim);
    if (split.size() > 1 && axis->size > 1) e.must.insert(Rule::placement_ambiguous);
  }
  for (auto const& [dim, units] : entry.units) {
    std::vector<AxisInfo const*> cutting;
    for (auto const* axis : axes)
      if (maps(*std::find_if(stack.rbegin(), stack.rend(), [&](auto const& p) { return p.axis == axis; }), dim))
        cutting.push_back(axis);
    if (!dim->may_be_empty && leaves_empty(units, cutting)) e.must.insert(Rule::placement_split);
  }
}

}  // namespace judging

/// The rules that `layout` breaks for a model.
inline Expected expected(Inventory const& inventory, i32 layers, Layout const& layout) {
  using namespace judging;
  Expected e;
  std::size_t const stages = layout.pipeline ? static_cast<std::size_t>(layout.pipeline->size) : 1;
  std::vector<i64> cuts(stages, layers);
  if (layout.pipeline && layout.cuts.empty()) cuts = dealt(layers, *layout.pipeline);
  if (!layout.cuts.empty()) cuts.assign(layout.cuts.begin(), layout.cuts.end());
  i64 sum = 0;
  for (i64 n : cuts) sum += n;
  if (sum != layers || (layout.pipeline && layout.cuts.empty() && layout.pipeline->size > layers)) {
    e.must.insert(Rule::pipeline_units);
    return e;
  }
  auto const anywhere = dims_of(inventory, [](auto const&) { return true; });
  for (auto const* list : {&layout.outer, &layout.inner})
    for (auto const& p : *list) judge_use(p, anywhere, false, e);
  i64 first_layer = 0;
  for (std::size_t s = 0; s < stages; first_layer += cuts[s++]) {
    std::vector<Policy> around = layout.outer;
    if (!layout.stages.empty()) around.insert(around.end(), layout.stages[s].begin(), layout.stages[s].end());
    around.insert(around.end(), layout.inner.begin(), layout.inner.end());
    judge_stack(around, e);
    auto const axes = axes_of(around);
    std::set<std::string> axis_names;
    for (auto const* axis : axes)
      if (!axis_names.insert(axis->name).second) e.must.insert(Rule::name_legal);
    std::vector<Policy> any = around;  // of this stage, wherever it holds
    auto const holds_here = [&](RolePolicy const& r) {
      return (r.stage < 0 || r.stage == static_cast<i32>(s)) &&
             std::find(axes.begin(), axes.end(), r.policy.axis) != axes.end();
    };
    for (auto const& r : layout.roles)
      if (holds_here(r)) any.push_back(r.policy);
    auto const is_here = [&](Inventory::Entry const& entry) {
      if (entry.roles[0] == "embedding" && s + 1 == stages) return true;  // it may be tied
      if (entry.where == Inventory::Entry::first) return s == 0;
      if (entry.where == Inventory::Entry::last) return s + 1 == stages;
      return std::any_of(entry.at.begin(), entry.at.end(),
                         [&](i64 l) { return l >= first_layer && l < first_layer + cuts[s]; });
    };
    if (s > 0 && s + 1 < stages && !cuts[s]) e.must.insert(Rule::pipeline_empty);
    if (!layout.stages.empty())
      for (auto const& p : layout.stages[s]) judge_use(p, dims_of(inventory, is_here), false, e);
    for (auto const& r : layout.roles) {
      auto const inside = dims_of(inventory, [&](Inventory::Entry const& entry) {
        return is_here(entry) &&
               std::find(entry.roles.begin(), entry.roles.end(), std::string(r.role.chars)) != entry.roles.end();
      });
      if (holds_here(r) && !inside.empty()) judge_use(r.policy, inside, true, e);
    }
    for (auto const& entry : inventory.entries) {
      if (!is_here(entry)) continue;
      std::vector<Policy> stack = around;
      for (auto const& role : entry.roles)
        for (auto const& r : layout.roles)
          if (role == r.role.chars && holds_here(r)) stack.push_back(r.policy);
      judge_stack(stack, e);
      judge_parameter(entry, stack, e);
      for (auto const& [dim, units] : entry.units) {
        std::vector<AxisInfo const*> cutting;
        for (auto const* axis : axes)
          if (std::any_of(any.begin(), any.end(), [&](auto const& p) { return p.axis == axis && maps(p, dim); }))
            cutting.push_back(axis);
        if (!dim->may_be_empty && leaves_empty(units, cutting)) e.may.insert(Rule::placement_split);
      }
    }
  }
  return e;
}

/// What is wrong with a plan that was made; empty where nothing is.
inline std::string unsound(Plan const& plan, std::set<std::string> const& names) {
  std::string text;
  Coverage const cover = coverage(plan);
  if (!cover.ok()) text += "\n  parameter " + std::to_string(cover.parameter) + " or state is not covered";
  std::set<std::string> stored;
  for (auto const& p : plan.parameters)
    each_iteration(plan, p.layer, p.loop, [&](i64, i64 layer) { stored.insert(indexed_name(p.name, layer)); });
  if (stored != names) text += "\n  the parameters' names are not those of the unsplit model";
  auto const whole_seam = [&](i32 value, char const* what) {
    for (i32 a = 0; value >= 0 && a < plan.mesh(plan.values[value].stage).size(); ++a)
      if (plan.values[value].places[a].partial()) text += std::string("\n  a partial value leaves ") + what;
  };
  for (auto const& l : plan.loops) {
    whole_seam(l.argument, "a loop"), whole_seam(l.result, "a loop"), whole_seam(l.initial, "a loop");
    whole_seam(l.yielded, "a loop");
  }
  for (auto const& e : plan.edges) whole_seam(e.sent, "a stage");
  for (auto const& o : plan.outputs) whole_seam(o.value, "the plan");
  whole_seam(plan.result, "the plan");
  auto const around = [&](i32 outer, i32 loop) {
    while (loop >= 0 && loop != outer) loop = plan.loops[loop].parent;
    return loop == outer;
  };
  for (i32 i = 0; i < plan.steps.size(); ++i)  // a step reads what stands on its stage, around it, before it
    for (auto const& o : plan.steps[i].operands) {
      Step const& s = plan.steps[i];
      Tensor const& t = plan.values[o.value];
      bool const sent = s.kind == StepKind::send;
      if (t.step >= i || (t.stage == s.stage) == sent || (!sent && !around(t.loop, s.loop)))
        text += "\n  step " + std::to_string(i) + " (" + name_of(s.kind) + ") reads a value that is not there";
    }
  for (i32 i = 0; i < plan.steps.size(); ++i) {  // what does not depend on the iteration stands before the loop
    Step const& s = plan.steps[i];
    if (s.loop < 0 || s.kind == StepKind::compute || s.kind == StepKind::loop) continue;
    if (plan.values[s.operands[0].value].loop != s.loop)
      text += "\n  step " + std::to_string(i) + " (" + name_of(s.kind) + ") repeats in a loop what it could do once";
  }
  return text;
}

}  // namespace legal
