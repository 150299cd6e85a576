// SPDX-License-Identifier: MIT
// A communicator for a transport that can do nothing but pass messages between two ranks: every collective is made of
// sends and receives. It is what docs/add-a-communicator.md builds, step by step; here the messages are those of
// threads, and nothing else of that backend is used. A collective is complete when its call returns.
#pragma once
#include <cstring>
#include <dovetail/comm/reduce.hpp>
#include <dovetail/comm/threads.hpp>
#include <limits>
#include <optional>

namespace test {

using namespace dovetail;

class MessageCommunicator {
 public:
  using Transport = ThreadCommunicator;
  using Request = Transport::Request;  // of a message; one made from nothing is complete

  /// World ranks, and this rank's place among them.
  struct Group {
    std::vector<int> ranks{};
    int place = 0;
    int size() const { return static_cast<int>(ranks.size()); }
    int rank() const { return place; }
  };

  /// @pre transport outlives this one.
  explicit MessageCommunicator(Transport& transport) : transport_(transport) {}

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  /// @throws std::invalid_argument where this rank is not in the list
  Group group(std::span<int const> world_ranks) {
    for (std::size_t i = 0; i < world_ranks.size(); ++i)
      if (world_ranks[i] == rank()) return Group{{world_ranks.begin(), world_ranks.end()}, static_cast<int>(i)};
    throw std::invalid_argument("rank " + std::to_string(rank()) + " asks for a group that it is not in");
  }

  Request all_gather(Group const& g, void const* in, void* out, std::span<i64 const> counts, Element element) {
    gather(Exchange::all_gather, g, in, out, Parts::packed(counts, element));
    return {};
  }
  Request reduce_scatter(Group const& g, void const* in, void* out, std::span<i64 const> counts, Element element,
                         Reduction reduction) {
    scatter(Exchange::reduce_scatter, g, in, out, Parts::packed(counts, element), element, reduction);
    return {};
  }
  Request all_to_all(Group const& g, void const* in, std::span<i64 const> send_counts, void* out,
                     std::span<i64 const> receive_counts, Element element) {
    exchange(Exchange::all_to_all, g, in, Parts::packed(send_counts, element), out,
             Parts::packed(receive_counts, element));
    return {};
  }

  /// Every rank reduces what it was sent in group order, so all have the same bits. A short one is one-shot, a long one
  /// two-shot, as all_reduce_cost() predicts.
  Request all_reduce(Group const& g, void* inout, i64 n, Element element, Reduction reduction) {
    std::vector<i64> counts(g.ranks.size(), n);
    if (n * bytes_of(element) <= one_shot_bytes) {
      Parts const whole = Parts::packed(counts, element);
      std::vector<char> all(static_cast<std::size_t>(whole.total()));
      gather(Exchange::all_reduce, g, inout, all.data(), whole);
      reduce(all.data(), whole, inout, n, element, reduction);
    } else {
      for (int i = 0; i < g.size(); ++i) counts[static_cast<std::size_t>(i)] = block(n, 1, g.size(), i).size();
      Parts const blocks = Parts::packed(counts, element);
      char* const mine = static_cast<char*>(inout) + blocks.at(g.place);
      scatter(Exchange::all_reduce, g, inout, mine, blocks, element, reduction);
      gather(Exchange::all_reduce, g, mine, inout, blocks);
    }
    return {};
  }
  Request broadcast(Group const& g, void* inout, i64 n, Element element, int root) {
    i64 const bytes = n * bytes_of(element);
    exchange(Exchange::broadcast, g, inout, Parts::same(g.size(), g.place == root ? bytes : 0), inout,
             Parts::one(g.size(), root, bytes));
    return {};
  }
  /// A byte from everybody to everybody, which is not counted.
  Request barrier(Group const& g) {
    char here = 0, there = 0;
    exchange(std::nullopt, g, &here, Parts::same(g.size(), 1), &there, Parts::same(g.size(), 1));
    return {};
  }

  Request send(int to, void const* in, i64 n, Element element, int tag) {
    return transport_.send(to, in, n, element, user_tag(tag));
  }
  Request receive(int from, void* out, i64 n, Element element, int tag) {
    if (from != rank()) count(Exchange::point_to_point, n * bytes_of(element));
    return transport_.receive(from, out, n, element, user_tag(tag));
  }

