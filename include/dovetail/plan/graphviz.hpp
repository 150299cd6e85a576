// SPDX-License-Identifier: MIT
// The plan as a graph in DOT: stages are clusters, loops dashed clusters inside them, steps are boxes, what one step
// makes and another reads is an edge with the value's notation. Steps that communicate are filled, a colour a kind.
// Draw it with `dot -Tsvg`.
#pragma once
#include <dovetail/plan/print_value.hpp>

namespace dovetail {

namespace graph {

/// Fill of a step that moves data between ranks; nullptr for one that does not.
constexpr char const* colour_of(StepKind k) {
  switch (k) {
    case StepKind::all_reduce: return "salmon";
    case StepKind::reduce_scatter: return "orange";
    case StepKind::all_gather: return "skyblue";
    case StepKind::all_to_all: return "plum";
    case StepKind::share_reduce: return "khaki";
    case StepKind::send: return "palegreen";
    default: return nullptr;
  }
}

inline std::string indent(i32 depth) { return std::string(static_cast<std::size_t>(2 * depth), ' '); }

inline std::string node(Plan const& plan, i32 step, i32 depth) {
  Step const& s = plan.steps[step];
  std::string label = s.op ? s.op->name : name_of(s.kind);
  if (s.axis >= 0) label += words(" over ", plan.mesh(s.stage)[s.axis]->name);
  if (!plan.scopes[s.scope].path.empty()) label += words(" (", plan.scopes[s.scope].path, ')');
  std::string text = indent(depth) + words("step", step, " [label=", in_double_quotes(label));
  if (auto const* colour = colour_of(s.kind)) text += words(", style=filled, fillcolor=", colour);
  return text + "];\n";
}

/// The steps of one stage in [begin, end), each loop in a cluster of its own.
inline std::string nodes(Plan const& plan, i32 stage, i32 begin, i32 end, i32 depth) {
  std::string text;
  for (i32 i = begin; i < end; ++i) {
    Step const& s = plan.steps[i];
    if (s.kind != StepKind::loop) {
      if (s.stage == stage) text += node(plan, i, depth);
      continue;
    }
    Loop const& l = plan.loops[s.body];
    if (s.stage == stage)
      text += words(indent(depth), "subgraph cluster_loop", s.body, " {\n", indent(depth + 1),
                    "label=", in_double_quotes(counted(l.count, "round")), ";\n", indent(depth + 1), "style=dashed;\n",
                    nodes(plan, stage, l.begin, l.end, depth + 1), indent(depth), "}\n");
    i = l.end - 1;
  }
  return text;
}

/// The step, or the input, whose node stands for a value: what a loop hands on stands for its argument and its result.
inline std::string source(Plan const& plan, i32 value) {
  for (;;) {
    i32 const step = plan.values[value].step;
    if (step >= 0 && plan.steps[step].kind == StepKind::loop) {
      value = plan.loops[plan.steps[step].body].yielded;
      continue;
    }
    if (step >= 0) return words("step", step);
    i32 initial = -1;
    for (auto const& l : plan.loops)
      if (l.argument == value) initial = l.initial;
    if (initial < 0) return words("value", value);
    value = initial;
  }
}

/// A value that a step reads and none makes: an input, or a parameter that is moved before it is used.
inline bool is_given(Plan const& plan, i32 value) {
  if (source(plan, value) != words("value", value)) return false;
  for (auto const& s : plan.steps)
    for (auto const& o : s.operands)
      if (o.value == value && !o.witness) return true;
  return plan.result == value;
}

inline std::string edge(Plan const& plan, i32 value, std::string const& to, char const* style) {
  return words("  ", source(plan, value), " -> ", to, " [label=", in_double_quotes(describe(plan, value)), style,
               "];\n");
}

}  // namespace graph

/// The plan as DOT text.
inline std::string graphviz(Plan const& plan) {
  std::string text = "digraph plan {\n  rankdir=TB;\n  node [shape=box];\n";
  for (i32 v = 0; v < plan.values.size(); ++v)
    if (graph::is_given(plan, v))
      text += words("  value", v, " [label=", in_double_quotes(describe(plan, v)), ", shape=ellipse];\n");
  text += "  result [shape=ellipse];\n";
  for (i32 s = 0; s < plan.stages(); ++s) {
    text += words("  subgraph cluster_stage", s, " {\n    label=", in_double_quotes(words("stage ", s)), ";\n");
    text += graph::nodes(plan, s, 0, plan.steps.size(), 2) + "  }\n";
  }
  for (i32 i = 0; i < plan.steps.size(); ++i)
    for (auto const& o : plan.steps[i].operands)
      if (!o.witness) text += graph::edge(plan, o.value, words("step", i), "");
  for (auto const& l : plan.loops) {  // back to the first reader of a round
    for (i32 i = l.begin; i < l.end; ++i) {
      bool reads = false;
      for (auto const& o : plan.steps[i].operands) reads = reads || (o.value == l.argument && !o.witness);
      if (!reads) continue;
      text += graph::edge(plan, l.yielded, words("step", i), ", style=dashed, constraint=false");
      break;
    }
  }
  if (plan.result >= 0) text += graph::edge(plan, plan.result, "result", "");
  for (i32 i = 0; i < plan.outputs.size(); ++i) {
    text += words("  output", i, " [label=", in_double_quotes(plan.outputs[i].name.chars), ", shape=ellipse];\n");
    text += graph::edge(plan, plan.outputs[i].value, words("output", i), "");
  }
  return text + "}\n";
}

}  // namespace dovetail
