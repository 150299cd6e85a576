// SPDX-License-Identifier: MIT
// The builder: layers are functions of it, and running them is planning. It asks decide() about every call, inserts
// the redistributions that follow, sends values between stages, and keeps every visible version of a value so that
// nothing is moved twice. It is a plain copyable value: a trial run is undone by assigning the copy made before it,
// which restores everything it holds. This is what it holds and offers; how calls are placed is in plan/placing.hpp,
// loops in plan/loop.hpp, stages and meshes in plan/stages.hpp.
#pragma once
#include <dovetail/plan/decide.hpp>
#include <dovetail/plan/plan.hpp>

namespace dovetail {

/// A policy in force: dims mapped onto an axis.
struct Policy {
  AxisInfo const* axis = nullptr;
  MappedDims dims{};
};

/// A policy around every layer of one role, where its axis is in force: what a layout text can say of inner layers.
/// Of several for one role the first stands outermost.
struct RolePolicy {
  Name role{};
  Policy policy{};
  i32 stage = -1;  ///< of the pipeline; -1: every stage
};

/// How a pipeline deals the numbered layers of what it wraps.
struct Cut {
  List<i32> layers{};             ///< still to run, by stage; empty: the stages are spelt out
  List<List<Policy>> policies{};  ///< of each stage, where they differ; empty: those around the model hold
  bool deals_children = false;    ///< nothing repeats: the first sequence deals its children
  bool open = false;              ///< layers are still being dealt
  i32 first_stage = 0;
  i32 outer_policies = 0;  ///< policies outside the pipeline
  i32 scope = 0;           ///< layer that the pipeline is: what crosses a seam belongs to it
  AxisInfo const* axis = nullptr;
};

/// Axes as one nesting of policies had them in force: what the mesh rules are checked on.
struct AxisPath {
  i32 stage = 0;
  Mesh axes{};
  LayerInfo const* layer = nullptr;
  Name path{};
};

/// What layers speak to: it records and places each op, and keeps the first rule that a layout breaks.
class Builder {
 public:
  PlanDraft plan{};

  constexpr Builder() {
    plan.stages.push(Stage{});
    plan.scopes.push(Scope{});
    paths_of_scopes_.push(Path{});
  }

  // ---- what layers use --------------------------------------------------------------------------------------------
  /// @pre the value is one of this builder's; of another the plan is refused and the dims are none
  constexpr Dims const& dims(Value v) const { return known(v) ? plan.values[v.id].dims : no_value_dims_; }
  constexpr Places const& places(Value v) const { return plan.values[current_[v.id]].places; }

  /// Runs one call: places it on every axis, moves its operands, emits the step.
  constexpr Vec<Value, max_results> apply_all(Call call);
  constexpr Value apply(Call const& call);

  /// A parameter of the current layer, named by its role; `*` in its path stands for the layer index.
  constexpr ParameterId parameter(Dims const& d, char const* role) {
    Path const path = path_of(role);
    for (i32 i = plan.parameters.size() - 1; i >= 0 && plan.parameters[i].stage == stage_; --i)
      if (hashes_[i] == path.hash && plan.parameters[i].layer.first == layer_.first)
        fail(Verdict{.rule = Rule::parameter_name, .path = path.name});
    return add_parameter(d, path, layer_, loop_);
  }
  /// A parameter of the whole model under an absolute name: one copy a stage that uses it, however often it is used.
  constexpr ParameterId shared_parameter(Dims const& d, char const* absolute) {
    Path const path = whole(Path{}.under(absolute));
    for (i32 i = 0; i < plan.parameters.size(); ++i)
      if (hashes_[i] == path.hash && plan.parameters[i].stage == stage_) return {i};
    ParameterId const made = add_parameter(d, path, LayerIndex{}, -1);
    for (i32 i = 0; i < made.id; ++i)
      if (hashes_[i] == path.hash) {
        plan.parameters[i].tied = plan.parameters[made.id].tied = true;
        plan.ties.push({i, made.id});
      }
    return made;
  }
  /// A state of the current layer (a KV cache): it outlives the run.
  constexpr StateId state(Dims const& d, char const* role) {
    Tensor t;
    t.dims = d, t.storage = Storage::cache, t.value_class = ValueClass::state;
    i32 const leaf = add_value(t);
    plan.states.push(State{path_of(role).name, layer_, leaf, stage_, loop_});
    return {plan.states.size() - 1};
  }
  /// Names a value that a run hands out besides the result.
  constexpr void output(char const* name, Value v);
  /// A value that a run is given.
  constexpr Value input(Dims const& d, Storage storage) {
    Tensor t;
    t.dims = d, t.storage = storage, t.value_class = ValueClass::input;
    return {add_value(t)};
  }
  /// Makes a Partial value Whole: what may leave a seam.
  constexpr void settle(Value v);

