// SPDX-License-Identifier: MIT
// Figures of layouts as JSON, for tools: `"schema": 1` first, the workload, then one layout a line under the names of
// the figures. Bytes and counts are whole numbers; a model
// that keeps no cache has no "decode". A field is only ever added within one schema number.
#pragma once
#include <dovetail/plan/compare_figures.hpp>
#include <dovetail/plan/json_writer.hpp>

namespace dovetail {

namespace json_text {

inline void cost(JsonWriter& j, Cost c) { j.field("messages", c.messages), j.field("bytes", c.bytes); }
inline void report(JsonWriter& j, TrafficReport const& r) {
  j.object([&] {
    cost(j, r.total);
    j.key("by_axis").array([&] {
      for (auto const& a : r.by_axis) j.object([&] { j.field("axis", a.axis), cost(j, a.cost); });
    });
    j.key("by_kind").array([&] {
      for (int k = 0; k < step_kinds; ++k)
        if (r.by_kind[k] != Cost{})
          j.object([&] { j.field("kind", name_of(static_cast<StepKind>(k))), cost(j, r.by_kind[k]); });
    });
  });
}
inline void pass(JsonWriter& j, PassFigures const& p) {
  j.object([&] {
    j.field("arena_bytes", p.arena), j.field("flops", p.flops);
    j.key("received"), report(j, p.received);
  });
}
inline void ranks(JsonWriter& j, std::vector<i64> const& list) {
  j.array([&] {
    for (i64 rank : list) j.value(rank);
  });
}
inline void device(JsonWriter& j, LayoutFigures const& f, DeviceFigures const& d) {
  j.object([&] {
    j.field("rank", d.rank), j.field("replica", d.replica), j.field("stage", d.stage);
    j.field("holds", holding_words(f.parts, d.holds));
    j.field("weight_bytes", d.weights), j.field("cache_bytes", d.cache);
    j.field("first_sequence", d.sequences.lo), j.field("sequences", d.sequences.size());
    j.key("senders"), ranks(j, d.senders);
    j.key("peers"), ranks(j, d.peers);
    j.key("prefill"), pass(j, d.prefill);
    if (f.decodes) j.key("decode"), pass(j, d.decode);
  });
}
inline void layout(JsonWriter& j, LayoutFigures const& f) {
  j.object([&] {
    j.field("layout", f.title);
    if (!f.ok()) return j.field("refused", f.refusal);
    j.field("ranks", f.devices.size()), j.field("replicas", f.replicas), j.field("stages", f.stages);
    j.field("parameters", f.parameters);
    j.key("devices").array([&] {
      for (auto const& d : f.devices) device(j, f, d);
    });
    j.key("links").array([&] {
      for (auto const& l : f.links)
        j.object([&] {
          j.field("from", l.from), j.field("to", l.to);
          j.key("prefill").object([&] { cost(j, l.prefill); });
          if (f.decodes) j.key("decode").object([&] { cost(j, l.decode); });
        });
    });
    j.key("exchanges").array([&] {
      for (auto const& e : f.exchanges)
        j.object([&] {
          j.field("axis", e.axis), j.key("ranks"), ranks(j, e.devices);
          j.field("times", e.times);
        });
    });
    j.key("prefill"), report(j, f.prefill);
    if (f.decodes) j.key("decode"), report(j, f.decode);
  });
}

}  // namespace json_text

/// The figures as JSON text.
inline std::string compare_json(std::vector<LayoutFigures> const& layouts, Workload const& work) {
  JsonWriter j;
  j.object([&] {
    j.field("schema", 1);
    j.key("workload").object([&] {
      j.field("sequences", work.sequences), j.field("context", work.context), j.field("tokens", work.tokens);
      j.key("bytes").object([&] {
        for (int s = 0; s < storage_kinds; ++s) j.field(name_of(static_cast<Storage>(s)), work.bytes.of[s]);
      });
    });
    j.line("layouts").lines(layouts, [&](LayoutFigures const& f) { json_text::layout(j, f); });
  });
  return j.text() + "\n";
}

}  // namespace dovetail
