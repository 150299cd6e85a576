// SPDX-License-Identifier: MIT
// The executor of one rank: it walks the plan's steps and does exactly what they say. Construction binds the plan to
// the rank (kernels, groups, exchanges, weights, caches); forward() binds the extents of a run and interprets. Values
// live in one arena. Once extents repeat, nothing is allocated. Every failure leaves as a RunError, and a rank that
// fails ends the waits of all others with it.
#pragma once
#include <bit>
#include <dovetail/device/device.hpp>
#include <dovetail/plan/arena.hpp>
#include <dovetail/plan/builtin_ops.hpp>
#include <dovetail/plan/identity.hpp>
#include <dovetail/plan/peers.hpp>
#include <dovetail/run/run_error.hpp>
#include <dovetail/run/step_names.hpp>
#include <dovetail/run/transfer.hpp>
#include <dovetail/run/weight_store.hpp>
#include <optional>

namespace dovetail {

struct ExecutorOptions {
  i64 sequences = 1;  ///< sequences of the batch, for the life of the executor; one that is done has no tokens
  i64 capacity = 0;   ///< tokens of a sequence that the caches hold
};

/// New tokens of each sequence of the batch. A rank looks only at those of the sequences that it holds.
using RunTokens = std::span<std::span<i32 const> const>;

/// Called before each compute step: nothing.
struct NoHook {
  void operator()(auto&, Step const&, auto&) const {}
};

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
      : plan_(plan), device_(device), comm_(comm), options_(options), rank_(comm.rank()) {
    guarded([&] {
      check_world();
      place_ = plan_.place_of(rank_);
      planner_.emplace(plan_, rank_, storage_bytes());
      tables_.emplace(mesh(), options_.sequences);
      make_groups();
      bind_values();
      for (auto const& row : kernels) kernels_.push_back(row);
      for (auto const& row : D::kernels()) kernels_.push_back(row);
      bind_steps();
      weights_.emplace(plan_, place_, device_, source);
      make_states();
      compare_plans();
    });
  }

  /// One pass: computes `run[s].tokens` new tokens of every sequence s. Results stand until the next pass.
  /// @param hook called as hook(executor, step, kernel call) before each compute step; one that can be called as
  ///   hook(executor, step) is called so before every step of any kind in which this rank has a part
  /// @throws RunError; WorldFailed where another rank failed
  template <class Hook = NoHook>
  void forward(RunShape run, RunTokens tokens, std::span<ChoiceRule const> rules = {}, Hook&& hook = {}) {
    guarded([&] {
      check_run(run, tokens);
      run_ = run;
      rules_ = {rules.data(), static_cast<i32>(rules.size())};
      bind_run();
      for (i32 v : plan_.inputs)
        if (plan_.values[v].stage == place_.stage) fill_input(v, tokens);
      execute(-1, hook);
      step_ = -1;
    });
  }

  /// What this rank holds of a value after a pass; std::nullopt where it is on another stage.
  std::optional<View> view(i32 value) {
    if (value < 0 || plan_.values[value].stage != place_.stage) return std::nullopt;
    View v = views_[index(value)];
    v.memory = memory(value);
    return v;
  }
  /// What it holds of a state, of one iteration of the loops around it: rows of a sequence lie from Segment::row on.
  std::optional<View> state(i32 id, i64 iteration) {
    if (plan_.states[id].stage != place_.stage) return std::nullopt;
    View v = state_views_[index(id)];
    v.memory = states_[index(id)][static_cast<std::size_t>(iteration)].get();
    return v;
  }

  Plan const& plan() const { return plan_; }
  RankPlace const& place() const { return place_; }
  C& comm() { return comm_; }
  Group const& axis_group(i32 axis) const { return groups_[index(axis)]; }
  i64 arena_bytes() const { return planner_->arena().bytes; }
  i64 weight_bytes() const { return weights_->logical_bytes(); }
  i64 packed_bytes() const { return weights_->packed_bytes(); }
  i64 state_bytes() const { return state_bytes_; }
  static constexpr StorageBytes storage_bytes() {
    StorageBytes b;
    for (int s = 0; s < storage_kinds; ++s) b.of[s] = D::bytes_of(static_cast<Storage>(s));
    return b;
  }

