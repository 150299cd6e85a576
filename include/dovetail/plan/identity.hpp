// SPDX-License-Identifier: MIT
// When two plans are the same: by the names of dims, axes, ops, parameters and roles, and by structure. Addresses and
// layer types do not count, so a plan made from types equals the one made from text. One walk over a plan's facts
// serves both the hash that ranks compare before they talk and the comparison that names the first difference.
#pragma once
#include <bit>
#include <dovetail/plan/plan.hpp>

namespace dovetail {

namespace identity {

/// One fact of a plan: what it is about, and a number or a text.
struct Fact {
  char const* part = "";
  i32 index = 0;  ///< of the part; -1 for the plan as a whole
  char const* what = "";
  i64 number = 0;
  char const* text = nullptr;

  friend constexpr bool operator==(Fact const& a, Fact const& b) {
    if (a.index != b.index || a.number != b.number || !same_text(a.part, b.part) || !same_text(a.what, b.what))
      return false;
    return !a.text || !b.text ? a.text == b.text : same_text(a.text, b.text);
  }
};

/// Hands every fact of a plan to `tell`, in an order that depends on the plan alone.
template <class Tell>
class Walk {
 public:
  constexpr Walk(Plan const& plan, Tell& tell) : plan_(plan), tell_(tell) {
    number("plan", -1, "values", plan.values.size()), number("plan", -1, "steps", plan.steps.size());
    number("plan", -1, "result", plan.result), number("plan", -1, "axes above the pipeline", plan.above);
    text("plan", -1, "verdict", id_of(plan.verdict.rule));
    for (i32 i = 0; i < plan.stages(); ++i) stage(i);
    for (i32 i = 0; i < plan.loops.size(); ++i) loop(i);
    for (i32 i = 0; i < plan.parameters.size(); ++i) {
      Parameter const& p = plan.parameters[i];
      leaf("parameter", i, p.name, p.layer, p.value, p.loop);
      number("parameter", i, "tie", p.tied);
    }
    for (i32 i = 0; i < plan.states.size(); ++i) {
      State const& s = plan.states[i];
      leaf("state", i, s.name, s.layer, s.value, s.loop);
    }
    for (i32 i = 0; i < plan.values.size(); ++i) value(i);
    for (i32 i = 0; i < plan.steps.size(); ++i) step(i);
    for (i32 i = 0; i < plan.edges.size(); ++i) number("edge", i, "step", plan.edges[i].step);
    for (i32 i = 0; i < plan.ties.size(); ++i)
      number("tie", i, "first", plan.ties[i].first), number("tie", i, "second", plan.ties[i].second);
    for (i32 i = 0; i < plan.inputs.size(); ++i) number("input", i, "value", plan.inputs[i]);
    for (i32 i = 0; i < plan.outputs.size(); ++i)
      text("output", i, "name", plan.outputs[i].name.chars), number("output", i, "value", plan.outputs[i].value);
  }

 private:
  Plan const& plan_;
  Tell& tell_;

