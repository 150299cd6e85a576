// SPDX-License-Identifier: MIT
// The executor of one rank: it walks the plan's steps and does exactly what they say. Construction binds the plan to
// the rank (steps, views, memory); forward() binds the extents of a run and interprets. Once extents repeat, nothing is
// allocated. Every failure leaves as a RunError, and a rank that fails ends the waits of all others with it.
#pragma once
#include <dovetail/plan/builtin_ops.hpp>
#include <dovetail/run/bound_steps.hpp>
#include <dovetail/run/rank_memory.hpp>
#include <dovetail/run/run_error.hpp>
#include <dovetail/run/step_names.hpp>
#include <dovetail/run/world_check.hpp>

namespace dovetail {

/// Called before each compute step: nothing.
struct NoHook {
  void operator()(auto&, Step const&, auto&) const {}
};

/// One rank's run of a plan: weights, caches and arena made once, then pass after pass.
template <Device D, Communicator C>
class Executor {
 public:
  using Scalar = typename D::Scalar;
  using Group = typename C::Group;

  /// @param source fills the weights: see WeightSource
  /// @param kernels rows of the user's own ops; they are looked at before the device's
  /// @throws RunError where the world does not fit the plan, a kernel is missing or a weight cannot be had
  Executor(Plan const& plan, D& device, C& comm, WeightSource<Scalar> const& source, ExecutorOptions options,
           std::span<KernelRow<D> const> kernels = {})
      : plan_(plan), comm_(comm), rank_(comm.rank()) {
    guarded([&] {
      check_world(plan_, comm_.size());
      limits_.emplace(options, !plan_.states.empty());
      place_ = plan_.place_of(rank_);
      int const self[] = {comm_.rank()};
      alone_.emplace(comm_.group(self));
      views_.emplace(plan_, place_, options);
      steps_.emplace(plan_, device, comm_, *views_, kernels, step_);
      memory_.emplace(plan_, rank_, device, *views_, source, options);
      compare_plans(plan_, comm_);
    });
  }
  Executor(Executor const&) = delete;

  /// One pass: computes `run[s].tokens` new tokens of every sequence s, whose `past` tokens came in passes before; to
  /// go back, give a smaller past. Results stand until the next pass.
  /// @param hook called as hook(executor, step, kernel call) before each compute step; one that can be called as
  ///   hook(executor, step) is called so before every step of any kind in which this rank has a part
  /// @throws RunError; WorldFailed where another rank failed, also on a rank that has no part in any exchange
  template <class Hook = NoHook>
  void forward(RunShape run, RunTokens tokens, std::span<ChoiceRule const> rules = {}, Hook&& hook = {}) {
    guarded([&] {
      step_ = -1;
      limits_->check(run, tokens);
      views_->bind(run);
      memory_->fit(run);
      steps_->bind(run, {rules.data(), static_cast<i32>(rules.size())});
      for (i32 v : plan_.inputs)
        if (plan_.values[v].stage == place_.stage) fill_input(v, run, tokens);
      limits_->begin(run);
      execute(-1, hook);
      step_ = -1;
      limits_->end(run);
      comm_.barrier(*alone_).wait();  // moves nothing; throws where the world has failed
    });
  }

  /// What this rank holds of a value after a pass; std::nullopt where it is on another stage.
  std::optional<View> view(i32 value) {
    if (value < 0 || plan_.values[value].stage != place_.stage) return std::nullopt;
    View v = views_->view(value);
    v.memory = memory_->of(value);
    return v;
  }
  /// What it holds of a state, of one iteration of the loops around it: rows of a sequence lie from Segment::row on.
  std::optional<View> state(i32 id, i64 iteration) {
    if (plan_.states[id].stage != place_.stage) return std::nullopt;
    View v = views_->cache_view(id);
    v.memory = memory_->cache(id, iteration);
    return v;
  }

  Plan const& plan() const { return plan_; }
  RankPlace const& place() const { return place_; }
  C& comm() { return comm_; }
  Group const& axis_group(i32 axis) const { return steps_->group(axis); }
  i64 arena_bytes() const { return memory_->arena_bytes(); }
  i64 weight_bytes() const { return memory_->weight_bytes(); }
  i64 packed_bytes() const { return memory_->packed_bytes(); }
  i64 state_bytes() const { return memory_->cache_bytes(); }
  static constexpr StorageBytes storage_bytes() { return RankMemory<D>::storage_bytes(); }

 private:
  using Bound = BoundStep<D, C>;

