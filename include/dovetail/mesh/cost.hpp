// SPDX-License-Identifier: MIT
// What an exchange makes a rank receive, in messages and bytes: what a plan predicts before anything runs. A message is
// one read of a piece of another rank's buffer; a piece of size zero is none. A communicator counts its own reads and
// never asks here, so that predicted == counted is a check and not a tautology.
#pragma once
#include <dovetail/mesh/split.hpp>

namespace dovetail {

/// An all-reduce of at most so many bytes is one-shot: every rank reads the whole of every other. A longer one is
/// two-shot: a rank reduces its block, then reads the blocks that the others reduced.
inline constexpr i64 one_shot_bytes = 4096;

/// What one rank receives from the others.
struct Cost {
  i64 messages = 0, bytes = 0;
  friend constexpr Cost operator+(Cost a, Cost b) { return {a.messages + b.messages, a.bytes + b.bytes}; }
  constexpr Cost& operator+=(Cost o) { return *this = *this + o; }
  friend constexpr bool operator==(Cost const&, Cost const&) = default;
};

/// One piece of `elements` from another rank.
constexpr Cost point_to_point_cost(i64 elements, i64 element_bytes) {
  return {elements > 0 ? 1 : 0, elements * element_bytes};
}

/// Entry `i` of counts given as a function of the rank, or as anything that is indexed by it.
template <class Counts>
constexpr i64 count_of(Counts const& counts, int i) {
  if constexpr (requires { counts(i); }) {
    return static_cast<i64>(counts(i));
  } else {
    return static_cast<i64>(counts[i]);
  }
}

/// Every rank ends with the others' pieces: counts[i] elements of rank i.
/// @post summed over ranks: (ranks - 1) times the bytes of the whole.
template <class Counts>
constexpr Cost all_gather_cost(Counts const& counts, i64 element_bytes, int ranks, int rank) {
  Cost c;
  for (int r = 0; r < ranks; ++r)
    if (r != rank) c += point_to_point_cost(count_of(counts, r), element_bytes);
  return c;
}

/// Rank i ends with the sum of the counts[i] elements that every rank has for it.
/// @post summed over ranks: (ranks - 1) times the bytes of the whole.
template <class Counts>
constexpr Cost reduce_scatter_cost(Counts const& counts, i64 element_bytes, int ranks, int rank) {
  Cost c;
  for (int r = 0; r < ranks; ++r)
    if (r != rank) c += point_to_point_cost(count_of(counts, rank), element_bytes);
  return c;
}

/// Rank `rank` receives receive_counts[i] elements from rank i.
template <class Counts>
constexpr Cost all_to_all_cost(Counts const& receive_counts, i64 element_bytes, int ranks, int rank) {
  return all_gather_cost(receive_counts, element_bytes, ranks, rank);
}

/// Every rank but the root reads the root's elements.
constexpr Cost broadcast_cost(i64 elements, i64 element_bytes, int rank, int root) {
  return rank == root ? Cost{} : point_to_point_cost(elements, element_bytes);
}

/// Every rank ends with the reduction of the `elements` that each of them has.
/// @post two-shot, summed over ranks: 2 (ranks - 1) times the bytes of the whole; one-shot: ranks (ranks - 1) times.
constexpr Cost all_reduce_cost(i64 elements, i64 element_bytes, int ranks, int rank) {
  if (elements * element_bytes <= one_shot_bytes)
    return all_gather_cost([&](int) { return elements; }, element_bytes, ranks, rank);
  auto const blocks = [&](int r) { return block(elements, 1, ranks, r).size(); };
  return reduce_scatter_cost(blocks, element_bytes, ranks, rank) + all_gather_cost(blocks, element_bytes, ranks, rank);
}

}  // namespace dovetail
