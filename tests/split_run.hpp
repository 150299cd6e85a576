// SPDX-License-Identifier: MIT
// Runs a plan on threads with the exact device and compares it, bit for bit, with the same model unsplit: logits of
// every row, the best token of each, what the caches hold on every holder, and traffic and memory with what the plan
// predicts. Differences come back as sentences; nothing is asserted on the threads of the ranks.
#pragma once
#include <bit>
#include <dovetail/comm/threads.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/plan/arena.hpp>
#include <dovetail/plan/memory.hpp>
#include <dovetail/plan/traffic.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <dovetail/run/executor.hpp>
#include <mutex>

#include "tiny_model.hpp"

namespace split_run {

using namespace dovetail;
using test::Random;

/// What a test asks a model for: one entry of `steps` a forward().
struct Script {
  struct Step {
    std::vector<SequenceRun> run{};
    std::vector<std::vector<i32>> tokens{};  ///< by sequence
    std::vector<ChoiceRule> rules{};
    RunShape shape() const { return {run.data(), static_cast<i32>(run.size())}; }
    i64 first_row(i64 sequence) const {
      i64 n = 0;
      for (i64 s = 0; s < sequence; ++s) n += run[static_cast<std::size_t>(s)].rows;
      return n;
    }
  };
  i64 sequences = 0, capacity = 0;
  std::uint64_t weights = 0;
  std::vector<Step> steps{};
};

/// Ragged prompts with all logits, then more of some sequences, then single tokens: any sequence may pause, the logits
/// asked for differ, the last step samples.
inline Script script_of(tiny::Model const& model, std::uint64_t seed) {
  Random random(seed ^ test::mix(model.name));
  Script script;
  script.sequences = random.between(1, 4), script.weights = seed;
  std::vector<i64> past(static_cast<std::size_t>(script.sequences), 0);
  for (i32 at = 0; at < 4; ++at) {
    Script::Step step;
    for (i64 s = 0; s < script.sequences; ++s) {
      i32 const tokens = at == 0   ? random.between(s == 0, 6)
                         : at == 1 ? random.between(0, 3)
                                   : random.between(s == at % script.sequences, 1);
      auto& before = past[static_cast<std::size_t>(s)];
      step.run.push_back({before, tokens, at < 2 ? tokens : random.between(0, tokens)});
      before += tokens;
      script.capacity = std::max(script.capacity, before);
      step.tokens.emplace_back();
      for (i32 t = 0; t < tokens; ++t)
        step.tokens.back().push_back(random.between(0, static_cast<i32>(model.vocab_size) - 1));
      if (at == 3) step.rules.push_back({0.5 + 0.25 * random.between(0, 4), -0.5, random.one_in(2), random.next()});
    }
    script.steps.push_back(std::move(step));
  }
  return script;
}

/// Values of the whole model, by step: logits[row, vocab], best token[row]; and of each cache, by its name with the
/// layer index: [sequence, position, kv_heads, head_dim], `capacity` positions a sequence.
struct Whole {
  std::vector<std::vector<double>> logits{};
  std::vector<std::vector<Choice>> choices{};
  std::vector<std::map<std::string, std::vector<double>>> caches{};
};

inline bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

/// Calls f(index in the whole, index in the view) for every element of a view; row_of(sequence, position) counts the
/// whole's rows.
inline void each_element(View const& v, auto const& row_of, auto const& f) {
  i32 const symbols = leading_symbols(*v.dims), dims = v.dims->size();
  i64 whole_width = 1;
  for (i32 k = symbols; k < dims; ++k) whole_width *= (*v.dims)[k].size;
  for (Segment const& s : v.segments)
    for (i64 p = s.range.lo; p < s.range.hi; ++p)
      for (i64 i = 0; i < v.width; ++i) {
        i64 at = 0, rest = i, stride = 1;
        for (i32 k = dims - 1; k >= symbols; --k) {
          at += (v.ranges[k].lo + rest % v.ranges[k].size()) * stride;
          rest /= v.ranges[k].size(), stride *= (*v.dims)[k].size;
        }
        f(row_of(s.sequence, p) * whole_width + at, (s.row + p - s.range.lo) * v.width + i);
      }
}

/// Sentences of all ranks, the first few of each.
class Findings {
 public:
  void add(i64 rank, std::string const& what) {
    std::lock_guard const lock(mutex_);
    if (++count_ <= most) text_ += "\n  rank " + std::to_string(rank) + ": " + what;
  }
  std::string text() const {
    return count_ > most ? text_ + "\n  and " + std::to_string(count_ - most) + " more" : text_;
  }

