// SPDX-License-Identifier: MIT
// The builder: layers are functions of it, and running them is planning. It asks decide() about every call, inserts
// the redistributions that follow, sends values between stages, and keeps every visible version of a value so that
// nothing is moved twice. It is a plain copyable value: a trial run is undone by assigning the copy made before it,
// which restores everything it holds. Loops are in plan/loop.hpp, stages and meshes in plan/stages.hpp.
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
struct RolePolicy {
  Name role{};
  Policy policy{};
};

/// How a pipeline deals the numbered layers of what it wraps.
struct Cut {
  List<i32> layers{};             ///< still to run, by stage; empty: the stages are spelt out
  List<List<Policy>> policies{};  ///< of each stage, where they differ; empty: those around the model hold
  bool deals_children = false;    ///< nothing repeats: the first sequence deals its children
  bool open = false;              ///< layers are still being dealt
  i32 first_stage = 0;
  i32 outer_policies = 0;         ///< policies outside the pipeline
};

/// Axes as one nesting of policies had them in force: what the mesh rules are checked on.
struct AxisPath {
  i32 stage = 0;
  Mesh axes{};
  LayerInfo const* layer = nullptr;
  Name path{};
};

class Builder {
 public:
  PlanDraft plan{};

  constexpr Builder() {
    plan.stages.push(Stage{});
    plan.scopes.push(Scope{});
    paths_of_scopes_.push(Path{});
  }

  // ---- what layers use --------------------------------------------------------------------------------------------
  constexpr Dims const& dims(Value v) const { return plan.values[v.id].dims; }
  constexpr Places const& places(Value v) const { return plan.values[current_[v.id]].places; }

  /// Runs one call: places it on every axis, moves its operands, emits the step.
  constexpr Vec<Value, max_results> apply_all(Call call);
  constexpr Value apply(Call const& call) { return apply_all(call)[0]; }

  /// A parameter of the current layer, named by its role; `*` in its path stands for the layer index.
  constexpr ParameterId parameter(Dims const& d, char const* role) {
    Path const path = paths_of_scopes_[scope_].under(role);
    for (i32 i = plan.parameters.size() - 1; i >= 0 && plan.parameters[i].stage == stage_; --i)
      if (hashes_[i] == path.hash && plan.parameters[i].layer.first == layer_.first)
        fail(Verdict{.rule = Rule::parameter_name, .path = path.name});
    return add_parameter(d, path, layer_, loop_);
  }
  /// A parameter of the whole model under an absolute name: one copy a stage that uses it, however often it is used.
  constexpr ParameterId shared_parameter(Dims const& d, char const* absolute) {
    Path const path = Path{}.under(absolute);
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
    plan.states.push(State{paths_of_scopes_[scope_].under(role).name, layer_, leaf, stage_, loop_});
    return {plan.states.size() - 1};
  }
  /// Names a value that a run hands out besides the result.
  constexpr void output(char const* name, Value v) {
    settle(v);
    plan.outputs.push(Output{dovetail::name(name), current_[v.id]});
  }
  /// A value that a run is given.
  constexpr Value input(Dims const& d, Storage storage) {
    Tensor t;
    t.dims = d, t.storage = storage, t.value_class = ValueClass::input;
    return {add_value(t)};
  }
  /// Makes a Partial value Whole: what may leave a seam.
  constexpr void settle(Value v) {
    for (i32 a = 0; a < mesh().size(); ++a)
      if (places(v)[a].partial()) move(v.id, a, whole_place);
  }