  constexpr void number(char const* part, i32 index, char const* what, i64 n) {
    tell_(Fact{part, index, what, n, nullptr});
  }
  constexpr void text(char const* part, i32 index, char const* what, char const* words) {
    tell_(Fact{part, index, what, 0, words});
  }
  constexpr void stage(i32 i) {
    Stage const& s = plan_.stage(i);
    number("stage", i, "base", s.base), number("stage", i, "ranks", s.ranks), number("stage", i, "layers", s.layers);
    for (auto const* axis : s.mesh) {
      text("stage", i, "axis", axis->name), number("stage", i, "ranks of an axis", axis->size);
      for (i32 r = 0; r < axis->size; ++r) number("stage", i, "share", axis->share(r));
    }
  }
  constexpr void loop(i32 i) {
    Loop const& l = plan_.loops[i];
    number("loop", i, "begin", l.begin), number("loop", i, "end", l.end), number("loop", i, "count", l.count);
    number("loop", i, "initial", l.initial), number("loop", i, "argument", l.argument);
    number("loop", i, "yielded", l.yielded), number("loop", i, "result", l.result);
    number("loop", i, "parent", l.parent), number("loop", i, "twin", l.twin), number("loop", i, "order", l.reverse);
  }
  constexpr void leaf(char const* part, i32 i, Name const& name, LayerIndex const& layer, i32 value, i32 loop) {
    text(part, i, "name", name.chars), number(part, i, "first layer", layer.first);
    number(part, i, "value", value), number(part, i, "loop", loop);
    for (auto const& t : layer.terms) number(part, i, "layer loop", t.loop), number(part, i, "layer stride", t.stride);
  }
  constexpr void value(i32 i) {
    Tensor const& t = plan_.values[i];
    number("value", i, "dims", t.dims.size());
    for (auto const& e : t.dims) {
      text("value", i, "dim", e.dim->name);
      if (e.dim->leader) text("value", i, "leader of a dim", e.dim->leader->name);
      number("value", i, "extent", e.size), number("value", i, "leading extent", e.lead);
      number("value", i, "unit", e.unit), number("value", i, "symbol", static_cast<i64>(e.symbol));
    }
    for (i32 a = 0; a < plan_.mesh(t.stage).size(); ++a) {
      number("value", i, "kind of place", static_cast<i64>(t.places[a].kind));
      if (t.places[a].dim) text("value", i, "dim of a place", t.places[a].dim->name);
    }
    number("value", i, "storage", static_cast<i64>(t.storage));
    number("value", i, "class", static_cast<i64>(t.value_class));
    number("value", i, "stage", t.stage), number("value", i, "loop", t.loop);
    number("value", i, "step", t.step), number("value", i, "origin", t.origin);
  }
  constexpr void step(i32 i) {
    Step const& s = plan_.steps[i];
    text("step", i, "kind", name_of(s.kind)), text("step", i, "op", s.op ? s.op->name : "");
    text("step", i, "role", plan_.scopes[s.scope].path.chars);
    for (auto const& o : s.operands) number("step", i, "operand", o.value), number("step", i, "witness", o.witness);
    for (auto const& p : s.parameters)
      number("step", i, "parameter", p.parameter), number("step", i, "value of a parameter", p.value);
    for (i32 r : s.results) number("step", i, "result", r);
    for (double n : s.numbers.at)
      if (s.op) number("step", i, "constant", std::bit_cast<i64>(n));
    number("step", i, "state", s.state), number("step", i, "stage", s.stage), number("step", i, "loop", s.loop);
    number("step", i, "body", s.body), number("step", i, "axis", s.axis);
    number("step", i, "phase", static_cast<i64>(s.phase));
  }
};

/// A sentence of bounded length; what does not fit is left out.
struct Words {
  Name text{};
  i32 length = 0;

  constexpr Words& add(char const* words) {
    for (; *words && length + 1 < static_cast<i32>(sizeof text.chars); ++words) text.chars[length++] = *words;
    return *this;
  }
  constexpr Words& add(i64 number) {
    char digits[24]{};
    i32 at = 23;
    for (i64 n = number; at == 23 || n; n /= 10) digits[--at] = static_cast<char>('0' + (n < 0 ? -(n % 10) : n % 10));
    if (number < 0) digits[--at] = '-';
    return add(digits + at);
  }
  /// What `fact` says where both speak of the same thing, else "none".
  constexpr Words& add(Fact const& fact, Fact const& where) {
    if (fact.index != where.index || !same_text(fact.part, where.part) || !same_text(fact.what, where.what))
      return add("none");
    return fact.text ? add(fact.text) : add(fact.number);
  }
};

}  // namespace identity

/// Equal for plans that are the same, on every compiler and machine.
constexpr std::uint64_t plan_hash(Plan const& plan) {
  Hash hash;
  auto const tell = [&](identity::Fact const& f) {
    if (f.text) return hash.add(f.text);
    hash.state = (hash.state ^ static_cast<std::uint64_t>(f.number)) * 0x9e3779b97f4a7c15ull;
    hash.state ^= hash.state >> 29;
  };
  identity::Walk walk(plan, tell);
  return hash.state;
}

/// The first fact in which two plans differ, such as `step 12: op matmul, add`; empty where they are the same.
constexpr Name first_difference(Plan const& a, Plan const& b) {
  List<identity::Fact> facts;
  auto const collect = [&](identity::Fact const& f) { facts.push(f); };
  identity::Walk all(a, collect);
  identity::Fact other;  // of b, where it first says something else
  i32 at = 0;
  bool found = false;
  auto const compare = [&](identity::Fact const& f) {
    if (found) return;
    found = at == facts.size() || !(facts[at] == f);
    if (found) other = f;
    else ++at;
  };
  identity::Walk both(b, compare);
  if (!found && at == facts.size()) return {};
  identity::Fact const one = at < facts.size() ? facts[at] : identity::Fact{};
  identity::Fact const& where = *one.what ? one : other;
  identity::Words words;
  words.add(where.part);
  if (where.index >= 0) words.add(" ").add(i64{where.index});
  return words.add(": ").add(where.what).add(" ").add(one, where).add(", ").add(other, where).text;
}

/// Same names, same structure.
constexpr bool same_plan(Plan const& a, Plan const& b) { return first_difference(a, b).empty(); }

}  // namespace dovetail