  Plan plan_;
  C& comm_;
  i64 rank_;
  RankPlace place_{};
  std::optional<BatchLimits> limits_{};
  std::optional<Group> alone_{};  ///< this rank
  std::optional<RankViews> views_{};
  std::optional<BoundSteps<D, C>> steps_{};
  std::optional<RankMemory<D>> memory_{};
  i32 step_ = -1;  ///< that is under way; -1: none

  /// Adds rank, stage, step and tensor to whatever leaves `body`; the failure of another rank passes as it is.
  template <class Body>
  void guarded(Body&& body) {
    try {
      body();
    } catch (WorldFailed const&) {
      throw;
    } catch (RunError const&) {
      throw;
    } catch (WeightError const& e) {
      throw RunError(e.what(), rank_, place_.stage, step_, step_name(plan_, step_), e.tensor);
    } catch (std::exception const& e) {
      throw RunError(e.what(), rank_, place_.stage, step_, step_name(plan_, step_), step_tensor(plan_, step_));
    }
  }

  void fill_input(i32 v, RunShape run, RunTokens tokens) {
    if (plan_.values[v].storage != Storage::token) throw std::invalid_argument("an input that is not tokens");
    copy_tokens(views_->view(v), run, tokens, static_cast<i32*>(memory_->of(v)));
  }

  // ---- the walk

  template <class Hook>
  void execute(i32 loop, Hook& hook) {
    for (auto& b : steps_->of(loop)) {
      Step const& s = plan_.steps[b.step];
      step_ = b.step;
      if constexpr (requires { hook(*this, s); }) hook(*this, s);
      if (b.kernel) compute(b, s, hook);
      else if (b.transfer)
        b.transfer->template run<Scalar>(comm_, steps_->staging(), memory_->bytes(s.operands[0].value),
                                         memory_->bytes(s.results[0]));
      else if (s.kind == StepKind::send) send(b, s);
      else run_loop(b.step, s, hook);
    }
  }
  template <class Hook>
  void compute(Bound& b, Step const& s, Hook& hook) {
    KernelCall<D>& c = b.call;
    for (i32 i = 0; i < s.operands.size(); ++i)
      if (!s.operands[i].witness) c.operands[i].memory = operand(b, s, i);
    for (i32 i = 0; i < s.results.size(); ++i) c.results[i].memory = memory_->of(s.results[i]);
    for (i32 i = 0; i < s.parameters.size(); ++i) {
      bool const leaf = s.parameters[i].value == plan_.parameters[s.parameters[i].parameter].value;
      c.weights[i] = leaf ? &memory_->weight(s.parameters[i].parameter) : nullptr;
      c.parameters[i].memory = leaf && s.op == &matmul ? nullptr : memory_->of(s.parameters[i].value);
    }
    if (s.state >= 0) c.state.memory = memory_->cache(s.state);
    hook(*this, s, c);
    b.kernel(c);
  }
  void send(Bound& b, Step const& s) {
    i32 const value = b.sender >= 0 ? s.results[0] : s.operands[0].value;
    i64 const n = views_->box(value).elements();
    Element const element = element_of<D>(plan_.values[value].storage);
    void* const at = b.sender >= 0 ? memory_->of(value) : operand(b, s, 0);
    if (b.sender >= 0) comm_.receive(b.sender, at, n, element, b.step).wait();
    for (int r : b.receivers) comm_.send(r, at, n, element, b.step).wait();
  }
  template <class Hook>
  void run_loop(i32 step, Step const& s, Hook& hook) {
    Loop const& l = plan_.loops[s.body];
    copy_value(l.initial, l.argument);
    for (i32 i = 0; i < l.count; ++i) {
      memory_->enter(s.body, i);
      execute(s.body, hook);
      step_ = step;
      copy_value(l.yielded, l.argument);
    }
  }

  /// Memory of what a step reads; rows of a cache are copied together first where the reader takes them so.
  void* operand(Bound& b, Step const& s, i32 i) {
    i32 const value = s.operands[i].value;
    if (!b.packed[i].rows) return memory_->of(value);
    copy_overlap(views_->box(value).now(), memory_->bytes(value), b.packed[i].now(), steps_->packed(i),
                 D::bytes_of(Storage::cache));
    return steps_->packed(i);
  }
  void copy_value(i32 from, i32 to) {
    if (memory_->shares_buffer(from, to)) return;
    copy_overlap(views_->box(from).now(), memory_->bytes(from), views_->box(to).now(), memory_->bytes(to),
                 D::bytes_of(plan_.values[to].storage));
  }
};

}  // namespace dovetail