  // ---- layers and policies ----------------------------------------------------------------------------------------
  /// Role of numbered layers: `layers.*`, once however deep they nest.
  constexpr char const* layers_role() const {
    return layer_.first >= 0 ? "" : "layers.*";
  }
  /// Runs `body` as a layer: its steps and errors carry the type and the role.
  constexpr Value in_layer(LayerInfo const* layer, char const* role, Value x, auto const& body) {
    for (i32 i = 0; i < role_policies_.size() && *role; ++i) {
      RolePolicy const& r = role_policies_[i];
      if (wrapped_ == i || !same_text(r.role.chars, role) || !in_force(r.policy.axis)) continue;
      i32 const before = wrapped_;
      wrapped_ = i;
      x = under(r.policy, x, [&](Builder& b, Value v) { return b.in_layer(layer, role, v, body); });
      wrapped_ = before;
      return x;
    }
    i32 const outer = scope_, wrapped = wrapped_;
    wrapped_ = -1;
    paths_of_scopes_.push(paths_of_scopes_[outer].under(role));
    plan.scopes.push(Scope{layer, paths_of_scopes_.back().name, outer, stage_, loop_});
    scope_ = plan.scopes.size() - 1;
    bool const checked_before = checks_;
    Dims const given = dims(x);
    for (i32 i = 0; layer && checks_ && i < checked_.size(); ++i)
      checks_ = !(checked_[i].layer == layer && checked_[i].given == given);
    x = body(*this, x);
    if (layer && checks_) checked_.push(Checked{layer, given});
    checks_ = checked_before;
    scope_ = outer, wrapped_ = wrapped;
    return x;
  }
  /// Runs `body` under a policy; an `x` that has a mapped dim is split by it here.
  constexpr Value under(Policy const& policy, Value x, auto const& body) {
    enter(policy);
    admit(x, policies_.size() - 1);
    x = body(*this, x);
    policies_.pop();
    return x;
  }
  constexpr void enter(Policy const& policy);
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
  /// Records the first broken rule, with the layer it was broken in.
  constexpr void fail(Verdict v) {
    if (!plan.verdict.ok()) return;
    if (v.path.empty()) v.path = plan.scopes[scope_].path;
    for (i32 s = scope_; s >= 0 && !v.layer; s = plan.scopes[s].parent) v.layer = plan.scopes[s].layer;
    plan.verdict = v;
  }

 private:
  List<Mesh> preset_meshes_{};  ///< order of axes that an earlier run found, by stage
  List<i32> current_{};          ///< by handle: the version that readers see
  List<i32> next_version_{};     ///< by value: the next version of the same origin, or -1
  List<Path> paths_of_scopes_{}; ///< by scope
  List<std::uint64_t> hashes_{}; ///< by parameter: of its name
  List<Policy> policies_{};
  MappedDims no_dims_{};
  List<AxisPath> paths_{};
  /// A layer type makes the same calls of the same dims: what was checked in one stage need not be in the next.
  struct Checked {
    LayerInfo const* layer = nullptr;
    Dims given{};
  };
  List<Checked> checked_{};
  bool checks_ = true;
  List<RolePolicy> role_policies_{};
  i32 wrapped_ = -1;  ///< role policy whose layer is about to run
  Cut cut_{};
  LayerIndex layer_{};   ///< of the numbered layer being built
  i64 layers_ = 0;       ///< numbered layers so far
  i32 scope_ = 0, stage_ = 0, loop_ = -1;
  Phase phase_ = Phase::forward;

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
  constexpr MappedDims const& mapped_on(AxisInfo const* axis) const {
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
    mesh().push(axis);
    return mesh().size() - 1;
  }
  constexpr Mesh active_axes() const {
    Mesh axes;
    for (auto const& p : policies_) {
      bool known = false;
      for (auto const* a : axes) known = known || a == p.axis;
      if (!known) axes.push(p.axis);
    }
    return axes;
  }

  constexpr void check_split(Dims const& d, Places const& places, DimInfo const* dim);
  constexpr void check_call(Call const& call);
  constexpr void move(i32 handle, i32 axis, Place to);
  constexpr void bring(i32 handle, Places const& to) {
    for (i32 a = 0; a < mesh().size(); ++a) move(handle, a, to[a]);
  }
  constexpr void fetch(i32 handle);
  constexpr void advance_stage(Value x);
  constexpr void admit(Value x, i32 from_policy);
};

constexpr StepKind redistribution(Place from, Place to) {
  if (from.partial()) return to.cut() ? StepKind::reduce_scatter : StepKind::all_reduce;
  if (from.kind == Kind::shared) return StepKind::share_reduce;
  if (from.kind == Kind::split)
    return to.kind == Kind::shared  ? StepKind::own
           : to.kind == Kind::split ? StepKind::all_to_all
                                    : StepKind::all_gather;
  return StepKind::slice;
}