 private:
  /// A step as this rank runs it.
  struct Bound {
    i32 step = -1;
    Kernel<D> kernel = nullptr;
    KernelCall<D> call{};
    std::optional<Transfer<C>> transfer{};
    std::vector<int> receivers{};     ///< of a send, on the sending stage
    int sender = -1;                  ///< of a send, on the receiving stage
    TableBox packed[max_operands]{};  ///< of an operand that is a view of a cache: its rows as they are handed over
  };

  Plan plan_;
  D& device_;
  C& comm_;
  ExecutorOptions options_;
  i64 rank_;
  RankPlace place_{};
  std::optional<ArenaPlanner> planner_{};
  std::optional<RowTables> tables_{};
  std::optional<WeightStore<D>> weights_{};
  std::vector<KernelRow<D>> kernels_{};
  std::vector<Group> groups_{};               ///< by axis of this stage's mesh
  std::vector<TableBox> boxes_{};             ///< by value of this stage
  std::vector<View> views_{};                 ///< by value, for the current run; memory is found at use
  std::vector<i32> alias_{};                  ///< by value: the state it is a view of, or -1
  std::vector<std::vector<Bound>> bodies_{};  ///< steps by loop; [0]: outside loops
  std::vector<std::vector<typename D::Memory>> states_{};
  std::vector<TableBox> state_boxes_{};
  std::vector<View> state_views_{};
  std::vector<i64> iteration_{};  ///< by loop
  std::optional<typename D::Memory> arena_{};
  i64 arena_room_ = 0, state_bytes_ = 0;
  Staging staging_{};
  std::vector<std::byte> packed_[max_operands]{};
  RunShape run_{};
  Span<ChoiceRule> rules_{};
  i32 step_ = -1;

  static std::size_t index(i64 i) { return static_cast<std::size_t>(i); }
  Mesh const& mesh() const { return plan_.mesh(place_.stage); }

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

  void check_world() const {
    if (!plan_.ok())
      throw std::invalid_argument("the plan was refused (" + std::string(id_of(plan_.verdict.rule)) + ")");
    if (plan_.ranks() != comm_.size())
      throw std::invalid_argument("the plan is for " + std::to_string(plan_.ranks()) + " ranks, but the world has " +
                                  std::to_string(comm_.size()) + ": start it with " + std::to_string(plan_.ranks()));
    if (options_.sequences < 1 || options_.capacity < 1)
      throw std::invalid_argument("an executor needs at least one sequence and a capacity of at least one token, not " +
                                  std::to_string(options_.sequences) + " and " + std::to_string(options_.capacity));
  }

  void make_groups() {
    for (i32 a = 0; a < mesh().size(); ++a) {
      std::vector<int> ranks;
      for (i32 i = 0; i < mesh()[a]->size; ++i) ranks.push_back(static_cast<int>(rank_along(plan_, rank_, a, i)));
      groups_.push_back(comm_.group(ranks));
    }
  }

  /// Ranks with other plans would exchange other sizes: compare before the first collective.
  void compare_plans() {
    std::vector<int> all;
    for (int r = 0; r < comm_.size(); ++r) all.push_back(r);
    Group const world = comm_.group(all);
    i64 const mine = std::bit_cast<i64>(plan_hash(plan_));
    std::vector<i64> hashes(all.size()), counts(all.size(), 1);
    comm_.all_gather(world, &mine, hashes.data(), counts, Element::i64).wait();
    for (std::size_t r = 0; r < hashes.size(); ++r)
      if (hashes[r] != mine)
        throw std::runtime_error("rank " + std::to_string(r) + " runs another plan than rank " + std::to_string(rank_) +
                                 ": start every rank with the same model and layout");
  }

