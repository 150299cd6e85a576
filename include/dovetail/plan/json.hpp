// SPDX-License-Identifier: MIT
// The whole plan as JSON, for tools: `"schema": 1` first, then each list of the plan, one element a line, under the
// plan's own names. Ids are positions in the lists and -1 is none; places stand in the order of the stage's mesh. A
// field is only ever added within one schema number.
#pragma once
#include <dovetail/plan/json_writer.hpp>
#include <dovetail/plan/print_value.hpp>
#include <dovetail/plan/sentence.hpp>

namespace dovetail {

namespace json_text {

constexpr char const* word(Kind k) {
  constexpr char const* names[] = {"whole", "split", "shared", "partial_sum", "partial_max"};
  return names[static_cast<int>(k)];
}
constexpr char const* word(ValueClass c) {
  constexpr char const* names[] = {"input", "temporary", "saved", "state", "parameter", "gradient"};
  return names[static_cast<int>(c)];
}
constexpr char const* word(Phase p) {
  constexpr char const* names[] = {"forward", "backward", "weight", "finish"};
  return names[static_cast<int>(p)];
}
constexpr char const* word(Symbol s) {
  constexpr char const* names[] = {"fixed", "batch", "tokens", "context", "rows", "counted"};
  return names[static_cast<int>(s)];
}

inline void place(JsonWriter& j, Place const& p) {
  j.object([&] {
    j.field("kind", word(p.kind));
    if (p.dim) j.field("dim", p.dim->name);
  });
}
inline void extent(JsonWriter& j, Extent const& e) {
  j.object([&] {
    j.field("dim", e.dim->name);
    if (e.symbol == Symbol::fixed) j.field("extent", e.size);
    else j.field("extent", word(e.symbol));
    if (e.symbol == Symbol::counted) j.field("counter", e.counter);
    if (e.lead != e.size) j.field("lead", e.lead);
    if (e.unit != 1) j.field("unit", e.unit);
  });
}
inline void ids(JsonWriter& j, auto const& list) {
  j.array([&] {
    for (i32 id : list) j.value(id);
  });
}
inline void layer(JsonWriter& j, LayerIndex const& l) {
  j.key("layer").object([&] {
    j.field("first", l.first);
    j.key("terms").array([&] {
      for (auto const& t : l.terms) j.object([&] { j.field("loop", t.loop), j.field("stride", t.stride); });
    });
  });
}
inline void value(JsonWriter& j, Plan const& plan, i32 id) {
  Tensor const& t = plan.values[id];
  Mesh const& mesh = plan.mesh(t.stage);
  j.object([&] {
    j.field("value", id), j.field("text", describe(plan, id));
    j.key("dims").array([&] {
      for (auto const& e : t.dims) extent(j, e);
    });
    j.key("places").array([&] {
      for (i32 a = 0; a < mesh.size(); ++a) place(j, t.places[a]);
    });
    j.field("storage", name_of(t.storage)), j.field("class", word(t.value_class)), j.field("stage", t.stage);
    j.field("loop", t.loop), j.field("step", t.step), j.field("origin", t.origin);
  });
}
inline void step(JsonWriter& j, Plan const& plan, i32 id) {
  Step const& s = plan.steps[id];
  j.object([&] {
    j.field("step", id), j.field("kind", name_of(s.kind));
    if (s.op) j.field("op", s.op->name);
    j.field("stage", s.stage), j.field("loop", s.loop), j.field("scope", s.scope), j.field("phase", word(s.phase));
    j.key("operands").array([&] {
      for (auto const& o : s.operands) j.object([&] { j.field("value", o.value), j.field("witness", o.witness); });
    });
    j.key("parameters").array([&] {
      for (auto const& p : s.parameters)
        j.object([&] { j.field("parameter", p.parameter), j.field("value", p.value); });
    });
    j.key("results"), ids(j, s.results);
    if (s.op)
      j.key("numbers").array([&] {
        for (double n : s.numbers.at) j.value(n);
      });
    if (s.state >= 0) j.field("state", s.state);
    if (s.body >= 0) j.field("body", s.body);
    if (s.axis < 0) return;
    j.field("axis", plan.mesh(s.stage)[s.axis]->name);
    j.key("from"), place(j, s.from);
    j.key("to"), place(j, s.to);
  });
}
inline void stage(JsonWriter& j, Stage const& s) {
  j.object([&] {
    j.key("mesh").array([&] {
      for (auto const* axis : s.mesh)
        j.object([&] {
          j.field("axis", axis->name), j.field("size", axis->size);
          if (!axis->shares) return;
          j.key("shares").array([&] {
            for (i32 r = 0; r < axis->size; ++r) j.value(axis->share(r));
          });
        });
    });
    j.field("ranks", s.ranks), j.field("base", s.base), j.field("layers", s.layers);
  });
}
inline void loop(JsonWriter& j, Loop const& l) {
  j.object([&] {
    j.field("begin", l.begin), j.field("end", l.end), j.field("count", l.count), j.field("initial", l.initial);
    j.field("argument", l.argument), j.field("yielded", l.yielded), j.field("result", l.result);
    j.field("parent", l.parent), j.field("twin", l.twin), j.field("reverse", l.reverse);
    j.key("sums").array([&] {
      for (auto const& s : l.sums) j.object([&] { j.field("part", s.part), j.field("total", s.total); });
    });
  });
}
/// What a parameter and a state have in common.
inline void leaf(JsonWriter& j, auto const& p) {
  j.field("name", p.name), layer(j, p.layer);
  j.field("value", p.value), j.field("stage", p.stage), j.field("loop", p.loop);
}

}  // namespace json_text

/// The plan as JSON text. A refused plan has a verdict other than "ok" and the lists as far as they were planned.
inline std::string to_json(Plan const& plan) {
  JsonWriter j;
  auto const ids = [](i32 n) {
    List<i32> all;
    for (i32 i = 0; i < n; ++i) all.push(i);
    return all;
  };
  j.object([&] {
    j.field("schema", 1);
    j.field("verdict", id_of(plan.verdict.rule));
    if (!plan.ok()) j.field("sentence", sentence(plan.verdict));
    j.field("ranks", plan.ranks()), j.field("replicas", plan.replicas()), j.field("above", plan.above);
    j.field("result", plan.result);
    j.line("stages").lines(plan.stages_list, [&](Stage const& s) { json_text::stage(j, s); });
    j.line("scopes").lines(plan.scopes, [&](Scope const& s) {
      j.object([&] {
        j.field("path", s.path), j.field("parent", s.parent), j.field("stage", s.stage), j.field("loop", s.loop);
      });
    });
    j.line("loops").lines(plan.loops, [&](Loop const& l) { json_text::loop(j, l); });
    j.line("parameters").lines(plan.parameters, [&](Parameter const& p) {
      j.object([&] { json_text::leaf(j, p), j.field("tied", p.tied); });
    });
    j.line("states").lines(plan.states, [&](State const& s) { j.object([&] { json_text::leaf(j, s); }); });
    j.line("values").lines(ids(plan.values.size()), [&](i32 id) { json_text::value(j, plan, id); });
    j.line("steps").lines(ids(plan.steps.size()), [&](i32 id) { json_text::step(j, plan, id); });
    j.line("edges").lines(plan.edges, [&](Edge const& e) {
      j.object([&] {
        j.field("step", e.step), j.field("from_stage", e.from_stage), j.field("to_stage", e.to_stage);
        j.field("sent", e.sent), j.field("received", e.received);
      });
    });
    j.line("ties").lines(
        plan.ties, [&](Tie const& t) { j.object([&] { j.field("first", t.first), j.field("second", t.second); }); });
    j.line("inputs"), json_text::ids(j, plan.inputs);
    j.line("outputs").lines(
        plan.outputs, [&](Output const& o) { j.object([&] { j.field("name", o.name), j.field("value", o.value); }); });
  });
  return j.text() + "\n";
}

}  // namespace dovetail
