// SPDX-License-Identifier: MIT
// Layouts side by side: what each device stores, computes, receives and waits for under one workload. Every number is
// asked of the prediction functions of plan/memory.hpp, arena.hpp, flops.hpp, traffic.hpp and peers.hpp; nothing is
// estimated here. plan/compare_table.hpp, compare_json.hpp and svg_compare.hpp show what comes out.
#pragma once
#include <dovetail/plan/arena.hpp>
#include <dovetail/plan/compare_figures.hpp>
#include <dovetail/plan/flops.hpp>

namespace dovetail {

namespace comparing {

inline RunShape shape(std::vector<SequenceRun> const& run) { return {run.data(), static_cast<i32>(run.size())}; }

inline PassFigures pass(Plan const& plan, i64 rank, RunShape run, StorageBytes const& bytes) {
  return {arena_of(plan, rank, run, bytes).bytes, flops(plan, rank, run), traffic(plan, rank, run, bytes)};
}

/// False where a figure could pass 2^62: operations grow with the square of a prompt's length, bytes with the length.
inline bool in_range(Plan const& plan, Workload const& work) {
  constexpr double largest = 0x1p62;
  SequenceRun const one{0, 1, 0}, two{0, 2, 0};
  RunShape const run{&one, 1};
  double const longest = double((std::max)(work.tokens, work.context)), requests = double(work.sequences);
  for (i32 s = 0; s < plan.stages(); ++s) {
    i64 const rank = plan.stage(s).base;
    double const first = double(flops(plan, rank, run)), second = double(flops(plan, rank, {&two, 1}));
    double const square = (second - 2 * first) / 2;
    double const bytes = double(state_bytes(plan, rank, run, work.bytes)) +
                         double(arena_of(plan, rank, run, work.bytes).bytes) +
                         double(traffic(plan, rank, run, work.bytes).total.bytes);
    if ((first + square * longest) * longest * requests > largest) return false;
    if (bytes * longest * requests * double(plan.ranks()) > largest) return false;
  }
  return true;
}

/// Number of a rank among those of its stage that work on other requests, and how many there are: the product of the
/// axes along which some value is split by batch.
struct Replica {
  i64 number = 0, of = 1;
};
inline Replica replica_of(Plan const& plan, RankPlace const& at) {
  Replica r;
  Mesh const& mesh = plan.mesh(at.stage);
  for (i32 a = 0; a < mesh.size(); ++a) {
    bool deals = false;
    for (auto const& t : plan.values) deals = deals || (t.stage == at.stage && t.places[a] == split_on(dim_of<batch>));
    if (deals) r.number = r.number * mesh[a]->size + at.at[a], r.of *= mesh[a]->size;
  }
  return r;
}

/// Requests of which a rank has any: those of its caches, or of what it computes where its stage has none.
inline Range sequences_served(Plan const& plan, i64 rank, RunShape run) {
  RankPlace const at = plan.place_of(rank);
  Range all{};
  bool met = false;
  auto const join = [&](i32 value) {
    Tensor const& t = plan.values[value];
    if (!leading_symbols(t.dims)) return;
    Range const mine = sequences_of(t.dims, t.places, plan.mesh(at.stage), at.at, run);
    if (!mine.size()) return;
    all = met ? Range{(std::min)(all.lo, mine.lo), (std::max)(all.hi, mine.hi)} : mine;
    met = true;
  };
  bool cached = false;
  for (auto const& s : plan.states)
    if (s.stage == at.stage) join(s.value), cached = true;
  for (auto const& s : plan.steps)
    if (!cached && s.stage == at.stage && s.kind == StepKind::compute)
      for (i32 r : s.results) join(r);
  return all;
}

inline void add_links(LayoutFigures& f, Plan const& plan, RunShape prefill, RunShape decode,
                      StorageBytes const& bytes) {
  for (i32 i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind != StepKind::send) continue;
    i64 const times = plan.executions(plan.steps[i].loop);
    auto const cost = [&](i64 rank, RunShape run) {
      Cost const once = step_traffic(plan, i, rank, run, bytes);
      return Cost{once.messages * times, once.bytes * times};
    };
    for (auto& d : f.devices) {
      i64 const from = receives_from(plan, i, d.rank);
      if (from < 0) continue;
      add_once(d.senders, from);
      Link* link = nullptr;
      for (auto& known : f.links)
        if (known.from == from && known.to == d.rank) link = &known;
      if (!link) link = &f.links.emplace_back(Link{from, d.rank, {}, {}});
      link->prefill += cost(d.rank, prefill), link->decode += cost(d.rank, decode);
    }
  }
}

inline void add_exchanges(LayoutFigures& f, Plan const& plan) {
  for (auto& d : f.devices) {
    RankPlace const at = plan.place_of(d.rank);
    Mesh const& mesh = plan.mesh(at.stage);
    for (i32 a = 0; a < mesh.size(); ++a) {
      i64 times = 0;
      for (auto const& s : plan.steps)
        if (s.stage == at.stage && communicates(s.kind) && s.axis == a) times += plan.executions(s.loop);
      if (!times || mesh[a]->size == 1) continue;
      AxisExchange group{mesh[a]->name, {}, times};
      for (i32 i = 0; i < mesh[a]->size; ++i) {
        group.devices.push_back(rank_along(plan, d.rank, a, i));
        if (group.devices.back() != d.rank) add_once(d.peers, group.devices.back());
      }
      if (at.at[a] == 0) f.exchanges.push_back(std::move(group));
    }
  }
}

}  // namespace comparing