/// Every rank that holds a share must get a unit, counted through the whole stack of axes on the dim.
constexpr void Builder::check_split(Dims const& d, Places const& places, DimInfo const* dim) {
  Extent const* e = find(d, dim);
  if (!e || e->symbol != Symbol::fixed || dim->may_be_empty) return;
  i64 least = ceil_div(e->lead, e->unit), ranks = 1;
  for (i32 a = 0; a < mesh().size(); ++a) {
    if (!places[a].cut() || places[a].dim != dim) continue;
    AxisInfo const& axis = *mesh()[a];
    ranks *= axis.holders();
    i64 smallest = least;
    for (i32 r = 0; r < axis.size; ++r) {
      i64 const units = units_of(least, axis, r);
      if (axis.share(r) > 0 && units < smallest) smallest = units;
    }
    if (smallest > 0) {
      least = smallest;
      continue;
    }
    fail(Verdict{.rule = Rule::placement_split, .dim = dim, .axis = &axis, .extent = e->lead,
          .units = ceil_div(e->lead, e->unit), .ranks = ranks});
    return;
  }
}

/// The call says one thing of each dim, and its operands, parameters and results agree with it and with each other.
constexpr void Builder::check_call(Call const& call) {
  struct Seen {
    Extent const* extent = nullptr;
    i32 first = 0, last = 0;  // tensors that have it
  };
  Vec<Seen, max_roles> seen;
  i32 tensors = 0;
  auto const reject = [&](Rule rule, DimInfo const* dim, i64 extent, i64 units) {
    fail(Verdict{.rule = rule, .dim = dim, .op = call.op->name, .extent = extent, .units = units});
  };
  auto const look_at = [&](Dims const& d) {
    for (Extent const* e = d.begin(); e != d.end(); ++e) {
      Seen* known = seen.begin();
      while (known != seen.end() && known->extent->dim != e->dim) ++known;
      if (known == seen.end()) seen.push(Seen{e, tensors, -1});
      if (known->last == tensors) reject(Rule::op_roles, e->dim, e->size, 0);  // twice in one tensor: take a guise
      if (known->extent->size != e->size || known->extent->symbol != e->symbol)
        reject(Rule::op_extents, e->dim, known->extent->size, e->size);
      known->last = tensors;
    }
    ++tensors;
  };
  for (auto const& o : call.operands) look_at(dims(o.value));
  for (auto p : call.parameters) look_at(plan.values[plan.parameters[p.id].value].dims);
  i32 const read = tensors;
  for (auto const& r : call.results) look_at(r.dims);
  for (Seen const* s = seen.begin(); s != seen.end() && s->first < read; ++s) {
    DimInfo const* dim = s->extent->dim;
    Role const role = call.role_of(dim);
    if (role != Role::mapped && role != Role::contracted) continue;
    bool in_result = false;
    for (auto const& r : call.results)
      in_result = in_result || has_exactly(r.dims, dim) || (dim->leader && has_exactly(r.dims, dim->leader));
    if (in_result != (role == Role::mapped)) reject(Rule::op_roles, dim, s->extent->size, 0);
  }
}