  void bind_values() {
    boxes_.resize(index(plan_.values.size()));
    views_.resize(boxes_.size());
    alias_.assign(boxes_.size(), -1);
    iteration_.assign(index(plan_.loops.size()), 0);
    for (auto const& s : plan_.steps)
      if (s.state >= 0) alias_[index(s.results[0])] = s.state;
    for (i32 v = 0; v < plan_.values.size(); ++v) {
      Tensor const& t = plan_.values[v];
      if (t.stage != place_.stage) continue;
      boxes_[index(v)] = held_box(*tables_, t, mesh(), place_.at, rows_apart(v));
      views_[index(v)] = view_of(t, boxes_[index(v)]);
    }
    for (auto const& s : plan_.states) {
      bool const mine = s.stage == place_.stage;
      state_boxes_.push_back(mine ? held_box(*tables_, plan_.values[s.value], mesh(), place_.at, options_.capacity)
                                  : TableBox{});
      state_views_.push_back(mine ? view_of(plan_.values[s.value], state_boxes_.back()) : View{});
    }
  }
  /// Rows between the sequences of a value that is a view of a cache; 0: they follow one another.
  i64 rows_apart(i32 value) const { return alias_[index(value)] >= 0 ? options_.capacity : 0; }
  static View view_of(Tensor const& t, TableBox const& b) {
    View v;
    v.dims = &t.dims, v.width = b.box.width();
    for (i32 k = 0; k < t.dims.size(); ++k) v.ranges[k] = b.box.ranges[k];
    return v;
  }
  static void refresh(View& v, TableBox const& b) { v.rows = b.rows->rows, v.segments = b.rows->span(); }

  void bind_steps() {
    bodies_.resize(index(plan_.loops.size() + 1));
    for (i32 i = 0; i < plan_.steps.size(); ++i) {
      Step const& s = plan_.steps[i];
      step_ = i;
      bool const receives = s.stage == place_.stage;
      bool const sends = s.kind == StepKind::send && plan_.values[s.operands[0].value].stage == place_.stage;
      if (!receives && !sends) continue;
      Bound b;
      b.step = i;
      if (s.kind == StepKind::compute) {
        auto const& row = kernel_of(*s.op);
        b.kernel = row.run;
        if (!row.reads_caches) pack_caches(b, s);
      } else if (s.kind == StepKind::send && sends) {
        for (i64 r : receivers_of(plan_, i, rank_)) b.receivers.push_back(static_cast<int>(r));
        pack_caches(b, s);
      } else if (s.kind == StepKind::send) b.sender = static_cast<int>(receives_from(plan_, i, rank_));
      else if (s.kind >= StepKind::all_reduce && s.kind <= StepKind::share_reduce)
        b.transfer.emplace(plan_, i, place_.at, *tables_, groups_[index(s.axis)],
                           element_of(plan_.values[s.operands[0].value].storage), rows_apart(s.operands[0].value));
      else if (s.kind != StepKind::loop)
        throw std::invalid_argument("a plan of another phase than forward is not run by this executor");
      // The loop of a send is the receiver's; the sender runs it where its value is.
      i32 const loop = sends ? plan_.values[s.operands[0].value].loop : s.loop;
      bodies_[index(loop + 1)].push_back(std::move(b));
    }
    step_ = -1;
  }
  void pack_caches(Bound& b, Step const& s) {
    for (i32 i = 0; i < s.operands.size(); ++i)
      if (i32 const v = s.operands[i].value; !s.operands[i].witness && rows_apart(v))
        b.packed[i] = held_box(*tables_, plan_.values[v], mesh(), place_.at);
  }
  KernelRow<D> const& kernel_of(Op const& op) const {
    for (auto const& row : kernels_)
      if (row.op == &op && row.run) return row;
    throw std::invalid_argument("the device has no kernel for op '" + std::string(op.name) +
                                "': give the executor a KernelRow for it");
  }
  static Element element_of(Storage s) {
    switch (s) {
      case Storage::token: return Element::i32;
      case Storage::choice: return Element::choice;
      case Storage::count: return Element::i64;
      default: return D::element;
    }
  }

  void make_states() {
    std::vector<SequenceRun> all(index(options_.sequences), SequenceRun{options_.capacity, 0, 0});
    RunShape const run{all.data(), static_cast<i32>(all.size())};
    for (auto const& s : plan_.states) {
      states_.emplace_back();
      if (s.stage != place_.stage) continue;
      Tensor const& t = plan_.values[s.value];
      i64 const bytes = local_elements(t.dims, t.places, mesh(), place_.at, run) * D::bytes_of(t.storage);
      for (i64 i = 0; i < plan_.executions(s.loop); ++i) {
        states_.back().push_back(device_.memory(bytes));
        state_bytes_ += bytes;
      }
    }
  }

