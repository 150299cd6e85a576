// SPDX-License-Identifier: MIT
// When the values of one stage are alive, in the order of the plan's steps. A value read inside a loop but made outside
// lives to the loop's end; a loop's argument lives to its last read, its result from where the last iteration hands its
// yielded value on: together they are what a loop carries. Memory planning asks it; it needs no sizes.
#pragma once
#include <dovetail/plan/plan.hpp>

namespace dovetail {

/// Closed interval of moments; empty where to < from.
struct Interval {
  i64 from = 0, to = -1;
  constexpr bool empty() const { return to < from; }
  friend constexpr bool operator==(Interval const&, Interval const&) = default;
};

/// Moments are numbered so that between two steps there is room for the ends of nested loops, inner ones first.
inline constexpr i64 moments_per_step = 8;
/// When step number `step` runs.
constexpr i64 moment_of_step(i64 step) { return (step + 1) * moments_per_step; }
/// When an iteration hands its yielded value to the argument of the next, or to the loop's result.
constexpr i64 moment_of_end(Plan const& plan, i32 loop) {
  i64 depth = 0;
  for (i32 l = plan.loops[loop].parent; l >= 0; l = plan.loops[l].parent) ++depth;
  return moment_of_step(plan.loops[loop].end) - 1 - depth;
}
/// When a pass is over: what is read then lives to the end.
constexpr i64 last_moment(Plan const& plan) { return moment_of_step(plan.steps.size()); }

/// True where both are alive at some moment.
constexpr bool meet(Interval a, Interval b) { return !a.empty() && !b.empty() && a.from <= b.to && b.from <= a.to; }

/// True for a value that needs room of its own between steps: not parameters, states, or views of a state.
constexpr bool needs_room(Plan const& plan, i32 value) {
  Tensor const& t = plan.values[value];
  if (t.value_class == ValueClass::parameter || t.value_class == ValueClass::state) return false;
  return t.step < 0 || plan.steps[t.step].state < 0;
}

/// Lifetimes by value id; never alive: values of other stages, those that need no room, inputs that nothing reads.
constexpr List<Interval> lifetimes(Plan const& plan, i32 stage) {
  List<Interval> lives;
  for (i32 v = 0; v < plan.values.size(); ++v) {
    Tensor const& t = plan.values[v];
    Interval life;
    if (t.stage == stage && t.step >= 0 && needs_room(plan, v)) {
      i64 const made = plan.steps[t.step].kind == StepKind::loop ? moment_of_end(plan, plan.steps[t.step].body)
                                                                 : moment_of_step(t.step);
      life = Interval{made, made};
    }
    lives.push(life);
  }
  for (i32 v : plan.inputs)
    if (plan.values[v].stage == stage) lives[v] = Interval{0, 0};
  for (auto const& l : plan.loops)
    if (plan.values[l.argument].stage == stage)
      lives[l.argument] = Interval{moment_of_step(l.begin - 1), moment_of_step(l.begin - 1)};
  auto const read = [&](i32 value, i64 moment, i32 loop) {
    if (plan.values[value].stage != stage || lives[value].empty()) return;
    for (; loop >= 0 && loop != plan.values[value].loop; loop = plan.loops[loop].parent)
      moment = moment_of_end(plan, loop);
    if (moment > lives[value].to) lives[value].to = moment;
  };
  for (i32 i = 0; i < plan.steps.size(); ++i) {
    Step const& s = plan.steps[i];
    for (auto const& o : s.operands)
      if (!o.witness) read(o.value, moment_of_step(i), s.loop);
    for (auto const& p : s.parameters) read(p.value, moment_of_step(i), s.loop);
    if (s.kind == StepKind::loop) read(plan.loops[s.body].initial, moment_of_step(i), s.loop);
  }
  for (i32 l = 0; l < plan.loops.size(); ++l) read(plan.loops[l].yielded, moment_of_end(plan, l), l);
  for (auto const& o : plan.outputs) read(o.value, last_moment(plan), -1);
  read(plan.result, last_moment(plan), -1);
  return lives;
}

}  // namespace dovetail
