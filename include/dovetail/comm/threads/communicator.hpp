// SPDX-License-Identifier: MIT
// The communicator of one rank of a world of threads. One thread at a time uses it. Readers copy from their peers'
// buffers: a large payload is copied once and never staged, a small one is posted with the call and needs one wait.
// Whatever goes wrong on any rank ends every wait of the world within milliseconds by throwing WorldFailed.
#pragma once
#include <dovetail/comm/threads/check.hpp>
#include <dovetail/comm/threads/engine.hpp>

namespace dovetail {

/// One rank of a ThreadWorld; a Communicator. Only the thread of its rank calls it.
class ThreadCommunicator {
 public:
  using Group = threads::Group;

  /// An operation under way: wait() ends it, and so does the end of its life.
  class [[nodiscard]] Request {
   public:
    Request() = default;
    Request(Request&& o) noexcept
        : engine_(o.engine_), operation_(std::exchange(o.operation_, nullptr)), unwinding_(o.unwinding_) {}
    Request& operator=(Request&& o) noexcept {
      Request old(std::move(*this));
      engine_ = o.engine_, operation_ = std::exchange(o.operation_, nullptr), unwinding_ = o.unwinding_;
      return *this;
    }
    ~Request() {
      if (operation_) drop();
    }
    /// Returns once the operation is done here and its buffers are the caller's again; a second call does nothing.
    /// Throws WorldFailed.
    void wait() {
      if (auto* const operation = std::exchange(operation_, nullptr)) engine_->complete(*operation);
    }

   private:
    friend ThreadCommunicator;
    Request(threads::Engine& engine, threads::Operation& operation) : engine_(&engine), operation_(&operation) {}
    void drop() noexcept;

    threads::Engine* engine_ = nullptr;
    threads::Operation* operation_ = nullptr;
    int unwinding_ = std::uncaught_exceptions();
  };

  ThreadCommunicator(threads::WorldState& world, int rank) : world_(world), engine_(world, rank) {}
  ThreadCommunicator(ThreadCommunicator const&) = delete;

  int rank() const { return engine_.rank(); }
  int size() const { return world_.ranks; }

  /// The group of these ranks in this order. Two handles of one list are one group. Throws std::invalid_argument where
  /// the list lacks this rank, repeats one or leaves the world.
  Group group(std::span<int const> world_ranks);

  /// inout: n elements, replaced by their reduction over the group.
  Request all_reduce(Group const& g, void* inout, i64 n, Element element, Reduction reduction);
  /// in: counts[0] + counts[1] + ... elements; out: counts[g.rank()], which may be their place in `in`.
  Request reduce_scatter(Group const& g, void const* in, void* out, std::span<i64 const> counts, Element element,
                         Reduction reduction);
  /// in: counts[g.rank()] elements, maybe already in their place in `out`; out: counts[0] + counts[1] + ...
  Request all_gather(Group const& g, void const* in, void* out, std::span<i64 const> counts, Element element);
  /// in: send_counts[0] + ... elements in group order; out: receive_counts[0] + ...
  Request all_to_all(Group const& g, void const* in, std::span<i64 const> send_counts, void* out,
                     std::span<i64 const> receive_counts, Element element);
  /// inout: n elements, on every member what they are on member `root`.
  Request broadcast(Group const& g, void* inout, i64 n, Element element, int root);
  /// A rendezvous: done once the receiver has copied.
  Request send(int to_world_rank, void const* in, i64 n, Element element, int tag);
  Request receive(int from_world_rank, void* out, i64 n, Element element, int tag);
  Request barrier(Group const& g);

  TrafficCounters const& counters() const { return engine_.traffic; }
  void reset_counters() { engine_.traffic = {}; }

  /// Ends every wait of this world with `message`; the first failure stands. May be called from any thread.
  void fail(std::string message) { world_.failure.fail(rank(), std::move(message)); }
  /// This rank takes no further part: a peer that waits for it gets an error. ThreadWorld::run calls it; threads of a
  /// user's own call it when they are done.
  void leave();