  void check_run(RunShape run, RunTokens tokens) const {
    if (run.size() != options_.sequences)
      throw std::invalid_argument("the run has " + std::to_string(run.size()) +
                                  " sequences, the executor was made for " + std::to_string(options_.sequences));
    if (static_cast<i64>(tokens.size()) != run.size())
      throw std::invalid_argument("tokens of " + std::to_string(tokens.size()) + " sequences were given for a run of " +
                                  std::to_string(run.size()));
    for (i32 s = 0; s < run.size(); ++s) {
      std::string const which = "sequence " + std::to_string(s);
      if (run[s].past < 0 || run[s].tokens < 0 || run[s].rows < 0 || run[s].rows > run[s].tokens)
        throw std::invalid_argument(which + " asks for logits of " + std::to_string(run[s].rows) + " of its " +
                                    std::to_string(run[s].tokens) + " new tokens after " + std::to_string(run[s].past));
      if (run[s].past > options_.capacity || run[s].tokens > options_.capacity - run[s].past)
        throw std::length_error("the KV cache is full: " + which + " has " + std::to_string(run[s].past) +
                                " tokens and " + std::to_string(run[s].tokens) + " new ones, the capacity is " +
                                std::to_string(options_.capacity) + " tokens a sequence");
    }
  }

  void bind_run() {
    tables_->fill(run_);
    Arena const& arena = planner_->fit(run_);
    if (!arena_ || arena.bytes > arena_room_) {
      arena_.reset();
      arena_.emplace(device_.memory(arena.bytes));
      arena_room_ = arena.bytes;
    }
    for (std::size_t v = 0; v < views_.size(); ++v)
      if (boxes_[v].rows) refresh(views_[v], boxes_[v]);
    for (std::size_t s = 0; s < state_views_.size(); ++s)
      if (state_boxes_[s].rows) refresh(state_views_[s], state_boxes_[s]);
    for (auto& body : bodies_)
      for (auto& b : body) {
        if (b.transfer) b.transfer->bind(staging_);
        if (b.kernel) bind_call(b);
        for (i32 i = 0; i < max_operands; ++i)
          if (b.packed[i].rows) Staging::fit(packed_[i], b.packed[i].elements() * D::bytes_of(Storage::cache));
      }
  }
  void bind_call(Bound& b) {
    Step const& s = plan_.steps[b.step];
    KernelCall<D>& c = b.call;
    c.device = &device_, c.step = &s, c.sequences = run_, c.rules = rules_;
    for (i32 i = 0; i < s.operands.size(); ++i)
      if (!s.operands[i].witness) {
        c.operands[i] = views_[index(s.operands[i].value)];
        if (b.packed[i].rows) refresh(c.operands[i], b.packed[i]);
      }
    for (i32 i = 0; i < s.parameters.size(); ++i) c.parameters[i] = views_[index(s.parameters[i].value)];
    for (i32 i = 0; i < s.results.size(); ++i) c.results[i] = views_[index(s.results[i])];
    if (s.state >= 0) c.state = state_views_[index(s.state)];
  }

  void fill_input(i32 v, RunTokens tokens) {
    View& view = views_[index(v)];
    if (plan_.values[v].storage != Storage::token) throw std::invalid_argument("an input that is not tokens");
    auto* out = static_cast<i32*>(memory(v));
    for (Segment const& s : view.segments) {
      auto const given = tokens[index(s.sequence)];
      if (static_cast<i64>(given.size()) != run_[s.sequence].tokens)
        throw std::invalid_argument("sequence " + std::to_string(s.sequence) + " was given " +
                                    std::to_string(given.size()) + " tokens, the run says " +
                                    std::to_string(run_[s.sequence].tokens));
      for (i64 p = s.range.lo; p < s.range.hi; ++p) *out++ = given[index(p)];
    }
  }

