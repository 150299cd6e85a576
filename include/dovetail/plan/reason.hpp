// SPDX-License-Identifier: MIT
// Why a plan communicates: derived from the step that made the value and the step that reads it, so it holds for users'
// ops and layers as it does for the built-in ones. The planner moves a value when something reads it, so the first
// reader is the reason.
#pragma once
#include <dovetail/plan/print_value.hpp>

namespace dovetail {

namespace reasons {

inline bool redistributes(StepKind k) { return k >= StepKind::all_reduce && k <= StepKind::share_reduce; }

inline bool reads(Step const& s, i32 value) {
  for (auto const& o : s.operands)
    if (o.value == value && !o.witness) return true;
  for (auto const& p : s.parameters)
    if (p.value == value) return true;
  return false;
}

/// "add (layers.*)".
inline std::string op_words(Plan const& plan, Step const& s) {
  Name const& path = plan.scopes[s.scope].path;
  return path.empty() ? words(s.op->name) : words(s.op->name, " (", path, ")");
}

/// Who needs a value: the first step that computes with it, or what becomes of it; redistributions on other axes are
/// looked through. Empty where nothing does.
inline std::string reader_words(Plan const& plan, i32 value) {
  for (i32 i = 0; i < plan.steps.size(); ++i) {
    Step const& s = plan.steps[i];
    if (s.kind == StepKind::loop && plan.loops[s.body].initial == value)
      return words("the loop of ", counted(plan.loops[s.body].count, "round"));
    if (!reads(s, value)) continue;
    if (s.kind == StepKind::send) return words("stage ", s.stage);
    if (s.kind == StepKind::compute) return op_words(plan, s);
    if (std::string const after = reader_words(plan, s.results[0]); !after.empty()) return after;
  }
  for (auto const& l : plan.loops)
    if (l.yielded == value) return "the next round of the loop";
  for (auto const& o : plan.outputs)
    if (o.value == value) return words("output ", o.name);
  return plan.result == value ? "the result" : "";
}

/// The value that a round of a loop begins with comes from before the loop; -1 for what no loop hands on.
inline i32 initial_of(Plan const& plan, i32 argument) {
  for (auto const& l : plan.loops)
    if (l.argument == argument) return l.initial;
  return -1;
}

/// The step that computed a value, looking through redistributions, sends and loops; -1 for what a run is given.
inline i32 maker_of(Plan const& plan, i32 value) {
  while (value >= 0) {
    i32 const step = plan.values[value].step;
    if (step < 0) {
      value = initial_of(plan, value);
      continue;
    }
    Step const& s = plan.steps[step];
    if (s.kind == StepKind::compute) return step;
    value = s.kind == StepKind::loop ? plan.loops[s.body].yielded : s.operands[0].value;
  }
  return -1;
}

/// "a contraction over heads (matmul)": where a value became Partial on an axis. Ops that let partial sums through are
/// looked through, too.
inline std::string partial_words(Plan const& plan, i32 value, i32 axis) {
  for (i32 step = maker_of(plan, value); step >= 0;) {
    Step const& s = plan.steps[step];
    i32 through = -1;
    char const* contracted = nullptr;
    auto const look = [&](i32 read) {
      Tensor const& t = plan.values[read];
      if (t.places[axis].partial() && through < 0) through = read;  // a bias that joins once comes later
      if (t.places[axis].cut()) contracted = find(t.dims, t.places[axis].dim)->dim->name;
    };
    for (auto const& o : s.operands)
      if (!o.witness) look(o.value);
    for (auto const& p : s.parameters) look(p.value);
    if (contracted) return words("a contraction over ", contracted, " (", s.op->name, ")");
    if (through < 0) break;
    step = maker_of(plan, through);
  }
  return "what its ranks hold";
}

/// "rotate leaves it split by sequence".
inline std::string source_words(Plan const& plan, Step const& s) {
  i32 const value = s.operands[0].value;
  i32 const maker = maker_of(plan, value);
  if (plan.values[value].value_class == ValueClass::parameter) return words("it is stored ", place_words(s.from));
  return words(maker < 0 ? "the input" : plan.steps[maker].op->name, maker < 0 ? " is " : " leaves it ",
               place_words(s.from));
}

}  // namespace reasons

/// Role path of what made a value that a step moves; where that has none, a parameter that it uses, or "model".
inline std::string place_in_model(Plan const& plan, i32 step) {
  Step const& s = plan.steps[step];
  i32 const maker = reasons::maker_of(plan, s.operands[0].value);
  Step const& made = maker < 0 ? s : plan.steps[maker];
  Name const& path = plan.scopes[made.scope].path;
  if (!path.empty()) return path.chars;
  return made.parameters.empty() ? "model" : plan.parameters[made.parameters[0].parameter].name.chars;
}

/// Why a step communicates, in one sentence without a stop.
/// @pre communicates(plan.steps[step].kind) or it is a send
inline std::string reason(Plan const& plan, i32 step) {
  Step const& s = plan.steps[step];
  std::string reader = reasons::reader_words(plan, s.results[0]);
  if (reader.empty()) reader = "a later step";
  if (s.kind == StepKind::send) return reader + " reads it";
  char const* const axis = plan.mesh(s.stage)[s.axis]->name;
  std::string const wanted = words(reader, s.to.whole() ? " needs it " : " takes it ", place_words(s.to), ": ");
  if (s.from.partial())
    return words(wanted, s.from.kind == Kind::partial_max ? "maximum" : "sum", " over ", axis, " of ",
                 reasons::partial_words(plan, s.operands[0].value, s.axis));
  if (s.kind == StepKind::share_reduce)
    return words(wanted, "sum over the ranks of ", axis, " that hold the same ",
                 find(plan.values[s.operands[0].value].dims, s.from.dim)->dim->name);
  return wanted + reasons::source_words(plan, s);
}

}  // namespace dovetail