  // ---- layers and policies ----------------------------------------------------------------------------------------
  /// Role of numbered layers: `layers.*`, once however deep they nest.
  constexpr char const* layers_role() const { return layer_.first >= 0 ? "" : "layers.*"; }
  /// Runs `body` as a layer: its steps and errors carry the type and the role.
  constexpr Value in_layer(LayerInfo const* layer, char const* role, Value x, auto const& body) {
    for (i32 i = wrapped_ + 1; i < role_policies_.size() && *role; ++i) {
      RolePolicy const& r = role_policies_[i];
      if (!same_text(r.role.chars, role) || !in_force(r.policy.axis)) continue;
      if (r.stage >= 0 && r.stage != stage_ - cut_.first_stage) continue;
      i32 const before = wrapped_;
      wrapped_ = i;
      x = under(r.policy, x, [&](Builder& b, Value v) { return b.in_layer(layer, role, v, body); });
      wrapped_ = before;
      return x;
    }
    i32 const outer = scope_, wrapped = wrapped_;
    wrapped_ = -1;
    paths_of_scopes_.push(path_of(role));
    plan.scopes.push(Scope{layer, paths_of_scopes_.back().name, outer, stage_, loop_});
    scope_ = plan.scopes.size() - 1;
    bool const checked_before = checks_;
    Dims const given = dims(x);
    for (i32 i = 0; layer && checks_ && i < checked_.size(); ++i)
      checks_ = !(checked_[i].layer == layer && checked_[i].given == given);
    Value const y = body(*this, x);
    if (known(y)) x = y;
    else fail(Verdict{.rule = Rule::layer_value});
    if (layer && checks_) checked_.push(Checked{layer, given});
    checks_ = checked_before;
    scope_ = outer, wrapped_ = wrapped;
    return x;
  }
  /// Runs `body` under a policy; an `x` that has a mapped dim is split by it here.
  constexpr Value under(Policy const& policy, Value x, auto const& body) {
    enter(policy, x);
    admit(x, policies_.size() - 1);
    x = body(*this, x);
    leave();
    return x;
  }
  constexpr void add_role_policy(RolePolicy const& p) { role_policies_.push(p); }

  /// One loop over `count` iterations of `body(builder, argument)`; see plan/loop.hpp.
  constexpr Value loop(Value x, i32 count, auto const& body);
  /// Numbered layer: its parameters are named by the layer counter, which it moves on.
  constexpr Value numbered(Value x, auto const& body);

  // ---- stages; see plan/stages.hpp ----------------------------------------------------------------------------------
  constexpr void open_pipeline(AxisInfo const* axis, Cut const& cut, Value x);
  constexpr void close_pipeline();
  constexpr i32 take_layers(Value x, i32 wanted);
  constexpr void end_layers(Value x);
  constexpr bool claim_children();
  constexpr void next_stage();
  constexpr bool finish(Value result);
  constexpr void preset(List<Mesh> const& meshes) {
    preset_meshes_ = meshes;
    if (!meshes.empty()) plan.stages[0].mesh = meshes[0];
  }
  /// Order of axes of every stage as finish() found it.
  constexpr List<Mesh> const& meshes() const { return preset_meshes_; }

  constexpr Mesh& mesh() { return plan.stages[stage_].mesh; }
  constexpr Mesh const& mesh() const { return plan.stages[stage_].mesh; }
  constexpr i32 stage() const { return stage_; }
  constexpr bool in_loop() const { return loop_ >= 0; }
  /// @return whether an axis can be used; else the plan is refused
  constexpr bool accepts(AxisInfo const* axis) {
    i64 const fault = faulty_size(*axis);
    if (fault != 1) fail(Verdict{.rule = Rule::size_range, .axis = axis, .extent = fault});
    if (!is_legal_name(axis->name)) fail(Verdict{.rule = Rule::name_legal, .axis = axis});
    return fault == 1;
  }
  /// Records the first broken rule, with the layer it was broken in.
  constexpr void fail(Verdict v) {
    if (!plan.verdict.ok()) return;
    if (v.path.empty()) v.path = plan.scopes[scope_].path;
    for (i32 s = scope_; s >= 0 && !v.layer; s = plan.scopes[s].parent) v.layer = plan.scopes[s].layer;
    plan.verdict = v;
  }

 private:
  List<Mesh> preset_meshes_{};    ///< order of axes that an earlier run found, by stage
  List<i32> current_{};           ///< by handle: the version that readers see
  List<i32> next_version_{};      ///< by value: the next version of the same origin, or -1
  List<Path> paths_of_scopes_{};  ///< by scope
  List<std::uint64_t> hashes_{};  ///< by parameter: of its name
  List<Policy> policies_{};
  List<i32> entered_{};  ///< by policy: the first value made inside; -1: what came in has a mapped dim
  MappedDims no_dims_{};
  Dims no_value_dims_{};
  List<AxisPath> paths_{};
  /// A layer type makes the same calls of the same dims: what was checked in one stage need not be in the next.
  struct Checked {
    LayerInfo const* layer = nullptr;
    Dims given{};
  };
  List<Checked> checked_{};
  bool checks_ = true;
  List<RolePolicy> role_policies_{};
  i32 wrapped_ = -1;  ///< the last role policy around the layer that is about to run
  Cut cut_{};
  LayerIndex layer_{};  ///< of the numbered layer being built
  i64 layers_ = 0;      ///< numbered layers so far
  i32 scope_ = 0, stage_ = 0, loop_ = -1;
  i32 stage_begin_ = 0;  ///< first step made since the stage was opened
  Phase phase_ = Phase::forward;