  /// Number of the current iteration, counted through all loops around.
  i64 flat_iteration(i32 loop) const {
    return loop < 0 ? 0 : flat_iteration(plan_.loops[loop].parent) * plan_.loops[loop].count + iteration_[index(loop)];
  }
  void* memory(i32 value) {
    if (i32 const s = alias_[index(value)]; s >= 0)
      return states_[index(s)][index(flat_iteration(plan_.states[s].loop))].get();
    i64 const offset = planner_->arena().offset[value];
    if (offset >= 0) return static_cast<std::byte*>(arena_->get()) + offset;
    return weights_->plain(value, [this](i32 loop) { return flat_iteration(loop); });
  }
  std::byte* bytes(i32 value) { return static_cast<std::byte*>(memory(value)); }
  /// Memory of what a step reads; rows of a cache are copied together first where the reader takes them so.
  void* operand(Bound& b, Step const& s, i32 i) {
    i32 const value = s.operands[i].value;
    if (!b.packed[i].rows) return memory(value);
    Box const packed = b.packed[i].now();
    copy_overlap(boxes_[index(value)].now(), bytes(value), packed, packed_[i].data(), D::bytes_of(Storage::cache));
    return packed_[i].data();
  }
  void copy_value(i32 from, i32 to) {
    if (planner_->arena().shares_buffer(from, to)) return;
    copy_overlap(boxes_[index(from)].now(), bytes(from), boxes_[index(to)].now(), bytes(to),
                 D::bytes_of(plan_.values[to].storage));
  }

  template <class Hook>
  void execute(i32 loop, Hook& hook) {
    for (auto& b : bodies_[index(loop + 1)]) {
      Step const& s = plan_.steps[b.step];
      step_ = b.step;
      if constexpr (requires { hook(*this, s); }) hook(*this, s);
      if (b.kernel) compute(b, s, hook);
      else if (b.transfer)
        b.transfer->template run<Scalar>(comm_, staging_, bytes(s.operands[0].value), bytes(s.results[0]));
      else if (s.kind == StepKind::send) send(b, s);
      else run_loop(s, hook);
    }
  }
  template <class Hook>
  void compute(Bound& b, Step const& s, Hook& hook) {
    KernelCall<D>& c = b.call;
    for (i32 i = 0; i < s.operands.size(); ++i)
      if (!s.operands[i].witness) c.operands[i].memory = operand(b, s, i);
    for (i32 i = 0; i < s.results.size(); ++i) c.results[i].memory = memory(s.results[i]);
    for (i32 i = 0; i < s.parameters.size(); ++i) {
      Parameter const& p = plan_.parameters[s.parameters[i].parameter];
      bool const leaf = s.parameters[i].value == p.value;
      c.weights[i] = leaf ? &weights_->at(s.parameters[i].parameter, flat_iteration(p.loop)) : nullptr;
      c.parameters[i].memory = leaf && s.op == &matmul ? nullptr : memory(s.parameters[i].value);
    }
    if (s.state >= 0) c.state.memory = states_[index(s.state)][index(flat_iteration(plan_.states[s.state].loop))].get();
    hook(*this, s, c);
    b.kernel(c);
  }
  void send(Bound& b, Step const& s) {
    i32 const value = b.sender >= 0 ? s.results[0] : s.operands[0].value;
    i64 const n = boxes_[index(value)].elements();
    Element const element = element_of(plan_.values[value].storage);
    void* const at = b.sender >= 0 ? memory(value) : operand(b, s, 0);
    if (b.sender >= 0) comm_.receive(b.sender, at, n, element, b.step).wait();
    for (int r : b.receivers) comm_.send(r, at, n, element, b.step).wait();
  }
  template <class Hook>
  void run_loop(Step const& s, Hook& hook) {
    Loop const& l = plan_.loops[s.body];
    copy_value(l.initial, l.argument);
    for (i32 i = 0; i < l.count; ++i) {
      iteration_[index(s.body)] = i;
      execute(s.body, hook);
      step_ = index_of(s);
      copy_value(l.yielded, l.argument);
    }
  }
  i32 index_of(Step const& s) const { return static_cast<i32>(&s - plan_.steps.begin()); }
};

}  // namespace dovetail
