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
#include <map>
#include <mutex>

#include "split_script.hpp"

namespace split_run {

using namespace dovetail;

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

/// Compares every pass of every rank with the whole model's.
class Comparison {
 public:
  Comparison(Script const& script, Whole const& whole) : script_(script), whole_(whole) {
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
      logits_.emplace_back(whole.logits[i].size());
      choices_.emplace_back(whole.choices[i].size());
      auto& caches = caches_.emplace_back();
      for (auto const& [name, values] : whole.caches[i]) caches.emplace(name, values.size());
    }
  }

  /// After pass `i` of a rank, on its thread.
  void look_at(auto& executor, std::size_t i) {
    Plan const& plan = executor.plan();
    auto const& step = script_.steps[i];
    i64 const rank = executor.comm().rank();
    auto const row_of = [&](i64 sequence, i64 p) { return step.first_row(sequence) + p; };
    auto const slot_of = [&](i64 sequence, i64 p) { return sequence * script_.capacity + p; };
    auto const same_choice = [](Choice a, Choice b) { return a.index == b.index && same_bits(a.value, b.value); };
    if (auto const v = executor.view(plan.result))
      compare(rank, i, "a logit", *v, row_of, whole_.logits[i], same_bits, logits_[i]);
    if (auto const v = executor.view(plan.output("choice")))
      compare(rank, i, "the best token", *v, row_of, whole_.choices[i], same_choice, choices_[i]);
    each_cache(executor, [&](std::string const& name, View const& v) {
      auto const expected = whole_.caches[i].find(name);
      if (expected == whole_.caches[i].end()) return findings_.add(rank, "the unsplit model has no cache " + name);
      compare(rank, i, "the cache " + name, v, slot_of, expected->second, same_bits, caches_[i].at(name));
    });
    compare_costs(executor, script_, step, findings_);
  }

  /// After all ranks have ended. @return what differs; empty where nothing does
  std::string end() {
    for (std::size_t i = 0; i < script_.steps.size(); ++i) {
      std::string const pass = "pass " + std::to_string(i) + ": ";
      i64 const lost = logits_[i].missing() + choices_[i].missing();
      if (lost) findings_.add(-1, pass + "no rank holds " + std::to_string(lost) + " logits or best tokens");
      i64 tokens = 0;
      for (auto const& s : script_.steps[i].run) tokens += s.past + s.tokens;
      for (auto const& [name, seen] : caches_[i]) {
        auto const all = static_cast<i64>(whole_.caches[i].at(name).size());
        i64 const used = all / (script_.sequences * script_.capacity) * tokens, held = all - seen.missing();
        if (held != used)
          findings_.add(-1, pass + "ranks hold " + std::to_string(held) + " of " + std::to_string(used) +
                                " elements of the cache " + name);
      }
    }
    return findings_.text();
  }

 private:
  Script const& script_;
  Whole const& whole_;
  Findings findings_{};
  std::mutex mutex_{};
  std::vector<Seen> logits_{}, choices_{};
  std::vector<std::map<std::string, Seen>> caches_{};

  template <class Element>
  void compare(i64 rank, std::size_t pass, std::string const& what, View const& v, auto const& row_of,
               std::vector<Element> const& expected, auto const& same, Seen& all) {
    Seen mine(expected.size());
    i64 wrong = -1;
    each_element(v, row_of, [&](i64 at, i64 here) {
      mine.mark(at);
      if (wrong < 0 && !same(v.as<Element>()[here], expected[static_cast<std::size_t>(at)])) wrong = at;
    });
    if (wrong >= 0)
      findings_.add(rank,
                    "pass " + std::to_string(pass) + ": " + what + " differs at element " + std::to_string(wrong));
    std::lock_guard const lock(mutex_);
    all.join(mine);
  }
};

/// What differs between the plan's run and the whole model's; empty where nothing does.
inline std::string differences(Plan const& plan, Script const& script, Whole const& whole) {
  Comparison comparison(script, whole);
  try {
    run_ranks(plan, script, [&](auto& executor, std::size_t i) { comparison.look_at(executor, i); });
  } catch (std::exception const& error) {
    return std::string("\n  ") + error.what();
  }
  return comparison.end();
}

}  // namespace split_run
