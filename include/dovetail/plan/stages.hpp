// SPDX-License-Identifier: MIT
// Policies and stages of the builder: axes that come into force, numbered layers dealt to stages, and the mesh read off
// the nesting of policies with its two rules (one path holds all axes; all paths agree in order).
#pragma once
#include <dovetail/plan/placing.hpp>

namespace dovetail {

/// Puts a policy in force around `x`, and notes the path of axes that it makes.
constexpr void Builder::enter(Policy const& policy, Value x) {
  for (auto const& p : policies_) {
    if (p.axis != policy.axis || p.dims.size() != policy.dims.size() || p.dims.empty()) continue;
    bool same = true;
    for (auto const* d : policy.dims) {
      bool known = false;
      for (auto const* q : p.dims) known = known || q == d;
      same = same && known;
    }
    if (same) fail(Verdict{.rule = Rule::policy_twice, .dim = policy.dims[0], .axis = policy.axis});
  }
  policies_.push(accepts(policy.axis) ? policy : Policy{policy.axis, {}});
  bool met = policy.dims.empty() || policy.axis->size == 1;
  for (auto const* dim : policy.dims) met = met || has(dims(x), dim);
  entered_.push(met ? -1 : plan.values.size());
  axis_index(policy.axis);
  AxisPath path{stage_, active_axes(), nullptr, plan.scopes[scope_].path};
  for (i32 s = scope_; s >= 0 && !path.layer; s = plan.scopes[s].parent) path.layer = plan.scopes[s].layer;
  for (auto const& p : paths_)
    if (p.stage == stage_ && p.axes == path.axes) return;
  paths_.push(path);
}

/// Ends the innermost policy. @pre something inside has a dim that it maps; else policy/unused.
constexpr void Builder::leave() {
  Policy const& policy = policies_.back();
  bool met = entered_.back() < 0;
  for (i32 v = entered_.back(); !met && v < plan.values.size(); ++v)
    for (auto const* dim : policy.dims) met = met || has(plan.values[v].dims, dim);
  if (!met) fail(Verdict{.rule = Rule::policy_unused, .dim = policy.dims[0], .axis = policy.axis});
  policies_.pop();
  entered_.pop();
}

/// Ends a stage of a pipeline. @pre it computes something; else pipeline/empty.
constexpr void Builder::end_stage() {
  for (i32 s = stage_begin_; s < plan.steps.size(); ++s)
    if (plan.steps[s].kind == StepKind::compute && plan.steps[s].stage == stage_) return;
  fail(Verdict{.rule = Rule::pipeline_empty, .axis = cut_.axis, .extent = stage_ - cut_.first_stage});
}

/// Opens a new stage; its mesh is what the policies in force bring, or what an earlier run found.
constexpr void Builder::next_stage() {
  if (in_loop()) return fail(Verdict{.rule = Rule::pipeline_nested});
  end_stage();
  stage_begin_ = plan.steps.size();
  Stage s;
  stage_ = plan.stages.size();
  s.mesh = stage_ < preset_meshes_.size() ? preset_meshes_[stage_] : active_axes();
  plan.stages.push(s);
}

/// Starts a pipeline around `x`: `cut` says how many numbered layers each stage runs, and under which policies.
constexpr void Builder::open_pipeline(AxisInfo const* axis, Cut const& cut, Value x) {
  if (cut_.open || in_loop() || plan.stages.size() > 1)
    return fail(Verdict{.rule = Rule::pipeline_nested, .axis = axis});
  cut_ = cut;
  cut_.first_stage = stage_, cut_.outer_policies = policies_.size(), cut_.open = true;
  cut_.scope = scope_, cut_.axis = axis;
  plan.above = active_axes().size();
  if (cut_.policies.empty()) return;
  for (auto const& p : cut_.policies[0]) enter(p, x);
  admit(x, cut_.outer_policies);
}

/// Ends the last stage's own policies. @pre every layer was dealt; else pipeline/units.
constexpr void Builder::close_pipeline() {
  if (!cut_.open) return;
  i32 left = 0;
  for (i32 n : cut_.layers) left += n;
  if (left || (!cut_.layers.empty() && stage_ - cut_.first_stage + 1 < cut_.layers.size()))
    fail(Verdict{.rule = Rule::pipeline_units, .extent = left, .ranks = cut_.layers.size()});
  while (policies_.size() > cut_.outer_policies) leave();
  cut_.open = false;
}

/// How many of the `wanted` numbered layers that come next the current stage runs; `x` goes on to the next stage when
/// this one is full.
constexpr i32 Builder::take_layers(Value x, i32 wanted) {
  if (!cut_.open || cut_.layers.empty() || in_loop()) return wanted;
  i32 at = stage_ - cut_.first_stage;
  for (; !cut_.layers[at] && at + 1 < cut_.layers.size(); ++at) advance_stage(x);
  i32 const taken = cut_.layers[at] < wanted ? cut_.layers[at] : wanted;
  if (!taken) {
    fail(Verdict{.rule = Rule::pipeline_units, .extent = wanted, .ranks = cut_.layers.size()});
    return wanted;
  }
  cut_.layers[at] -= taken;
  return taken;
}

/// After the last numbered layer: stages that run none still pass `x` on, so that what follows is on the last stage.
constexpr void Builder::end_layers(Value x) {
  if (!cut_.open || in_loop()) return;
  for (i32 n : cut_.layers)
    if (n) return;
  while (stage_ - cut_.first_stage + 1 < cut_.layers.size()) advance_stage(x);
}

/// True once, for the outermost sequence of a pipeline in which nothing repeats: it deals its children.
constexpr bool Builder::claim_children() {
  bool const mine = cut_.open && cut_.deals_children && !in_loop();
  cut_.deals_children = cut_.deals_children && !mine;
  return mine;
}

constexpr void Builder::advance_stage(Value x) {
  i32 const next = stage_ - cut_.first_stage + 1, scope = scope_;
  scope_ = cut_.scope;
  while (!cut_.policies.empty() && policies_.size() > cut_.outer_policies) leave();
  next_stage();
  for (i32 i = 0; !cut_.policies.empty() && i < cut_.policies[next].size(); ++i) enter(cut_.policies[next][i], x);
  if (!cut_.policies.empty()) admit(x, cut_.outer_policies);
  scope_ = scope;
}

/// Splits `x` by the dims that the policies from `from_policy` on map.
constexpr void Builder::admit(Value x, i32 from_policy) {
  fetch(x.id);
  for (i32 i = from_policy; i < policies_.size(); ++i)
    if (policies_[i].axis->size > 1)
      for (auto const* dim : policies_[i].dims)
        if (has(dims(x), dim)) move(x.id, axis_index(policies_[i].axis), split_on(dim));
}

namespace mesh_rules {

constexpr bool holds(Mesh const& mesh, AxisInfo const* axis) {
  for (auto const* a : mesh)
    if (a == axis) return true;
  return false;
}
/// First axis of `path` that breaks the order of `all`, or nullptr where path is a subsequence.
constexpr AxisInfo const* out_of_order(Mesh const& path, Mesh const& all) {
  i32 at = 0;
  for (auto const* axis : path) {
    while (at < all.size() && all[at] != axis) ++at;
    if (at == all.size()) return axis;
    ++at;
  }
  return nullptr;
}

}  // namespace mesh_rules

/// Ends the plan: settles the result, checks the mesh of every stage, numbers ranks.
/// @return false where a stage's axes stand in another order than its longest path: run again with preset(meshes()).
constexpr bool Builder::finish(Value result) {
  settle(result);
  if (plan.stages.size() > 1) end_stage();
  plan.result = current_[result.id];
  bool settled_meshes = true;
  i64 base = 0;
  List<Mesh> found;
  for (i32 s = 0; s < plan.stages.size(); ++s) {
    Mesh longest;
    for (auto const& p : paths_)
      if (p.stage == s && p.axes.size() > longest.size()) longest = p.axes;
    if (longest.empty()) longest = plan.stages[s].mesh;
    for (auto const& p : paths_) {
      if (p.stage != s) continue;
      for (auto const* axis : p.axes)
        if (!mesh_rules::holds(longest, axis))
          fail(Verdict{.rule = Rule::mesh_branches,
                       .layer = p.layer,
                       .path = p.path,
                       .axis = axis,
                       .other_axis = longest.back(),
                       .ranks = axis->size});
      if (auto const* axis = mesh_rules::out_of_order(p.axes, longest))
        fail(
            Verdict{.rule = Rule::mesh_order, .layer = p.layer, .path = p.path, .axis = axis, .other_axis = p.axes[0]});
    }
    found.push(longest);
    settled_meshes = settled_meshes && longest == plan.stages[s].mesh;
    Stage& stage = plan.stages[s];
    stage.ranks = 1, stage.base = base;
    i64 all = 1;
    for (i32 a = 0; a < stage.mesh.size(); ++a) {
      i64 const size = stage.mesh[a]->size;
      if (all > max_ranks / (size < 1 ? 1 : size)) {
        fail(Verdict{.rule = Rule::plan_room, .axis = stage.mesh[a], .op = "max_ranks", .extent = max_ranks});
        break;
      }
      all *= size;
      if (a >= plan.above) stage.ranks *= size;
    }
    base += stage.ranks;
  }
  preset_meshes_ = found;
  auto const ask = [&](i32 value) {  // inputs that are read, each once
    if (plan.values[value].value_class != ValueClass::input) return;
    for (i32 i : plan.inputs)
      if (i == value) return;
    plan.inputs.push(value);
  };
  for (auto const& s : plan.steps) {
    for (auto const& o : s.operands)
      if (!o.witness) ask(o.value);
    if (s.kind == StepKind::loop) ask(plan.loops[s.body].initial), ask(plan.loops[s.body].yielded);
  }
  for (auto const& o : plan.outputs) ask(o.value);
  ask(plan.result);
  return settled_meshes || !plan.verdict.ok();
}

}  // namespace dovetail