 private:
  /// A collective of a group of one is done where it stands, unless the world has failed.
  bool local(Group const& g) {
    if (world_.failure.stopped()) world_.failure.raise(rank());
    return g.size() == 1;
  }
  threads::Operation& collective(Group const& g, threads::Call const& call, void const* in, void* out) {
    auto& operation = engine_.take();
    operation.group = g, operation.call = call;
    operation.in = static_cast<std::byte const*>(in), operation.out = static_cast<std::byte*>(out);
    return operation;
  }
  Request started(threads::Operation& operation) {
    engine_.start(operation);
    return {engine_, operation};
  }
  static void copy(void* out, void const* in, i64 bytes) {
    if (bytes > 0 && in != out) std::memcpy(out, in, static_cast<std::size_t>(bytes));
  }
  static i64 sum_before(std::span<i64 const> counts, int i) {
    i64 sum = 0;
    for (int k = 0; k < i; ++k) sum += counts[static_cast<std::size_t>(k)];
    return sum;
  }

  threads::WorldState& world_;
  threads::Engine engine_;
};

inline void ThreadCommunicator::Request::drop() noexcept {
  auto& failure = engine_->world().failure;
  int const rank = engine_->rank();
  try {
    if (std::uncaught_exceptions() > unwinding_)
      failure.abandon(rank, "an exception left " + operation_->text() + " unfinished");
    if (!failure.stopped()) return wait();
    failure.quiesce(rank);
    // WorldFailed: the next call throws it where it can be caught.
  } catch (std::exception const&) {  // NOLINT(bugprone-empty-catch)
  }
}

inline ThreadCommunicator::Group ThreadCommunicator::group(std::span<int const> world_ranks) {
  std::vector<int> const ranks(world_ranks.begin(), world_ranks.end());
  auto const refuse = [&](std::string const& what) {
    throw std::invalid_argument("dovetail: rank " + std::to_string(rank()) + ": group(" +
                                threads::text_of(ranks.data(), static_cast<int>(ranks.size())) + "): " + what);
  };
  bool in_it[threads::max_ranks] = {};
  for (int r : ranks) {
    if (r < 0 || r >= size())
      refuse("rank " + std::to_string(r) + " is not in this world of " + counted(size(), "rank"));
    if (std::exchange(in_it[r], true)) refuse("rank " + std::to_string(r) + " occurs twice");
  }
  if (!in_it[rank()]) refuse("the calling rank is not in the list");
  auto const at = std::find(ranks.begin(), ranks.end(), rank());
  return {world_.groups.find(ranks), static_cast<int>(at - ranks.begin())};
}

inline ThreadCommunicator::Request ThreadCommunicator::all_reduce(Group const& g, void* inout, i64 n, Element element,
                                                                  Reduction reduction) {
  threads::Check const check{rank(), threads::Verb::all_reduce};
  check.group(g, world_.groups);
  check.buffer("inout", inout, n);
  check.reduction(element, reduction);
  check.aligned("inout", inout, element);
  if (local(g)) return {};
  return started(collective(g, {check.verb, element, reduction, 0, 0, n}, inout, inout));
}

inline ThreadCommunicator::Request ThreadCommunicator::reduce_scatter(Group const& g, void const* in, void* out,
                                                                      std::span<i64 const> counts, Element element,
                                                                      Reduction reduction) {
  threads::Check const check{rank(), threads::Verb::reduce_scatter};
  check.group(g, world_.groups);
  i64 const all = check.counts("counts", counts, g.size()), width = bytes_of(element);
  i64 const own = counts[static_cast<std::size_t>(g.rank())];
  check.buffer("in", in, all);
  check.buffer("out", out, own);
  check.reduction(element, reduction);
  check.aligned("in", in, element);
  check.aligned("out", out, element);
  auto const* const place = static_cast<std::byte const*>(in) + sum_before(counts, g.rank()) * width;
  if (out != place) check.apart(in, all * width, out, own * width);
  if (local(g)) return copy(out, place, own * width), Request();
  auto& operation = collective(g, {check.verb, element, reduction, 0, 0, 0}, in, out);
  std::copy(counts.begin(), counts.end(), operation.counts[0]);
  return started(operation);
}

inline ThreadCommunicator::Request ThreadCommunicator::all_gather(Group const& g, void const* in, void* out,
                                                                  std::span<i64 const> counts, Element element) {
  threads::Check const check{rank(), threads::Verb::all_gather};
  check.group(g, world_.groups);
  i64 const all = check.counts("counts", counts, g.size()), width = bytes_of(element);
  i64 const own = counts[static_cast<std::size_t>(g.rank())];
  check.buffer("in", in, own);
  check.buffer("out", out, all);
  auto* const place = static_cast<std::byte*>(out) + sum_before(counts, g.rank()) * width;
  if (in != place) check.apart(in, own * width, out, all * width);
  bool const alone = local(g);
  copy(place, in, own * width);
  if (alone) return {};
  auto& operation = collective(g, {check.verb, element, Reduction::sum, 0, 0, 0}, in, out);
  std::copy(counts.begin(), counts.end(), operation.counts[0]);
  return started(operation);
}

inline ThreadCommunicator::Request ThreadCommunicator::all_to_all(Group const& g, void const* in,
                                                                  std::span<i64 const> send_counts, void* out,
                                                                  std::span<i64 const> receive_counts,
                                                                  Element element) {
  threads::Check const check{rank(), threads::Verb::all_to_all};
  check.group(g, world_.groups);
  i64 const sent = check.counts("send_counts", send_counts, g.size());
  i64 const received = check.counts("receive_counts", receive_counts, g.size()), width = bytes_of(element);
  auto const self = static_cast<std::size_t>(g.rank());
  check.buffer("in", in, sent);
  check.buffer("out", out, received);
  if (send_counts[self] != receive_counts[self])
    check.refuse("this rank keeps " + std::to_string(send_counts[self]) + " elements of what it sends and takes " +
                 std::to_string(receive_counts[self]) + " from itself; the two are the same");
  check.apart(in, sent * width, out, received * width);
  bool const alone = local(g);
  if (send_counts[self] > 0)
    copy(static_cast<std::byte*>(out) + sum_before(receive_counts, g.rank()) * width,
         static_cast<std::byte const*>(in) + sum_before(send_counts, g.rank()) * width, send_counts[self] * width);
  if (alone) return {};
  auto& operation = collective(g, {check.verb, element, Reduction::sum, 0, 0, 0}, in, out);
  std::copy(send_counts.begin(), send_counts.end(), operation.counts[0]);
  std::copy(receive_counts.begin(), receive_counts.end(), operation.counts[1]);
  return started(operation);
}

inline ThreadCommunicator::Request ThreadCommunicator::broadcast(Group const& g, void* inout, i64 n, Element element,
                                                                 int root) {
  threads::Check const check{rank(), threads::Verb::broadcast};
  check.group(g, world_.groups);
  check.buffer("inout", inout, n);
  check.peer("the root", root, g.size());
  if (local(g)) return {};
  return started(collective(g, {check.verb, element, Reduction::sum, root, 0, n}, inout, inout));
}

inline ThreadCommunicator::Request ThreadCommunicator::send(int to, void const* in, i64 n, Element element, int tag) {
  threads::Check const check{rank(), threads::Verb::send};
  check.peer("the receiver", to, size());
  check.buffer("in", in, n);
  return started(collective({}, {check.verb, element, Reduction::sum, to, tag, n}, in, nullptr));
}

inline ThreadCommunicator::Request ThreadCommunicator::receive(int from, void* out, i64 n, Element element, int tag) {
  threads::Check const check{rank(), threads::Verb::receive};
  check.peer("the sender", from, size());
  check.buffer("out", out, n);
  return started(collective({}, {check.verb, element, Reduction::sum, from, tag, n}, nullptr, out));
}

inline ThreadCommunicator::Request ThreadCommunicator::barrier(Group const& g) {
  threads::Check const check{rank(), threads::Verb::barrier};
  check.group(g, world_.groups);
  if (local(g)) return {};
  return started(collective(g, {check.verb, Element::u8, Reduction::sum, 0, 0, 0}, nullptr, nullptr));
}

inline void ThreadCommunicator::leave() {
  if (auto const* const operation = engine_.unfinished(); operation && !world_.failure.stopped())
    fail("rank " + std::to_string(rank()) + " ended before it waited for " + operation->text());
  world_.failure.presence[rank()].ended.store(true, std::memory_order_release);
}

}  // namespace dovetail
