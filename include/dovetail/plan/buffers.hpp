// SPDX-License-Identifier: MIT
// Which values of a stage share a buffer: a loop's argument, result and, where no other reader is in the way, its
// initial and its yielded value; and the result of an elementwise op with an operand that dies there. It follows from
// the plan alone, holds for every run, and says where a loop needs no copy. plan/arena.hpp places the buffers.
#pragma once
#include <dovetail/plan/lifetime.hpp>

namespace dovetail {

/// The values of one stage in groups that share a buffer; each group has a leader.
class Buffers {
 public:
  constexpr Buffers(Plan const& plan, i32 stage) : plan_(&plan), lives_(lifetimes(plan, stage)) {
    for (i32 v = 0; v < lives_.size(); ++v) leader_.push(lives_[v].empty() ? -1 : v), next_.push(-1);
    for (auto const& l : plan.loops) join(l.argument, l.result), share(l.initial, l.argument);
    for (auto const& l : plan.loops) share(l.yielded, l.argument);
    for (auto const& s : plan.steps)
      for (auto const& o : s.operands)
        if (s.op && s.op->elementwise && !o.witness) share(o.value, s.results[0]);
    for (i32 v = 0; v < lives_.size(); ++v)
      if (leader_[v] == v) leaders_.push(v);
  }

  /// The value that stands for the buffer of `value`: equal for values that share one; -1 for one that has none.
  constexpr i32 of(i32 value) const { return leader_[value]; }
  /// One value of each buffer.
  constexpr List<i32> const& leaders() const { return leaders_; }
  /// The value after `value` in its buffer, or -1; the first is the leader.
  constexpr i32 next(i32 value) const { return next_[value]; }
  constexpr Interval life(i32 value) const { return lives_[value]; }

  /// Is a value of buffer `a` alive together with one of buffer `b`? @pre both are leaders
  constexpr bool meet(i32 a, i32 b) const {
    for (i32 v = a; v >= 0; v = next_[v])
      for (i32 w = b; w >= 0; w = next_[w])
        if (dovetail::meet(lives_[v], lives_[w])) return true;
    return false;
  }

 private:
  Plan const* plan_;
  List<Interval> lives_;
  List<i32> leader_{}, next_{}, leaders_{};

  /// Does the event at `moment` leave in `b` what was in `a`, or `b`'s elements each in the place of `a`'s?
  constexpr bool passes(i32 a, i32 b, i64 moment) const {
    if (moment % moments_per_step) {
      for (i32 l = 0; l < plan_->loops.size(); ++l) {
        Loop const& loop = plan_->loops[l];
        if (loop.yielded == a && (loop.argument == b || loop.result == b) && moment_of_end(*plan_, l) == moment)
          return true;
      }
      return false;
    }
    i64 const at = moment / moments_per_step - 1;
    if (at < 0 || at >= plan_->steps.size()) return false;
    Step const& s = plan_->steps[at];
    if (s.kind == StepKind::loop) return plan_->loops[s.body].initial == a && plan_->loops[s.body].argument == b;
    if (!s.op || !s.op->elementwise || s.results[0] != b) return false;
    for (auto const& o : s.operands)
      if (o.value == a && !o.witness) return true;
    return false;
  }
  /// Are two values never alive together but where one becomes the other?
  constexpr bool agree(i32 a, i32 b) const {
    Interval const x = lives_[a], y = lives_[b];
    if (!dovetail::meet(x, y)) return true;
    return (x.to == y.from && passes(a, b, x.to)) || (y.to == x.from && passes(b, a, y.to));
  }

  /// Puts two values into one buffer where all values of both buffers agree and are of one size in every run. Inputs
  /// keep theirs to themselves: they are not the plan's to overwrite.
  constexpr void share(i32 a, i32 b) {
    if (leader_[a] < 0 || leader_[b] < 0 || leader_[a] == leader_[b]) return;
    Tensor const &x = plan_->values[a], &y = plan_->values[b];
    if (x.value_class == ValueClass::input || y.value_class == ValueClass::input) return;
    if (x.storage != y.storage || !(x.dims == y.dims) || !(x.places == y.places)) return;
    for (i32 v = leader_[a]; v >= 0; v = next_[v])
      for (i32 w = leader_[b]; w >= 0; w = next_[w])
        if (!agree(v, w)) return;
    join(a, b);
  }
  constexpr void join(i32 a, i32 b) {
    i32 const first = leader_[a] < leader_[b] ? leader_[a] : leader_[b];
    i32 const second = leader_[a] < leader_[b] ? leader_[b] : leader_[a];
    if (first < 0 || first == second) return;
    i32 last = first;
    while (next_[last] >= 0) last = next_[last];
    next_[last] = second;
    for (i32 v = second; v >= 0; v = next_[v]) leader_[v] = first;
  }
};

}  // namespace dovetail