constexpr Vec<Value, max_results> Builder::apply_all(Call call) {
  for (auto const& o : call.operands)
    if (!o.witness) fetch(o.value.id);
  if (checks_) check_call(call);
  Places result[max_results]{};
  for (i32 a = 0; a < mesh().size(); ++a) {
    Vec<Arrival, max_operands> operands;
    Vec<Arrival, max_parameters> parameters;
    for (auto const& o : call.operands) operands.push({&dims(o.value), places(o.value)[a], true});
    for (auto p : call.parameters) {
      Parameter const& q = plan.parameters[p.id];
      parameters.push({&plan.values[q.value].dims, tensor(q.value).places[a], q.placed});
    }
    Decision const d = decide(call, operands, parameters, mapped_on(mesh()[a]));
    if (d.rule != Rule::ok)
      fail(Verdict{.rule = d.rule, .dim = d.dim, .other_dim = d.other_dim, .axis = mesh()[a], .op = call.op->name});
    for (i32 i = 0; i < call.operands.size(); ++i)
      if (!call.operands[i].witness) move(call.operands[i].value.id, a, d.operand[i]);
    for (i32 i = 0; i < call.parameters.size(); ++i) {
      Parameter const& q = plan.parameters[call.parameters[i].id];
      if (q.placed) {
        move(q.value, a, d.parameter[i]);
        continue;
      }
      Tensor& leaf = plan.values[q.value];
      leaf.places[a] = d.parameter[i];
      if (d.parameter[i].cut()) check_split(leaf.dims, leaf.places, d.parameter[i].dim);
    }
    for (i32 i = 0; i < call.results.size(); ++i) result[i][a] = d.result[i];
  }
  Step s;
  s.op = call.op, s.numbers = call.numbers, s.state = call.state.id;
  for (auto const& o : call.operands) s.operands.push({current_[o.value.id], o.witness});
  for (auto p : call.parameters) {
    plan.parameters[p.id].placed = true;
    s.parameters.push({p.id, current_[plan.parameters[p.id].value]});
  }
  if (s.state >= 0) plan.values[plan.states[s.state].value].places = result[0];
  Vec<Value, max_results> made;
  for (i32 i = 0; i < call.results.size(); ++i) {
    Tensor t;
    t.dims = call.results[i].dims, t.storage = call.results[i].storage, t.places = result[i];
    made.push({add_value(t)});
    s.results.push(made.back().id);
  }
  emit(s);
  return made;
}

/// Changes the placement of a value on one axis: takes a version that already stands so, or emits the redistribution.
constexpr void Builder::move(i32 handle, i32 axis, Place to) {
  Place from = tensor(handle).places[axis];
  if (from == to) return;
  if (from.kind == Kind::shared && !(to == split_on(from.dim))) {
    move(handle, axis, split_on(from.dim));
    from = tensor(handle).places[axis];
    if (from == to) return;
  }
  bool const owns = from.kind == Kind::split && to == shared_on(from.dim);  // a local mask: inner axes stay as they are
  for (i32 i = mesh().size() - 1; i > axis && !owns; --i) {
    Place const inner = tensor(handle).places[i];
    if (inner.cut() && ((from.cut() && inner.dim == from.dim) || (to.cut() && inner.dim == to.dim)))
      move(handle, i, whole_place);  // peel: an outer split of a dim may not change under an inner one
  }
  Tensor moved = tensor(handle);
  moved.places[axis] = to;
  i32 const origin = plan.values[current_[handle]].origin;
  for (i32 i = origin; i >= 0; i = next_version_[i])
    if (visible(plan.values[i]) && plan.values[i].places == moved.places) {
      current_[handle] = i;
      return;
    }
  if (to.cut()) check_split(moved.dims, moved.places, to.dim);
  if (moved.value_class == ValueClass::input && from.whole()) {  // a run is asked for the part that is read
    i32 const outer = loop_;
    loop_ = -1;
    current_[handle] = add_version(moved, origin);
    loop_ = outer;
    return;
  }
  moved.value_class = ValueClass::temporary;
  Step s;
  s.kind = redistribution(from, to);
  s.axis = axis, s.from = from, s.to = to;
  s.operands.push({current_[handle], false});
  i32 const version = add_version(moved, origin);
  s.results.push(version);
  current_[handle] = version;
  emit(s);
}

constexpr void Builder::enter(Policy const& policy) {
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
  policies_.push(policy);
  axis_index(policy.axis);
  AxisPath path{stage_, active_axes(), nullptr, plan.scopes[scope_].path};
  for (i32 s = scope_; s >= 0 && !path.layer; s = plan.scopes[s].parent) path.layer = plan.scopes[s].layer;
  for (auto const& p : paths_)
    if (p.stage == stage_ && p.axes == path.axes) return;
  paths_.push(path);
}

}  // namespace dovetail