 private:
  static constexpr int most = 8;
  std::mutex mutex_;
  std::string text_{};
  int count_ = 0;
};

/// What some rank held of something whole.
class Seen {
 public:
  explicit Seen(std::size_t elements) : seen_(elements) {}
  void mark(i64 i) { seen_[static_cast<std::size_t>(i)] = 1; }
  void join(Seen const& o) {
    for (std::size_t i = 0; i < seen_.size(); ++i) seen_[i] = seen_[i] || o.seen_[i];
  }
  i64 missing() const { return std::count(seen_.begin(), seen_.end(), 0); }

 private:
  std::vector<char> seen_;
};

/// Runs `plan` on one rank a thread; each(executor, step index, before) is called after every forward().
inline void run_ranks(Plan const& plan, Script const& script, auto const& each) {
  ThreadWorld world(static_cast<int>(plan.ranks()));
  world.run([&](ThreadCommunicator& comm) {
    Reference device;
    Executor<Reference, ThreadCommunicator> executor(plan, device, comm, tiny::Weights{script.weights},
                                                     ExecutorOptions{script.sequences, script.capacity},
                                                     tiny::user_kernels<Reference>);
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
      auto const& step = script.steps[i];
      std::vector<std::span<i32 const>> const tokens(step.tokens.begin(), step.tokens.end());
      comm.reset_counters();
      executor.forward(step.shape(), tokens, step.rules);
      each(executor, i);
    }
  });
}

/// Calls f(name, view) for every cache of a rank.
inline void each_cache(auto& executor, auto const& f) {
  Plan const& plan = executor.plan();
  for (i32 s = 0; s < plan.states.size(); ++s)
    if (plan.states[s].stage == executor.place().stage)
      each_iteration(plan, plan.states[s].layer, plan.states[s].loop, [&](i64 iteration, i64 layer) {
        f(indexed_name(plan.states[s].name, layer), *executor.state(s, iteration));
      });
}

inline Whole run_whole(tiny::Model const& model, Script const& script) {
  LayoutPlan const planned = plan_layout(read_layout("single"), model.layers, model.apply);
  Plan const plan = planned.view();
  Whole whole;
  run_ranks(plan, script, [&](auto& executor, std::size_t) {
    View const logits = *executor.view(plan.result), choices = *executor.view(plan.output("choice"));
    whole.logits.emplace_back(logits.as<double>(), logits.as<double>() + logits.rows * logits.width);
    whole.choices.emplace_back(choices.as<Choice>(), choices.as<Choice>() + choices.rows);
    auto& caches = whole.caches.emplace_back();
    each_cache(executor, [&](std::string const& name, View const& v) {
      auto& values = caches[name];
      values.resize(static_cast<std::size_t>(script.sequences * script.capacity * v.width));
      auto const row_of = [&](i64 sequence, i64 p) { return sequence * script.capacity + p; };
      each_element(v, row_of, [&](i64 at, i64 here) { values[static_cast<std::size_t>(at)] = v.as<double>()[here]; });
    });
  });
  return whole;
}

/// Memory and traffic of a rank after a step, against the plan.
inline void compare_costs(auto& executor, Script const& script, Script::Step const& step, Findings& findings) {
  Plan const& plan = executor.plan();
  i64 const rank = executor.comm().rank();
  StorageBytes const bytes = executor.storage_bytes();
  auto const equal = [&](char const* what, i64 is, i64 predicted) {
    if (is != predicted)
      findings.add(rank, std::string(what) + " is " + std::to_string(is) + ", predicted " + std::to_string(predicted));
  };
  TrafficReport const report = traffic(plan, rank, step.shape(), bytes);
  TrafficCounters const counted = executor.comm().counters();
  auto const compare = [&](char const* what, Traffic is, Cost predicted) {
    equal((std::string("messages of ") + what).c_str(), is.messages, predicted.messages);
    equal((std::string("bytes of ") + what).c_str(), is.bytes, predicted.bytes);
  };
  compare("all steps", counted.total(), report.total);
  compare("all_reduce", counted[Exchange::all_reduce], report.of(StepKind::all_reduce));
  compare("reduce_scatter", counted[Exchange::reduce_scatter], report.of(StepKind::reduce_scatter));
  compare("all_gather", counted[Exchange::all_gather], report.of(StepKind::all_gather));
  compare("all_to_all", counted[Exchange::all_to_all],
          report.of(StepKind::all_to_all) + report.of(StepKind::share_reduce));
  compare("send", counted[Exchange::point_to_point], report.of(StepKind::send));
  std::vector<SequenceRun> const full(static_cast<std::size_t>(script.sequences), SequenceRun{script.capacity, 0, 0});
  RunShape const at_capacity{full.data(), static_cast<i32>(full.size())};
  equal("bytes of weights", executor.weight_bytes(), weight_bytes(plan, rank, bytes));
  equal("bytes of states", executor.state_bytes(), state_bytes(plan, rank, at_capacity, bytes));
  equal("bytes of the arena", executor.arena_bytes(), arena_of(plan, rank, step.shape(), bytes).bytes);
}

