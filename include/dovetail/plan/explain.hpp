// SPDX-License-Identifier: MIT
// A plan on one screen: the mesh, what the ranks of each stage store, every step that communicates and why, and what
// is computed alike on several ranks. Stages that say the same are told once. The numbers are those of plan/memory.hpp,
// plan/arena.hpp and plan/traffic.hpp, which the executor is held to.
#pragma once
#include <algorithm>
#include <dovetail/plan/arena.hpp>
#include <dovetail/plan/memory.hpp>
#include <dovetail/plan/reason.hpp>
#include <dovetail/plan/redundancy.hpp>
#include <dovetail/plan/sentence.hpp>
#include <dovetail/plan/traffic.hpp>

namespace dovetail {

namespace explaining {

inline std::string padded(std::string text, std::size_t width) {
  return text.size() < width ? text.append(width - text.size(), ' ') : text;
}

/// "94.4 MB", "47.2 to 62.9 MB".
inline std::string range_words(i64 least, i64 most) {
  std::string low = readable_bytes(least);
  std::string const high = readable_bytes(most);
  if (low == high) return low;
  std::size_t const unit = low.find(' ');
  if (low.substr(unit) == high.substr(high.find(' '))) low.resize(unit);
  return low + " to " + high;
}

inline bool is_told(Step const& s) { return communicates(s.kind) || s.kind == StepKind::send; }

/// A plan and what its numbers are for.
struct Telling {
  Plan const& plan;
  StorageBytes bytes{};
  RunShape run{};
  bool has_run = false;
  std::size_t place_width = 0, value_width = 0;  ///< of the widest, so that columns line up

  Telling(Plan const& p, StorageBytes const& b) : plan(p), bytes(b) {
    auto const widen = [](std::size_t& width, std::string const& text) { width = (std::max)(width, text.size()); };
    for (i32 i = 0; i < plan.steps.size(); ++i) {
      if (!is_told(plan.steps[i])) continue;
      widen(place_width, place_in_model(plan, i));
      widen(value_width, describe(plan, plan.steps[i].operands[0].value, bytes));
    }
  }

  /// Least and most of `of(rank)` over the ranks of a stage. One replica stands for all in what is stored.
  template <class Of>
  std::string over_ranks(i32 stage, i64 replicas, Of const& of) const {
    i64 least = -1, most = 0;
    for (i64 replica = 0; replica < replicas; ++replica)
      for (i64 r = 0; r < plan.stage(stage).ranks; ++r) {
        i64 const n = of(replica * plan.ranks_per_replica() + plan.stage(stage).base + r);
        most = n > most ? n : most;
        least = least < 0 || n < least ? n : least;
      }
    return range_words(least, most);
  }
};

/// "dp 2, tp 3"; stated shares as "tp 2 as 3:1".
inline std::string axes_words(Mesh const& mesh, i32 from, i32 to) {
  std::string text;
  for (i32 a = from; a < to; ++a) {
    text += words(text.empty() ? "" : ", ", mesh[a]->name, ' ', mesh[a]->size);
    for (i32 r = 0; mesh[a]->shares && r < mesh[a]->size; ++r) text += words(r ? ":" : " as ", mesh[a]->share(r));
  }
  return text;
}

inline std::string rank_lines(Telling const& t, i32 stage) {
  Plan const& plan = t.plan;
  auto const type = [&](Storage of) { return " (" + element_word(of, t.bytes) + ")"; };
  auto const weights = [&](i64 rank) { return weight_bytes(plan, rank, t.bytes); };
  auto const cache = [&](i64 rank) { return kv_bytes_per_token(plan, rank, t.bytes); };
  std::string text = "  a rank stores " + t.over_ranks(stage, 1, weights) + " of weights" + type(Storage::weight) +
                     " and " + t.over_ranks(stage, 1, cache) + " of cache" + type(Storage::cache) + " a token\n";
  if (!t.has_run) return text;
  auto const arena = [&](i64 rank) { return arena_of(plan, rank, t.run, t.bytes).bytes; };
  auto const received = [&](i64 rank) { return traffic(plan, rank, t.run, t.bytes).total.bytes; };
  return text + "  in this run it needs " + t.over_ranks(stage, plan.replicas(), arena) +
         " for activations and receives " + t.over_ranks(stage, plan.replicas(), received) + "\n";
}

/// What one step moves: a line that says where and what, a line that says why.
inline std::string step_lines(Telling const& t, i32 step) {
  Plan const& plan = t.plan;
  Step const& s = plan.steps[step];
  std::string line = "  " + padded(place_in_model(plan, step), t.place_width) + "  ";
  line += padded(words('x', plan.executions(s.loop)), 4) + ' ' + padded(name_of(s.kind), 14) + ' ';
  line += padded(s.axis < 0 ? "" : plan.mesh(s.stage)[s.axis]->name, 4) + ' ';
  line += padded(describe(plan, s.operands[0].value, t.bytes), t.value_width) + "  ";
  auto const received = [&](i64 rank) { return step_traffic(plan, step, rank, t.run, t.bytes).bytes; };
  if (t.has_run) line += t.over_ranks(s.stage, plan.replicas(), received);
  while (line.back() == ' ') line.pop_back();
  return line + "\n      " + reason(plan, step) + "\n";
}

inline std::string alike_lines(Plan const& plan, i32 stage) {
  constexpr std::size_t shown = 8;
  std::string text;
  Mesh const& mesh = plan.mesh(stage);
  for (i32 a = 0; a < mesh.size(); ++a) {
    auto const parts = computed_alike(plan, stage, a);
    if (parts.empty() || mesh[a]->size == 1) continue;
    text += words("  computed alike by the ", counted(mesh[a]->size, "rank"), " of ", mesh[a]->name, ": ");
    for (std::size_t i = 0; i < parts.size() && i < shown; ++i) text += (i ? ", " : "") + parts[i];
    if (parts.size() > shown) text += words(" and ", parts.size() - shown, " more");
    text += '\n';
  }
  return text;
}

/// All that is said of a stage but which it is. A send is told by the stage that receives.
inline std::string stage_text(Telling const& t, i32 stage) {
  Plan const& plan = t.plan;
  Stage const& st = plan.stage(stage);
  std::string const own = axes_words(st.mesh, plan.above, st.mesh.size());
  std::string text = words(": ", counted(st.ranks, "rank"), own.empty() ? std::string() : " (" + own + ")");
  if (st.layers) text += words(", ", counted(st.layers, "layer"));
  text += '\n' + rank_lines(t, stage);
  bool quiet = true;
  for (i32 i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].stage != stage || !is_told(plan.steps[i])) continue;
    text += step_lines(t, i);
    quiet = false;
  }
  if (quiet) text += "  nothing is communicated\n";
  return text + alike_lines(plan, stage);
}

