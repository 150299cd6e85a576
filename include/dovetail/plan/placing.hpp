// SPDX-License-Identifier: MIT
// Placing calls: what the builder does for each one. It asks decide() axis by axis, moves operands to where they must
// be (or takes a version that stands there already), sends values that live on another stage, and emits the step.
#pragma once
#include <dovetail/plan/builder.hpp>

namespace dovetail {

/// The step that takes a value from one place on an axis to another.
constexpr StepKind redistribution(Place from, Place to) {
  if (from.partial()) return to.cut() ? StepKind::reduce_scatter : StepKind::all_reduce;
  if (from.kind == Kind::shared) return StepKind::share_reduce;
  if (from.kind == Kind::split)
    return to.kind == Kind::shared  ? StepKind::own
           : to.kind == Kind::split ? StepKind::all_to_all
                                    : StepKind::all_gather;
  return StepKind::slice;
}

/// First axis, from `axis` on, that leaves a rank with a share without any of the `units` that `dim` has there; -1
/// where none does. Blocks that differ are followed each: under stated shares more units can be fewer for one rank.
constexpr i32 Builder::axis_without(i64 units, Places const& places, DimInfo const* dim, i32 axis) const {
  while (axis < mesh().size() && !(places[axis].cut() && places[axis].dim == dim)) ++axis;
  if (axis == mesh().size()) return -1;
  AxisInfo const& a = *mesh()[axis];
  i32 const next = a.shares || a.size == 1 ? 1 : a.size - 1;  // balanced blocks: the largest and the smallest
  for (i32 r = 0; r < a.size; r += next)
    if (a.share(r) > 0 && units_of(units, a, r) == 0) return axis;
  for (i32 r = 0; r < a.size; r += next) {
    i32 const inner = a.share(r) > 0 ? axis_without(units_of(units, a, r), places, dim, axis + 1) : -1;
    if (inner >= 0) return inner;
  }
  return -1;
}

/// Units that the axes before `until` leave to the rank that gets fewest of `units`; ranks without a share count not.
constexpr i64 Builder::least_units(i64 units, Places const& places, DimInfo const* dim, i32 axis, i32 until) const {
  while (axis < until && !(places[axis].cut() && places[axis].dim == dim)) ++axis;
  if (axis == until) return units;
  AxisInfo const& a = *mesh()[axis];
  i64 least = units;
  for (i32 r = 0; r < a.size; ++r) {
    if (a.share(r) < 1) continue;
    i64 const left = least_units(units_of(units, a, r), places, dim, axis + 1, until);
    least = left < least ? left : least;
  }
  return least;
}

/// Every rank that holds a share must get a unit, counted through the whole stack of axes on the dim.
constexpr void Builder::check_split(Dims const& d, Places const& places, DimInfo const* dim) {
  Extent const* e = plan.verdict.ok() ? find(d, dim) : nullptr;
  if (!e || e->symbol != Symbol::fixed || dim->may_be_empty) return;
  i64 const units = ceil_div(e->lead, e->unit);
  i32 const empty = axis_without(units, places, dim, 0);
  if (empty < 0) return;
  auto const ranks_to = [&](i32 axis) {
    i64 ranks = 1;
    for (i32 a = 0; a <= axis; ++a)
      if (places[a].cut() && places[a].dim == dim) ranks *= mesh()[a]->holders();
    return ranks;
  };
  i32 blamed = empty;
  if (ranks_to(empty) <= units)  // there are units enough: a stated share is what is too small
    for (i32 a = empty; !mesh()[blamed]->shares && a >= 0; --a)
      if (places[a].cut() && places[a].dim == dim && mesh()[a]->shares) blamed = a;
  fail(Verdict{.rule = Rule::placement_split,
               .dim = dim,
               .axis = mesh()[blamed],
               .extent = e->lead,
               .units = units,
               .ranks = ranks_to(blamed),
               .left = least_units(units, places, dim, 0, blamed)});
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
    i64 elements = 1;
    for (Extent const* e = d.begin(); e != d.end(); ++e) {
      Seen* known = seen.begin();
      while (known != seen.end() && known->extent->dim != e->dim) ++known;
      if (known == seen.end()) {
        if (seen.size() == max_roles || !is_legal_name(e->dim->name)) {
          if (seen.size() == max_roles) fail(Verdict{.rule = Rule::plan_room, .op = "max_roles", .extent = max_roles});
          return fail(Verdict{.rule = Rule::name_legal, .dim = e->dim, .op = call.op->name});
        }
        seen.push(Seen{e, tensors, -1});
      }
      if (known->last == tensors) reject(Rule::op_roles, e->dim, e->size, 0);  // twice in one tensor: take a guise
      if (known->extent->size != e->size || known->extent->symbol != e->symbol)
        reject(Rule::op_extents, e->dim, known->extent->size, e->size);
      known->last = tensors;
      if (e->symbol != Symbol::fixed) continue;
      if (e->size < 1 || e->unit < 1 || e->lead < e->size || elements > max_elements / e->size)
        return fail(Verdict{.rule = Rule::size_range,
                            .dim = e->dim,
                            .op = call.op->name,
                            .extent = e->size,
                            .units = e->unit,
                            .ranks = e->lead});
      elements *= e->size;
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
  i32 const values = current_.size(), known_parameters = plan.parameters.size();
  bool sound = call.results.count && call.state.id < plan.states.size();
  for (Operand const *o = call.operands.items, *end = o + call.operands.count; o != end; ++o)
    sound = sound && o->value.id >= 0 && o->value.id < values;
  for (ParameterId const *p = call.parameters.items, *end = p + call.parameters.count; p != end; ++p)
    sound = sound && p->id >= 0 && p->id < known_parameters;
  if (!sound || call.full) {
    if (call.full) fail(Verdict{.rule = Rule::plan_room, .op = call.full, .extent = call.most});
    fail(Verdict{.rule = Rule::layer_value, .op = call.op->name});
    Vec<Value, max_results> first;
    for (int i = 0; i < max_results; ++i) first.push(Value{0});
    return first;
  }
  for (auto const& o : call.operands)
    if (!o.witness) fetch(o.value.id);
  if (checks_) check_call(call);
  Places result[max_results]{};
  Mesh const& axes = mesh();
  for (i32 a = 0; a < axes.count; ++a) {
    Vec<Arrival, max_operands> operands;
    Vec<Arrival, max_parameters> parameters;
    for (Operand const *o = call.operands.items, *end = o + call.operands.count; o != end; ++o) {
      Tensor const& t = tensor(o->value.id);
      operands.items[operands.count++] = {&t.dims, t.places[a], true};
    }
    for (ParameterId const *p = call.parameters.items, *end = p + call.parameters.count; p != end; ++p) {
      Parameter const& q = plan.parameters[p->id];
      Tensor const& t = tensor(q.value);
      parameters.items[parameters.count++] = {&t.dims, t.places[a], q.placed};
    }
    Decision const d = decide(call, operands, parameters, mapped_on(axes.items[a]));
    if (d.rule != Rule::ok)
      fail(Verdict{.rule = d.rule, .dim = d.dim, .other_dim = d.other_dim, .axis = axes[a], .op = call.op->name});
    for (i32 i = 0; i < call.operands.count; ++i)
      if (!call.operands.items[i].witness) move(call.operands.items[i].value.id, a, d.operand[i]);
    for (i32 i = 0; i < call.parameters.count; ++i) {
      Parameter const& q = plan.parameters[call.parameters.items[i].id];
      if (q.placed) {
        move(q.value, a, d.parameter[i]);
        continue;
      }
      Tensor& leaf = plan.values[q.value];
      leaf.places[a] = d.parameter[i];
      if (d.parameter[i].cut()) check_split(leaf.dims, leaf.places, d.parameter[i].dim);
    }
    for (i32 i = 0; i < call.results.count; ++i) result[i][a] = d.result[i];
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

/// Makes a visible version that stands at `places` the one that readers see. @return false where there is none
constexpr bool Builder::take_version(i32 handle, Places const& places) {
  for (i32 i = plan.values[current_[handle]].origin; i >= 0; i = next_version_[i])
    if (visible(plan.values[i]) && plan.values[i].places == places) {
      current_[handle] = i;
      return true;
    }
  return false;
}

/// Makes whole what inner axes split of a dim that changes on `axis`: an outer split of a dim may not change under an
/// inner one. @return whether there was any
constexpr bool Builder::peel(i32 handle, i32 axis, Place from, Place to) {
  bool any = false;
  for (i32 i = mesh().count - 1; i > axis; --i) {
    Place const inner = tensor(handle).places[i];
    if (!inner.cut() || !((from.cut() && inner.dim == from.dim) || (to.cut() && inner.dim == to.dim))) continue;
    move(handle, i, whole_place);
    any = true;
  }
  return any;
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
  if (to.kind == Kind::shared && !(from == split_on(to.dim))) {  // only what is owned of a split adds up to the value
    move(handle, axis, split_on(to.dim));
    from = tensor(handle).places[axis];
  }
  Tensor moved = tensor(handle);
  moved.places[axis] = to;
  if (take_version(handle, moved.places)) return;
  if (to.kind != Kind::shared && peel(handle, axis, from, to)) {  // a mask is local: inner axes stay as they are
    moved = tensor(handle);
    moved.places[axis] = to;
    if (take_version(handle, moved.places)) return;
  }
  i32 const origin = moved.origin;
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

/// Makes a value of another stage readable here: settles it there, keeps its split on axes that both stages have,
/// and sends it. A model input is asked for where it is read.
constexpr void Builder::fetch(i32 handle) {
  if (tensor(handle).stage == stage_) return;
  i32 const origin = tensor(handle).origin;
  for (i32 i = origin; i >= 0; i = next_version_[i])
    if (visible(plan.values[i])) {
      current_[handle] = i;
      return;
    }
  i32 const here = stage_, loop = loop_, scope = scope_;
  Places const nowhere{};  // named: g++ 12 fails on the assignment of a temporary
  Tensor arrived = tensor(handle);
  if (arrived.value_class == ValueClass::input) {
    loop_ = -1;
    arrived.places = nowhere;
    current_[handle] = add_version(arrived, origin);
    loop_ = loop;
    return;
  }
  Mesh const& to = plan.stages[here].mesh;
  stage_ = tensor(handle).stage, loop_ = tensor(handle).loop, scope_ = cut_.scope;
  i32 kept[max_axes]{};  // by sending axis: the receiving stage's index of it
  i32 last = -1;
  for (i32 a = 0; a < mesh().size(); ++a) {
    kept[a] = -1;
    for (i32 k = last + 1; k < to.size(); ++k)
      if (to[k] == mesh()[a]) last = kept[a] = k;
    if (kept[a] < 0 || tensor(handle).places[a].partial()) move(handle, a, whole_place);
  }
  arrived = tensor(handle);
  Places const sent_places = arrived.places;
  arrived.places = nowhere;
  arrived.value_class = ValueClass::temporary;
  for (i32 a = 0; a < mesh().size(); ++a)
    if (kept[a] >= 0) arrived.places[kept[a]] = sent_places[a];
  i32 const sent = current_[handle], from_stage = stage_;
  stage_ = here, loop_ = -1;
  i32 const received = add_version(arrived, origin);
  Step s;
  s.kind = StepKind::send;
  s.operands.push({sent, false});
  s.results.push(received);
  plan.edges.push({plan.steps.size(), from_stage, here, sent, received});
  emit(s);
  loop_ = loop, scope_ = scope;
  current_[handle] = received;
}

constexpr Value Builder::apply(Call const& call) { return apply_all(call)[0]; }
constexpr void Builder::settle(Value v) {
  if (!known(v)) return fail(Verdict{.rule = Rule::layer_value});
  for (i32 a = 0; a < mesh().size(); ++a)
    if (places(v)[a].partial()) move(v.id, a, whole_place);
}
constexpr void Builder::output(char const* name, Value v) {
  settle(v);
  if (!known(v)) return;
  plan.outputs.push(Output{dovetail::name(name), current_[v.id]});
}
constexpr void Builder::bring(i32 handle, Places const& to) {
  for (i32 a = 0; a < mesh().size(); ++a) move(handle, a, to[a]);
}

}  // namespace dovetail
