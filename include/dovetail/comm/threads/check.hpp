// SPDX-License-Identifier: MIT
// Looks at the arguments of a call before anything is shown to a peer: what one rank can see to be wrong is an error
// on that rank, with the rank, the call and the number in it.
#pragma once
#include <dovetail/comm/reduce.hpp>
#include <dovetail/comm/threads/group.hpp>
#include <dovetail/meta/counted.hpp>

namespace dovetail::threads {

/// The rank and the verb that every message begins with; each function throws std::invalid_argument.
struct Check {
  int rank;
  Verb verb;

  [[noreturn]] void refuse(std::string const& what) const {
    throw std::invalid_argument("dovetail: rank " + std::to_string(rank) + ": " + name_of(verb) + ": " + what);
  }

  void group(Group const& g, GroupRegistry const& world) const {
    if (!g.state()) refuse("the group is empty; make one with group(...) of this rank's communicator");
    if (g.state()->world != &world) refuse("the group belongs to another world");
    if (g.world_rank(g.rank()) != rank)
      refuse("the group handle was made by rank " + std::to_string(g.world_rank(g.rank())) +
             "; every rank uses a handle of its own");
  }
  /// `n` elements at `start`, which may be null where n is 0.
  void buffer(char const* name, void const* start, i64 n) const {
    if (n < 0 || n > most) refuse(std::string("the count of ") + name + " is " + std::to_string(n));
    if (n > 0 && !start) refuse(std::string(name) + " is null, but holds " + std::to_string(n) + " elements");
  }
  /// One count a member, none negative; the sum of them.
  i64 counts(char const* name, std::span<i64 const> counts, int members) const {
    if (counts.size() != static_cast<std::size_t>(members))
      refuse(std::string(name) + " has " + std::to_string(counts.size()) + " entries, the group has " +
             counted(members, "rank"));
    i64 sum = 0;
    for (i64 n : counts) {
      if (n < 0 || n > most || sum > most - n) refuse(std::string(name) + " has the entry " + std::to_string(n));
      sum += n;
    }
    return sum;
  }
  void peer(char const* name, int r, int ranks) const {
    if (r < 0 || r >= ranks)
      refuse(std::string(name) + " is " + std::to_string(r) + ", legal are 0 to " + std::to_string(ranks - 1));
  }
  void reduction(Element e, Reduction r) const {
    if (!reduces(e, r))
      refuse(std::string(name_of(r)) + " of " + name_of(e) + " does not exist; choice goes with arg_max, and only so");
  }
  void aligned(char const* name, void const* start, Element e) const {
    auto const to = static_cast<std::uintptr_t>(e == Element::choice ? i64{alignof(Choice)} : bytes_of(e));
    if (reinterpret_cast<std::uintptr_t>(start) % to)
      refuse(std::string(name) + " is not aligned for " + name_of(e) + ", which a reduction needs");
  }
  /// Two buffers of so many bytes do not meet.
  void apart(void const* in, i64 in_bytes, void const* out, i64 out_bytes) const {
    auto const a = reinterpret_cast<std::uintptr_t>(in), b = reinterpret_cast<std::uintptr_t>(out);
    if (in_bytes > 0 && out_bytes > 0 && a < b + static_cast<std::uintptr_t>(out_bytes) &&
        b < a + static_cast<std::uintptr_t>(in_bytes))
      refuse("the input and the output overlap where they may not");
  }

 private:
  static constexpr i64 most = INT64_MAX / 64;  // so that no number of bytes overflows
};

}  // namespace dovetail::threads