inline std::string parameters_words(i64 n) {
  if (n < 100'000) return std::to_string(n);
  return n < 1000'000'000 ? wording::tenths(n, 1000'000) + " M" : wording::tenths(n, 1000'000'000) + " B";
}

inline std::string heading(Telling const& t) {
  Plan const& plan = t.plan;
  std::string text = counted(plan.ranks(), "rank");
  if (plan.replicas() > 1)
    text += words(": ", plan.replicas(), " replicas (", axes_words(plan.mesh(0), 0, plan.above), ") of ",
                  plan.ranks_per_replica());
  text += words(plan.replicas() > 1 ? ", " : ": ", counted(plan.stages(), "stage"), ", ",
                parameters_words(total_parameters(plan)), " parameters\n");
  if (!t.has_run) return text;
  i64 past = 0, tokens = 0;
  for (auto const& s : t.run) past += s.past, tokens += s.tokens;
  return text + words("a run of ", counted(t.run.size(), "sequence"), ", ", counted(tokens, "new token"), " after ",
                      past, "; bytes of a step are what a rank receives in one execution of it\n");
}

inline std::string all_text(Telling const& t) {
  Plan const& plan = t.plan;
  std::string text = heading(t), told;
  i32 from = 0;
  for (i32 s = 0; s <= plan.stages(); ++s) {
    std::string const now = s < plan.stages() ? stage_text(t, s) : std::string();
    if (s && now != told) {
      i64 const base = plan.stage(from).base, ranks = plan.stage(s - 1).base + plan.stage(s - 1).ranks - base;
      text += s - from > 1 ? words("\nstages ", from, " to ", s - 1) : words("\nstage ", from);
      text += ranks > 1 ? words(", ranks ", base, " to ", base + ranks - 1) : words(", rank ", base);
      if (plan.replicas() > 1) text += " of a replica";
      text += (s - from > 1 ? ", each" : "") + told;
      from = s;
    }
    told = now;
  }
  return text;
}

inline std::string refusal(Plan const& plan) {
  return words("refused: ", id_of(plan.verdict.rule), ": ", sentence(plan.verdict), '\n');
}

}  // namespace explaining

/// The plan on one screen, without the numbers of a run. A refused plan gives the sentence of its verdict.
inline std::string explain(Plan const& plan, StorageBytes const& bytes = f32_storage) {
  return plan.ok() ? explaining::all_text({plan, bytes}) : explaining::refusal(plan);
}
/// The same with what a run needs: bytes for activations, bytes that a rank receives.
inline std::string explain(Plan const& plan, RunShape run, StorageBytes const& bytes) {
  if (!plan.ok()) return explaining::refusal(plan);
  explaining::Telling t(plan, bytes);
  t.run = run, t.has_run = true;
  return explaining::all_text(t);
}

}  // namespace dovetail