  TrafficCounters counters() const { return counters_; }
  void reset_counters() { counters_ = {}; }

 private:
  /// Where in a buffer the part of each member lies, in bytes.
  class Parts {
   public:
    static Parts packed(std::span<i64 const> counts, Element element) {
      Parts p;
      for (i64 n : counts) p.add(p.total(), n * bytes_of(element));
      return p;
    }
    static Parts same(int members, i64 bytes) {
      Parts p;
      for (int i = 0; i < members; ++i) p.add(0, bytes);
      return p;
    }
    static Parts one(int members, int which, i64 bytes) {
      Parts p;
      for (int i = 0; i < members; ++i) p.add(0, i == which ? bytes : 0);
      return p;
    }
    i64 at(int i) const { return begins_[static_cast<std::size_t>(i)]; }
    i64 size(int i) const { return sizes_[static_cast<std::size_t>(i)]; }
    int members() const { return static_cast<int>(sizes_.size()); }
    i64 total() const { return sizes_.empty() ? 0 : begins_.back() + sizes_.back(); }

   private:
    std::vector<i64> begins_{}, sizes_{};
    void add(i64 begin, i64 size) { begins_.push_back(begin), sizes_.push_back(size); }
  };

  static constexpr int own_tag = std::numeric_limits<int>::min();

  Transport& transport_;
  TrafficCounters counters_{};

  static int user_tag(int tag) {
    if (tag == own_tag) throw std::invalid_argument("tag " + std::to_string(tag) + " is taken by the collectives");
    return tag;
  }
  void count(Exchange kind, i64 bytes) {
    if (bytes) counters_[kind] += Traffic{1, bytes};
  }

  /// What all collectives are made of: a part of `in` to each member, a part of `out` from each. All sends are under
  /// way before the first receive is waited for, so that no two ranks wait for each other.
  void exchange(std::optional<Exchange> kind, Group const& g, void const* in, Parts const& sent, void* out,
                Parts const& received) {
    auto const* const source = static_cast<char const*>(in);
    auto* const target = static_cast<char*>(out);
    std::vector<Request> under_way;
    for (int i = 0; i < g.size(); ++i)
      if (int const to = g.ranks[static_cast<std::size_t>(i)]; i != g.place && sent.size(i))
        under_way.push_back(transport_.send(to, source + sent.at(i), sent.size(i), Element::u8, own_tag));
    for (int i = 0; i < g.size(); ++i) {
      if (i == g.place || !received.size(i)) continue;
      int const from = g.ranks[static_cast<std::size_t>(i)];
      transport_.receive(from, target + received.at(i), received.size(i), Element::u8, own_tag).wait();
      if (kind) count(*kind, received.size(i));
    }
    char const* const mine = source + sent.at(g.place);
    if (i64 const own = received.size(g.place); own && target + received.at(g.place) != mine)
      std::memcpy(target + received.at(g.place), mine, static_cast<std::size_t>(own));
    for (Request& request : under_way) request.wait();
  }

  void gather(Exchange kind, Group const& g, void const* in, void* out, Parts const& parts) {
    exchange(kind, g, in, Parts::same(g.size(), parts.size(g.place)), out, parts);
  }
  void scatter(Exchange kind, Group const& g, void const* in, void* out, Parts const& parts, Element element,
               Reduction reduction) {
    i64 const mine = parts.size(g.place) / bytes_of(element);
    Parts const pieces = Parts::packed(std::vector<i64>(g.ranks.size(), mine), element);
    std::vector<char> all(static_cast<std::size_t>(pieces.total()));
    exchange(kind, g, in, parts, all.data(), pieces);
    reduce(all.data(), pieces, out, mine, element, reduction);
  }
  static void reduce(char const* all, Parts const& pieces, void* out, i64 n, Element element, Reduction reduction) {
    std::vector<void const*> sources;
    for (int i = 0; i < pieces.members(); ++i) sources.push_back(all + pieces.at(i));
    reduce_in_order(sources.data(), pieces.members(), out, n, element, reduction);
  }
};

static_assert(Communicator<MessageCommunicator> && WithReduceScatter<MessageCommunicator> &&
              WithAllGather<MessageCommunicator> && WithAllToAll<MessageCommunicator>);

}  // namespace test