/// How many devices of a stage work on other requests, at most: with as many requests none of them is idle.
inline i64 replicas_of(Plan const& plan) {
  i64 most = 1;
  for (i32 s = 0; s < plan.stages(); ++s)
    most = (std::max)(most, comparing::replica_of(plan, plan.place_of(plan.stage(s).base)).of);
  return most;
}

/// The figures of a plan. One that is refused, or has too many devices to list, gives its sentence alone.
/// @param title what the layout is called: its text
/// @pre the numbers of the workload are at least 1
inline LayoutFigures figures_of(std::string const& title, Plan const& plan, Workload const& work) {
  LayoutFigures f;
  f.title = title;
  if (!plan.ok()) {
    f.refusal = sentence(plan.verdict);
    return f;
  }
  if (plan.ranks() > max_compared_devices) {
    f.refusal = words("the layout has ", plan.ranks(), " devices: at most ", max_compared_devices, " are compared");
    return f;
  }
  if (!comparing::in_range(plan, work)) {
    f.refusal = "the figures of this layout pass 64 bits: ask for fewer requests or shorter ones";
    return f;
  }
  auto const prefill = work.prefill(), decode = work.decode(), cached = work.cached();
  RunShape const filling = comparing::shape(prefill), decoding = comparing::shape(decode);
  f.parameters = total_parameters(plan), f.replicas = replicas_of(plan), f.stages = plan.stages();
  f.result_stage = plan.result < 0 ? f.stages - 1 : plan.values[plan.result].stage;
  f.decodes = !plan.states.empty();
  f.parts = parts_of(plan);
  for (i64 rank = 0; rank < plan.ranks(); ++rank) {
    DeviceFigures d;
    RankPlace const at = plan.place_of(rank);
    auto const replica = comparing::replica_of(plan, at);
    d.rank = rank, d.stage = at.stage, d.replica = replica.number, d.replicas = replica.of;
    d.pipeline = rank / plan.ranks_per_replica();
    d.sequences = comparing::sequences_served(plan, rank, decoding);
    d.weights = weight_bytes(plan, rank, work.bytes);
    d.cache = state_bytes(plan, rank, comparing::shape(cached), work.bytes);
    d.prefill = comparing::pass(plan, rank, filling, work.bytes);
    d.decode = comparing::pass(plan, rank, decoding, work.bytes);
    for (auto const& part : f.parts) d.holds.push_back(holding_of(plan, part, rank));
    f.devices.push_back(std::move(d));
  }
  comparing::add_links(f, plan, filling, decoding, work.bytes);
  comparing::add_exchanges(f, plan);
  f.prefill = total_traffic(plan, filling, work.bytes), f.decode = total_traffic(plan, decoding, work.bytes);
  return f;
}

}  // namespace dovetail
