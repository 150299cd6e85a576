// SPDX-License-Identifier: MIT
// The communicator: what an executor asks of whatever carries values between ranks. Operations are enqueued and give a
// move-only request; until its wait() returns the buffers belong to the operation. Members of a group make the same
// calls in the same order; a count of zero is legal everywhere; a reduction gives every rank the same bits.
// Threads implement it with shared memory; streams (enqueue) and message-passing libraries (request handles) fit it.
#pragma once
#include <concepts>
#include <cstdint>
#include <dovetail/mesh/cost.hpp>
#include <dovetail/tensor/dtype.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

/// Dims, axes, layers and policies as types; the plans that follow from them, and what runs plans on ranks.
namespace dovetail {

/// How elements are combined, always in group order. Integers wrap, f16 and bf16 are combined in f32 and rounded once.
/// A NaN wins a maximum. `arg_max` is for Element::choice alone: the larger value wins, ties go to the lower index,
/// index -1 is neutral, a NaN wins.
enum class Reduction : std::uint8_t { sum, maximum, arg_max };

/// What moves bytes between ranks; a barrier moves none.
enum class Exchange : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, point_to_point };
inline constexpr int exchange_kinds = 6;  ///< how many Exchange has

/// The word for it in messages.
constexpr char const* name_of(Reduction r) {
  constexpr char const* names[] = {"sum", "maximum", "arg_max"};
  return names[static_cast<int>(r)];
}
constexpr char const* name_of(Exchange e) {
  constexpr char const* names[] = {"all_reduce", "reduce_scatter", "all_gather",
                                   "all_to_all", "broadcast",      "point_to_point"};
  return names[static_cast<int>(e)];
}

/// What a rank has received from other ranks: counted where bytes are read.
struct Traffic {
  i64 messages = 0, bytes = 0;
  constexpr Traffic& operator+=(Traffic o) {
    messages += o.messages, bytes += o.bytes;
    return *this;
  }
  friend constexpr bool operator==(Traffic const&, Traffic const&) = default;
  /// Counted == predicted.
  friend constexpr bool operator==(Traffic const& counted, Cost const& predicted) {
    return counted.messages == predicted.messages && counted.bytes == predicted.bytes;
  }
};

/// Traffic of one rank by kind of exchange.
struct TrafficCounters {
  Traffic by[exchange_kinds]{};
  constexpr Traffic& operator[](Exchange e) { return by[static_cast<int>(e)]; }
  constexpr Traffic const& operator[](Exchange e) const { return by[static_cast<int>(e)]; }
  constexpr Traffic total() const {
    Traffic sum;
    for (Traffic const& t : by) sum += t;
    return sum;
  }
};

/// Ends every wait of a world in which one rank failed: which rank, and what it said.
class WorldFailed : public std::runtime_error {
 public:
  WorldFailed(std::string message, int failed_rank)
      : std::runtime_error("dovetail: rank " + std::to_string(failed_rank) + " failed: " + message),
        rank(failed_rank),
        message_(std::move(message)) {}
  int rank;  ///< the rank that failed, not the one that hears of it
  std::string const& message() const noexcept { return message_; }

 private:
  std::string message_;
};

/// Some of a world's ranks, in the order in which they were given. Copies are the same group.
template <class G>
concept CommunicatorGroup = std::copyable<G> && requires(G const& g) {
  { g.size() } -> std::same_as<int>;
  { g.rank() } -> std::same_as<int>;  // this rank's place in the group
};

/// Handle of an enqueued operation. The destructor of one that was not waited for completes it, or returns where the
/// world has failed. One that an exception destroys cannot be completed: its world has failed.
template <class R>
concept CommunicatorRequest = std::movable<R> && !std::copyable<R> && requires(R & r) {
  { r.wait() } -> std::same_as<void>;
};

/// What every backend has. Blocking use is `c.all_reduce(...).wait()`.
template <class C>
concept Communicator = CommunicatorGroup<typename C::Group> && CommunicatorRequest<typename C::Request> &&
    requires(C& c, C const& observed, typename C::Group const& g, std::span<int const> world_ranks, void* inout,
             void const* in, void* out, i64 n, Element element, Reduction reduction, int rank, int tag) {
  { observed.rank() } -> std::same_as<int>;
  { observed.size() } -> std::same_as<int>;
  // At set-up; every member calls it with the same list. A group of one is legal: its collectives are local.
  { c.group(world_ranks) } -> std::same_as<typename C::Group>;
  { c.all_reduce(g, inout, n, element, reduction) } -> std::same_as<typename C::Request>;
  // From the group's member `rank`.
  { c.broadcast(g, inout, n, element, rank) } -> std::same_as<typename C::Request>;
  // Matched by (from, to, tag) in order. A send may wait for its receive: wait() returns once it was copied.
  { c.send(rank, in, n, element, tag) } -> std::same_as<typename C::Request>;
  { c.receive(rank, out, n, element, tag) } -> std::same_as<typename C::Request>;
  { c.barrier(g) } -> std::same_as<typename C::Request>;
  { observed.counters() } -> std::convertible_to<TrafficCounters>;
  c.reset_counters();
};

/// `in` is the concatenation of every member's part in group order; member i gets the reduction of counts[i] elements.
/// `out` may be this rank's place in `in`.
template <class C>
concept WithReduceScatter = Communicator<C> && requires(C& c, typename C::Group const& g, void const* in, void* out,
                                                        std::span<i64 const> counts, Element e, Reduction r) {
  { c.reduce_scatter(g, in, out, counts, e, r) } -> std::same_as<typename C::Request>;
};

/// `out` becomes the concatenation of the counts[i] elements of each member i; `in` may be in its place in `out`.
template <class C>
concept WithAllGather = Communicator<C> &&
    requires(C& c, typename C::Group const& g, void const* in, void* out, std::span<i64 const> counts, Element e) {
  { c.all_gather(g, in, out, counts, e) } -> std::same_as<typename C::Request>;
};

/// send_counts[i] elements go to member i, receive_counts[i] come from it; both buffers are packed in group order.
template <class C>
concept WithAllToAll = Communicator<C> &&
    requires(C& c, typename C::Group const& g, void const* in, void* out, std::span<i64 const> send_counts,
             std::span<i64 const> receive_counts, Element e) {
  { c.all_to_all(g, in, send_counts, out, receive_counts, e) } -> std::same_as<typename C::Request>;
};

}  // namespace dovetail
