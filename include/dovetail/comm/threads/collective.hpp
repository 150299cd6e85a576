// SPDX-License-Identifier: MIT
// What one member does in a collective: posts its call, compares it with the others', reads what it needs from their
// sources. Nothing here waits; the engine says when. Traffic is counted here, where another rank's bytes are read.
#pragma once
#include <cstring>
#include <dovetail/comm/reduce.hpp>
#include <dovetail/comm/threads/operation.hpp>

namespace dovetail::threads {

inline Member& member(Operation const& op, int i) { return op.group.state()->members[static_cast<std::size_t>(i)]; }
inline Member& mine(Operation const& op) { return member(op, op.group.rank()); }
inline Cell& cell(Operation const& op, int i) { return member(op, i).cell(op.ticket); }

/// A large all-reduce: every member reduces a block, then reads the others'.
inline bool two_shot(Call const& c) { return c.verb == Verb::all_reduce && c.n * bytes_of(c.element) > one_shot_bytes; }

inline i64 sum_of_first(i64 const* counts, int n) {
  i64 sum = 0;
  for (int i = 0; i < n; ++i) sum += counts[i];
  return sum;
}

/// Elements that this member offers to its peers.
inline i64 offered(Operation const& op) {
  int const self = op.group.rank();
  switch (op.call.verb) {
    case Verb::all_reduce: return op.call.n;
    case Verb::reduce_scatter:
    case Verb::all_to_all: return sum_of_first(op.counts[0], op.group.size());
    case Verb::all_gather: return op.counts[0][self];
    case Verb::broadcast: return op.call.peer == self ? op.call.n : 0;
    default: return 0;
  }
}

/// Shows the call to the group, if this member and every peer are done with the cell that it takes; else says no, and
/// `op.next` is the peer that is not.
inline bool post(Operation& op) {
  Member& me = mine(op);
  int const n = op.group.size();
  if (op.ticket >= me.completed + 2) return false;
  for (; op.ticket >= 2 && op.next < n; ++op.next) {
    Ticket& known = me.known[op.next];
    if (op.next == op.group.rank() || known >= op.ticket - 1) continue;
    known = member(op, op.next).finished.load(std::memory_order_acquire);
    if (known < op.ticket - 1) return false;
  }
  Cell& c = me.cell(op.ticket);
  i64 const bytes = offered(op) * bytes_of(op.call.element);
  c.exposed = bytes > one_shot_bytes;
  c.source = c.exposed ? op.in : c.small;
  if (!c.exposed && bytes > 0) std::memcpy(c.small, op.in, static_cast<std::size_t>(bytes));
  c.call = op.call;
  if (op.call.verb != Verb::all_reduce && op.call.verb != Verb::broadcast)
    for (int k = 0; k < 2; ++k) std::copy_n(op.counts[k], n, c.counts[k]);
  c.finished = me.finished.load(std::memory_order_relaxed);
  c.posted.store(op.ticket + 1, std::memory_order_release);
  op.stage = Stage::posted, op.next = 0;
  return true;
}

/// The first member whose call does not fit this one's, -1 where all do. @pre all have posted.
inline int misfit(Operation& op) {
  int const self = op.group.rank(), n = op.group.size();
  for (int i = 0; i < n; ++i) {
    Cell const& c = cell(op, i);
    Ticket& known = mine(op).known[i];
    known = (std::max)(known, c.finished);
    if (c.call != op.call) return i;
    bool fits = true;
    if (op.call.verb == Verb::reduce_scatter || op.call.verb == Verb::all_gather)
      fits = same_counts(c.counts[0], op.counts[0], n);
    if (op.call.verb == Verb::all_to_all)
      fits = c.counts[0][self] == op.counts[1][i] && c.counts[1][self] == op.counts[0][i];
    if (!fits) return i;
  }
  return -1;
}

inline std::string misfit_text(Operation const& op, int i) {
  int const n = op.group.size(), a = op.group.world_rank(op.group.rank()), b = op.group.world_rank(i);
  Cell const& c = cell(op, i);
  return "ranks " + std::to_string((std::min)(a, b)) + " and " + std::to_string((std::max)(a, b)) +
         " make calls that do not fit on the group of ranks " + text_of(op.group.state()->ranks.data(), n) + ": rank " +
         std::to_string(a) + " calls " + op.text() + ", rank " + std::to_string(b) + " calls " +
         text_of(c.call, c.counts[0], c.counts[1], n) + "; members of a group make the same calls in the same order";
}

/// Does this member read from a peer's own buffer? @pre all have posted.
inline bool reads_exposed(Operation const& op) {
  for (int i = 0; i < op.group.size(); ++i)
    if (i != op.group.rank() && cell(op, i).exposed) return true;
  return false;
}

/// One piece of another rank's buffer is read.
inline void count(TrafficCounters& traffic, Exchange kind, i64 bytes) {
  if (bytes > 0) traffic[kind] += {1, bytes};
}
inline void copy_counted(TrafficCounters& traffic, Exchange kind, std::byte* to, std::byte const* from, i64 bytes) {
  count(traffic, kind, bytes);
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Takes what this member needs from the others' sources. @pre all have posted and fit.
inline void read_sources(Operation& op, TrafficCounters& traffic) {
  int const self = op.group.rank(), n = op.group.size();
  Call const& call = op.call;
  i64 const width = bytes_of(call.element);
  std::byte* out = op.out;
  auto const reduce = [&](Exchange kind, i64 first, i64 size) {
    void const** const sources = mine(op).sources;
    for (int i = 0; i < n; ++i) {
      sources[i] = cell(op, i).source + first * width;
      if (i != self) count(traffic, kind, size * width);
    }
    if (size > 0) reduce_in_order(sources, n, out, size, call.element, call.reduction);
  };
  switch (call.verb) {
    case Verb::all_reduce: {
      Range const part = two_shot(call) ? block(call.n, 1, n, self) : Range{0, call.n};
      out += part.lo * width;
      return reduce(Exchange::all_reduce, part.lo, part.size());
    }
    case Verb::reduce_scatter:
      return reduce(Exchange::reduce_scatter, sum_of_first(op.counts[0], self), op.counts[0][self]);
    case Verb::all_gather:
      for (int i = 0; i < n; out += op.counts[0][i++] * width)
        if (i != self) copy_counted(traffic, Exchange::all_gather, out, cell(op, i).source, op.counts[0][i] * width);
      return;
    case Verb::all_to_all:
      for (int i = 0; i < n; out += op.counts[1][i++] * width) {
        if (i == self) continue;
        i64 const first = sum_of_first(cell(op, i).counts[0], self);
        copy_counted(traffic, Exchange::all_to_all, out, cell(op, i).source + first * width, op.counts[1][i] * width);
      }
      return;
    case Verb::broadcast:
      if (self != call.peer)
        copy_counted(traffic, Exchange::broadcast, out, cell(op, call.peer).source, call.n * width);
      return;
    default: return;
  }
}

/// Second half of a two-shot all-reduce: the blocks that the others reduced, from where they reduced them.
inline void read_blocks(Operation& op, TrafficCounters& traffic) {
  i64 const width = bytes_of(op.call.element);
  for (int i = 0; i < op.group.size(); ++i) {
    if (i == op.group.rank()) continue;
    Range const part = block(op.call.n, 1, op.group.size(), i);
    copy_counted(traffic, Exchange::all_reduce, op.out + part.lo * width, cell(op, i).source + part.lo * width,
                 part.size() * width);
  }
}

}  // namespace dovetail::threads
