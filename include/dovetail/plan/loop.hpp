// SPDX-License-Identifier: MIT
// Loops of the builder: one node whatever the count. The body is tried; if it yields another placement than it was
// given, or moved or fetched a value from outside, everything is put back, that is done once before the loop, and the
// body runs again: a small fixed number of passes. Afterwards nothing defined inside is visible outside.
#pragma once
#include <dovetail/plan/placing.hpp>

namespace dovetail {

inline constexpr int max_loop_passes = 4;  ///< in which a body has to settle

/// A body that yields other dims than it takes: the first place where they differ.
constexpr Verdict dims_verdict(Dims const& taken, Dims const& yielded) {
  i32 k = 0;
  while (k < taken.size() && k < yielded.size() && taken[k] == yielded[k]) ++k;
  Extent const none{};
  Extent const &before = k < taken.size() ? taken[k] : none, &after = k < yielded.size() ? yielded[k] : none;
  return Verdict{
      .rule = Rule::loop_dims, .dim = before.dim, .other_dim = after.dim, .extent = before.size, .units = after.size};
}

constexpr Value Builder::numbered(Value x, auto const& body) {
  LayerIndex const outer = layer_;
  i64 const mine = layers_;
  layer_.first = mine;
  x = body(*this, x);
  layer_ = outer;
  if (layers_ == mine) ++layers_;  // a layer that holds no numbered layers is one itself
  return x;
}

constexpr Value Builder::loop(Value x, i32 count, auto const& body) {
  struct Hoisted {
    i32 origin = -1;
    Places places{};
  };
  fetch(x.id);
  Builder const before = *this;
  List<Hoisted> hoisted;
  Places carried = settled(places(x));
  for (int pass = 0;; ++pass) {
    for (auto const& h : hoisted) {
      fetch(h.origin);
      bring(h.origin, h.places);
    }
    bring(x.id, carried);
    i32 const outer = loop_, id = plan.loops.size();
    LayerIndex const outer_layer = layer_;
    i64 const first_layer = layers_;
    Loop l;
    l.count = count, l.parent = outer, l.initial = current_[x.id];
    plan.loops.push(l);
    Step open;
    open.kind = StepKind::loop, open.body = id;
    emit(open);
    i32 const begin = plan.steps.size(), values_before = plan.values.size();
    List<i32> const seen = current_;
    loop_ = id;
    if (layer_.terms.size() < max_nesting) layer_.terms.push({id, 0});
    else fail(Verdict{.rule = Rule::plan_room, .op = "max_nesting", .extent = max_nesting});
    Tensor block = tensor(x.id);
    block.value_class = ValueClass::temporary;
    i32 const argument = add_value(block);
    Value const y = body(*this, Value{argument});
    fetch(y.id);
    if (!(dims(y) == dims(x))) {
      if (plan.verdict.ok()) fail(dims_verdict(dims(x), dims(y)));
      Verdict const broken = plan.verdict;
      *this = before;
      fail(broken);
      return x;
    }

    bool again = false;
    for (i32 v = values_before; v < plan.values.size() && pass + 1 < max_loop_passes; ++v) {
      Tensor const& t = plan.values[v];
      if (t.origin >= values_before || t.stage != stage_ || t.value_class == ValueClass::input) continue;
      if (!in_scope(plan.values[t.origin].loop, outer)) continue;
      hoisted.push({t.origin, t.places});
      again = true;
    }
    Places const yielded = settled(places(y));
    if (pass == 0 && !(yielded == carried)) carried = yielded, again = true;
    if (again) {
      *this = before;
      continue;
    }
    bring(y.id, carried);
    Loop& made = plan.loops[id];
    made.begin = begin, made.end = plan.steps.size(), made.argument = argument, made.yielded = current_[y.id];
    loop_ = outer;
    i64 const stride = layers_ - first_layer;
    for (auto& p : plan.parameters)
      for (auto& t : p.layer.terms)
        if (t.loop == id) t.stride = stride;
    for (auto& s : plan.states)
      for (auto& t : s.layer.terms)
        if (t.loop == id) t.stride = stride;
    layer_ = outer_layer;
    layers_ = first_layer + stride * count;
    for (i32 i = 0; i < seen.size(); ++i) current_[i] = seen[i];
    Tensor result = plan.values[plan.loops[id].yielded];
    i32 const out = add_value(result);
    plan.values[out].step = begin - 1;
    plan.loops[id].result = out;
    plan.steps[begin - 1].results.push(out);
    return {out};
  }
}

}  // namespace dovetail
