// SPDX-License-Identifier: MIT
// The steps of the plan as one rank runs them: the kernel of each computation, the groups and peers of each exchange,
// loop by loop. Bound once at construction; a run only brings new extents. What they compute is run by
// run/executor.hpp.
#pragma once
#include <dovetail/device/device.hpp>
#include <dovetail/plan/peers.hpp>
#include <dovetail/run/rank_views.hpp>
#include <dovetail/run/runs_on.hpp>
#include <optional>

namespace dovetail {

/// One step as a rank runs it: its kernel or its exchange, with views bound.
template <Device D, Communicator C>
struct BoundStep {
  i32 step = -1;
  Kernel<D> kernel = nullptr;
  KernelCall<D> call{};
  std::optional<Transfer<C>> transfer{};
  std::vector<int> receivers{};     ///< of a send, on the sending stage
  int sender = -1;                  ///< of a send, on the receiving stage
  TableBox packed[max_operands]{};  ///< of an operand that is a view of a cache: its rows as they are handed over
};

/// How a communicator sees the elements of a value.
template <Device D>
constexpr Element element_of(Storage s) {
  switch (s) {
    case Storage::token: return Element::i32;
    case Storage::choice: return Element::choice;
    case Storage::count: return Element::i64;
    default: return D::element;
  }
}

/// The steps of a plan that one rank runs, by loop.
template <Device D, Communicator C>
class BoundSteps {
 public:
  using Group = typename C::Group;

  /// @param plan, device, views must live as long as this
  /// @param kernels rows of the user's own ops; they are looked at before the device's
  /// @param at      follows the step that is being bound, for errors; -1 afterwards
  /// @throws std::invalid_argument where an op has no kernel
  BoundSteps(Plan const& plan, D& device, C& comm, RankViews& views, std::span<KernelRow<D> const> kernels, i32& at)
      : plan_(plan), device_(device), views_(views), rank_(comm.rank()), place_(plan.place_of(rank_)) {
    for (i32 a = 0; a < plan_.mesh(place_.stage).size(); ++a) {
      std::vector<int> ranks;
      for (i32 i = 0; i < plan_.mesh(place_.stage)[a]->size; ++i)
        ranks.push_back(static_cast<int>(rank_along(plan_, rank_, a, i)));
      groups_.push_back(comm.group(ranks));
    }
    bodies_.resize(index(plan_.loops.size() + 1));
    for (at = 0; at < plan_.steps.size(); ++at) bind_step(at, kernels);
    at = -1;
  }
  BoundSteps(BoundSteps const&) = delete;

  /// Steps of this rank in a loop, in order; -1: outside all loops.
  std::vector<BoundStep<D, C>>& of(i32 loop) { return bodies_[index(loop + 1)]; }
  Group const& group(i32 axis) const { return groups_[index(axis)]; }
  /// Room that exchanges pack into.
  Staging& staging() { return staging_; }
  /// Room for operand `i` where it is copied together.
  std::byte* packed(i32 i) { return packed_[i].data(); }

  /// Views, counts and room for a run. @pre the views are bound to it
  void bind(RunShape run, Span<ChoiceRule> rules) {
    for (auto& body : bodies_)
      for (auto& b : body) {
        if (b.transfer) b.transfer->bind(staging_);
        if (b.kernel) bind_call(b, run, rules);
        for (i32 i = 0; i < max_operands; ++i)
          if (b.packed[i].rows) Staging::fit(packed_[i], b.packed[i].elements() * D::bytes_of(Storage::cache));
      }
  }

 private:
  Plan const& plan_;
  D& device_;
  RankViews& views_;
  i64 rank_;
  RankPlace place_;
  std::vector<Group> groups_{};                         ///< by axis of this stage's mesh
  std::vector<std::vector<BoundStep<D, C>>> bodies_{};  ///< by loop; [0]: outside loops
  Staging staging_{};
  std::vector<std::byte> packed_[max_operands]{};

  static std::size_t index(i32 i) { return static_cast<std::size_t>(i); }

  void bind_step(i32 i, std::span<KernelRow<D> const> kernels) {
    Step const& s = plan_.steps[i];
    bool const receives = s.stage == place_.stage;
    bool const sends = s.kind == StepKind::send && plan_.values[s.operands[0].value].stage == place_.stage;
    if (!receives && !sends) return;
    BoundStep<D, C> b;
    b.step = i;
    if (s.kind == StepKind::compute) {
      auto const& row = kernel_of(*s.op, kernels);
      b.kernel = row.run;
      if (!row.reads_caches) pack_caches(b, s);
    } else if (s.kind == StepKind::send && sends) {
      for (i64 r : receivers_of(plan_, i, rank_)) b.receivers.push_back(static_cast<int>(r));
      pack_caches(b, s);
    } else if (s.kind == StepKind::send) b.sender = static_cast<int>(receives_from(plan_, i, rank_));
    else if (s.kind >= StepKind::all_reduce && s.kind <= StepKind::share_reduce) {
      i32 const moved = s.operands[0].value;
      b.transfer.emplace(plan_, i, place_.at, views_.tables(), group(s.axis),
                         element_of<D>(plan_.values[moved].storage), views_.rows_apart(moved));
    } else if (s.kind != StepKind::loop)
      throw std::invalid_argument("a plan of another phase than forward is not run by this executor");
    // The loop of a send is the receiver's; the sender runs it where its value is.
    of(sends ? plan_.values[s.operands[0].value].loop : s.loop).push_back(std::move(b));
  }
  void pack_caches(BoundStep<D, C>& b, Step const& s) {
    for (i32 i = 0; i < s.operands.size(); ++i)
      if (i32 const v = s.operands[i].value; !s.operands[i].witness && views_.rows_apart(v))
        b.packed[i] = views_.packed_box(v);
  }
  static KernelRow<D> const& kernel_of(Op const& op, std::span<KernelRow<D> const> kernels) {
    if (auto const* row = kernel_row<D>(op, kernels)) return *row;
    throw std::invalid_argument("the device has no kernel for op '" + std::string(op.name) +
                                "': give the executor a KernelRow for it; see docs/errors/device-kernel.md");
  }

  void bind_call(BoundStep<D, C>& b, RunShape run, Span<ChoiceRule> rules) {
    Step const& s = plan_.steps[b.step];
    KernelCall<D>& c = b.call;
    c.device = &device_, c.step = &s, c.sequences = run, c.rules = rules;
    for (i32 i = 0; i < s.operands.size(); ++i)
      if (!s.operands[i].witness) {
        c.operands[i] = views_.view(s.operands[i].value);
        if (b.packed[i].rows) RankViews::refresh(c.operands[i], b.packed[i]);
      }
    for (i32 i = 0; i < s.parameters.size(); ++i) c.parameters[i] = views_.view(s.parameters[i].value);
    for (i32 i = 0; i < s.results.size(); ++i) c.results[i] = views_.view(s.results[i]);
    if (s.state >= 0) c.state = views_.cache_view(s.state);
  }
};

}  // namespace dovetail
