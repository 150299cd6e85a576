// SPDX-License-Identifier: MIT
// A communicator that notes what it is asked for and passes it on: tests ask it what a rank really called. It is as
// capable as the one it wraps, and its groups and requests are that one's.
#pragma once
#include <dovetail/comm/communicator.hpp>
#include <optional>
#include <vector>

namespace dovetail {

/// One call of one rank.
struct Recorded {
  enum class Way : std::uint8_t { both, out, in };

  std::optional<Exchange> exchange;  ///< empty: a barrier
  int group_size = 0;                ///< 2 for a send and a receive
  Element element = Element::u8;
  std::vector<i64> counts;  ///< one number, or one a member; for an all-to-all what is received from each
  i64 bytes = 0;            ///< of all counts
  int peer = -1;            ///< root of a broadcast, other end (world rank) of a send or a receive
  int tag = 0;
  Way way = Way::both;  ///< out: a send; in: a receive
  friend bool operator==(Recorded const&, Recorded const&) = default;
};

/// A communicator that keeps a record of each call and hands it on to `Inner`: what tests compare with a plan.
template <Communicator Inner>
class RecordingCommunicator {
 public:
  using Group = typename Inner::Group;
  using Request = typename Inner::Request;

  /// @pre inner outlives this one.
  explicit RecordingCommunicator(Inner& inner) : inner_(inner) {}

  std::vector<Recorded> const& records() const { return records_; }
  void clear_records() { records_.clear(); }
  i64 count(Exchange kind) const {
    i64 n = 0;
    for (Recorded const& r : records_) n += r.exchange == kind;
    return n;
  }
  i64 count_barriers() const {
    i64 n = 0;
    for (Recorded const& r : records_) n += !r.exchange;
    return n;
  }

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }
  Group group(std::span<int const> world_ranks) { return inner_.group(world_ranks); }

  Request all_reduce(Group const& g, void* inout, i64 n, Element element, Reduction reduction) {
    note({Exchange::all_reduce, g.size(), element, {n}});
    return inner_.all_reduce(g, inout, n, element, reduction);
  }
  Request reduce_scatter(Group const& g, void const* in, void* out, std::span<i64 const> counts, Element element,
                         Reduction reduction) requires WithReduceScatter<Inner> {
    note({Exchange::reduce_scatter, g.size(), element, {counts.begin(), counts.end()}});
    return inner_.reduce_scatter(g, in, out, counts, element, reduction);
  }
  Request all_gather(Group const& g, void const* in, void* out, std::span<i64 const> counts,
                     Element element) requires WithAllGather<Inner> {
    note({Exchange::all_gather, g.size(), element, {counts.begin(), counts.end()}});
    return inner_.all_gather(g, in, out, counts, element);
  }
  Request all_to_all(Group const& g, void const* in, std::span<i64 const> send_counts, void* out,
                     std::span<i64 const> receive_counts, Element element) requires WithAllToAll<Inner> {
    note({Exchange::all_to_all, g.size(), element, {receive_counts.begin(), receive_counts.end()}});
    return inner_.all_to_all(g, in, send_counts, out, receive_counts, element);
  }
  Request broadcast(Group const& g, void* inout, i64 n, Element element, int root) {
    note({Exchange::broadcast, g.size(), element, {n}, 0, root});
    return inner_.broadcast(g, inout, n, element, root);
  }
  Request send(int to, void const* in, i64 n, Element element, int tag) {
    note({Exchange::point_to_point, 2, element, {n}, 0, to, tag, Recorded::Way::out});
    return inner_.send(to, in, n, element, tag);
  }
  Request receive(int from, void* out, i64 n, Element element, int tag) {
    note({Exchange::point_to_point, 2, element, {n}, 0, from, tag, Recorded::Way::in});
    return inner_.receive(from, out, n, element, tag);
  }
  Request barrier(Group const& g) {
    note({std::nullopt, g.size(), Element::u8, {}});
    return inner_.barrier(g);
  }

  TrafficCounters counters() const { return inner_.counters(); }
  void reset_counters() { inner_.reset_counters(); }

 private:
  void note(Recorded record) {
    for (i64 n : record.counts) record.bytes += n * bytes_of(record.element);
    records_.push_back(std::move(record));
  }

  Inner& inner_;
  std::vector<Recorded> records_;
};

}  // namespace dovetail