  constexpr Path whole(Path const& p) {
    if (p.full) fail(Verdict{.rule = Rule::plan_room, .path = p.name, .op = "max_name", .extent = max_name});
    if (p.odd) fail(Verdict{.rule = Rule::name_legal, .path = p.name});
    return p;
  }
  constexpr Path path_of(char const* role) { return whole(paths_of_scopes_[scope_].under(role)); }
  constexpr bool known(Value v) const { return v.id >= 0 && v.id < current_.size(); }
  constexpr Tensor& tensor(i32 handle) { return plan.values[current_[handle]]; }
  constexpr Tensor const& tensor(i32 handle) const { return plan.values[current_[handle]]; }

  constexpr i32 add_value(Tensor t) {
    t.stage = stage_, t.loop = loop_, t.step = -1;
    i32 const id = plan.values.size();
    t.origin = id;
    plan.values.push(t);
    current_.push(id);
    next_version_.push(-1);
    return id;
  }
  constexpr i32 add_version(Tensor t, i32 origin) {
    i32 const id = add_value(t);
    plan.values[id].origin = origin;
    i32 last = origin;
    while (next_version_[last] >= 0) last = next_version_[last];
    next_version_[last] = id;
    return id;
  }
  constexpr ParameterId add_parameter(Dims const& d, Path const& path, LayerIndex const& layer, i32 loop) {
    i32 const outer = loop_;
    loop_ = loop;
    Tensor t;
    t.dims = d, t.storage = Storage::weight, t.value_class = ValueClass::parameter;
    Parameter p;
    p.name = path.name, p.layer = layer, p.value = add_value(t), p.stage = stage_, p.loop = loop;
    loop_ = outer;
    plan.parameters.push(p);
    hashes_.push(path.hash);
    return {plan.parameters.size() - 1};
  }
  constexpr void emit(Step s) {
    s.stage = stage_, s.loop = loop_, s.scope = scope_, s.phase = phase_;
    for (i32 r : s.results) plan.values[r].step = plan.steps.size();
    plan.steps.push(s);
  }
  constexpr bool in_scope(i32 of, i32 loop) const {
    for (;; loop = plan.loops[loop].parent) {
      if (of == loop || (loop >= 0 && plan.loops[loop].twin >= 0 && plan.loops[loop].twin == of)) return true;
      if (loop < 0) return false;
    }
  }
  constexpr bool visible(Tensor const& t) const { return t.stage == stage_ && in_scope(t.loop, loop_); }
  /// What the innermost policy maps to an axis; nothing to one of a single rank, which has nothing to share.
  constexpr MappedDims const& mapped_on(AxisInfo const* axis) const {
    if (axis->size == 1) return no_dims_;
    for (i32 i = policies_.size() - 1; i >= 0; --i)
      if (policies_[i].axis == axis) return policies_[i].dims;
    return no_dims_;
  }
  constexpr bool in_force(AxisInfo const* axis) const {
    for (i32 i = 0; i < policies_.size(); ++i)
      if (policies_[i].axis == axis) return true;
    return false;
  }
  constexpr i32 axis_index(AxisInfo const* axis) {
    for (i32 i = 0; i < mesh().size(); ++i)
      if (mesh()[i] == axis) return i;
      else if (same_text(mesh()[i]->name, axis->name))
        fail(Verdict{.rule = Rule::name_legal, .axis = axis, .other_axis = mesh()[i]});
    if (mesh().size() < max_axes) mesh().push(axis);
    else fail(Verdict{.rule = Rule::plan_room, .op = "max_axes", .extent = max_axes});
    return mesh().size() - 1;
  }
  constexpr Mesh active_axes() const {
    Mesh axes;
    for (auto const& p : policies_) {
      bool known = false;
      for (auto const* a : axes) known = known || a == p.axis;
      if (!known && axes.size() < max_axes) axes.push(p.axis);
    }
    return axes;
  }

  constexpr i32 axis_without(i64 units, Places const& places, DimInfo const* dim, i32 axis) const;
  constexpr i64 least_units(i64 units, Places const& places, DimInfo const* dim, i32 axis, i32 until) const;
  constexpr void check_split(Dims const& d, Places const& places, DimInfo const* dim);
  constexpr void check_call(Call const& call);
  constexpr bool take_version(i32 handle, Places const& places);
  constexpr bool peel(i32 handle, i32 axis, Place from, Place to);
  constexpr void move(i32 handle, i32 axis, Place to);
  constexpr void bring(i32 handle, Places const& to);
  constexpr void fetch(i32 handle);
  constexpr void advance_stage(Value x);
  constexpr void end_stage();
  constexpr void enter(Policy const& policy, Value x);
  constexpr void leave();
  constexpr void admit(Value x, i32 from_policy);
};

}  // namespace dovetail