/// What differs between the plan's run and the whole model's; empty where nothing does.
inline std::string differences(Plan const& plan, Script const& script, Whole const& whole) {
  Findings findings;
  std::vector<Seen> logits, choices;
  std::vector<std::map<std::string, Seen>> caches(script.steps.size());
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    logits.emplace_back(whole.logits[i].size());
    choices.emplace_back(whole.choices[i].size());
    for (auto const& [name, values] : whole.caches[i]) caches[i].emplace(name, values.size());
  }
  std::mutex mutex;
  try {
    run_ranks(plan, script, [&](auto& executor, std::size_t i) {
      auto const& step = script.steps[i];
      i64 const rank = executor.comm().rank();
      auto const differs = [&](std::string const& what, i64 at) {
        findings.add(rank, "step " + std::to_string(i) + ": " + what + " differs at element " + std::to_string(at));
      };
      auto const row_of = [&](i64 sequence, i64 p) { return step.first_row(sequence) + p; };
      auto const compare = [&](std::string const& what, View const& v, auto const& rows, auto const& expected,
                               auto same, Seen& all) {
        using Element = std::remove_cvref_t<decltype(expected[0])>;
        Seen mine(expected.size());
        i64 wrong = -1;
        each_element(v, rows, [&](i64 at, i64 here) {
          mine.mark(at);
          if (wrong < 0 && !same(v.as<Element>()[here], expected[static_cast<std::size_t>(at)])) wrong = at;
        });
        if (wrong >= 0) differs(what, wrong);
        std::lock_guard const lock(mutex);
        all.join(mine);
      };
      if (auto const v = executor.view(plan.result))
        compare("a logit", *v, row_of, whole.logits[i], same_bits, logits[i]);
      if (auto const v = executor.view(plan.output("choice")))
        compare(
            "the best token", *v, row_of, whole.choices[i],
            [](Choice a, Choice b) { return a.index == b.index && same_bits(a.value, b.value); }, choices[i]);
      each_cache(executor, [&](std::string const& name, View const& v) {
        auto const expected = whole.caches[i].find(name);
        if (expected == whole.caches[i].end()) return findings.add(rank, "the unsplit model has no cache " + name);
        auto const slot = [&](i64 sequence, i64 p) { return sequence * script.capacity + p; };
        compare("the cache " + name, v, slot, expected->second, same_bits, caches[i].at(name));
      });
      compare_costs(executor, script, step, findings);
    });
  } catch (std::exception const& error) {
    return std::string("\n  ") + error.what();
  }
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    i64 const lost = logits[i].missing() + choices[i].missing();
    if (lost)
      findings.add(-1, "step " + std::to_string(i) + ": no rank holds " + std::to_string(lost) + " logits or choices");
    for (auto const& [name, seen] : caches[i]) {
      i64 used = 0;
      auto const width = static_cast<i64>(whole.caches[i].at(name).size()) / (script.sequences * script.capacity);
      for (auto const& s : script.steps[i].run) used += (s.past + s.tokens) * width;
      auto const all = static_cast<i64>(whole.caches[i].at(name).size());
      if (all - seen.missing() != used)
        findings.add(-1, "step " + std::to_string(i) + ": the cache " + name + " is held at " +
                             std::to_string(all - seen.missing()) + " places of " + std::to_string(used));
    }
  }
  return findings.text();
}

}  // namespace split_run
