// SPDX-License-Identifier: MIT
// Drives the operations of one rank. There is no thread behind it: a rank that waits for one operation moves all that
// it has under way, so nothing depends on the order in which requests are waited for. Calls on one group are finished
// in the order called. No lock and no allocation once the pool has grown to what the rank needs.
#pragma once
#include <cstring>
#include <dovetail/comm/reduce.hpp>
#include <dovetail/comm/threads/inquiry.hpp>
#include <dovetail/comm/threads/operation.hpp>

namespace dovetail::threads {

/// What the ranks of a world share.
struct WorldState {
  explicit WorldState(int n) : ranks(n), spins(spins_for(n)), failure(n), inquiry(n) {}
  int const ranks, spins;
  Failure failure;
  Inquiry inquiry;
  GroupRegistry groups;
  Inbox inboxes[max_ranks];
};

class Engine {
 public:
  Engine(WorldState& world, int rank) : world_(world), rank_(rank) { active_.reserve(64); }

  WorldState& world() { return world_; }
  int rank() const { return rank_; }
  /// An operation to fill in and start. Throws WorldFailed where the world has stopped.
  Operation& take() {
    if (world_.failure.stopped()) world_.failure.raise(rank_);
    return pool_.take();
  }
  void start(Operation& op);
  /// Returns once `op` is complete, and takes it back. Throws WorldFailed where the world stops before that.
  void complete(Operation& op);
  [[noreturn]] void fail(int rank, std::string message) {
    world_.failure.fail(rank, std::move(message));
    world_.failure.raise(rank_);
  }
  /// The oldest operation that was started and not taken back, or nullptr.
  Operation const* unfinished() const { return active_.empty() ? nullptr : active_.front(); }

  TrafficCounters traffic;

 private:
  bool progress();
  bool advance(Operation& op);
  bool advance_send(Operation& op);
  bool advance_receive(Operation& op);
  bool post(Operation& op);
  void compare(Operation& op);
  void read(Operation& op);
  void read_sources(Operation& op);
  void read_blocks(Operation& op);
  int awaited(Operation const& op) const;
  void look_around(std::uint64_t& seen, int sleeps, Operation const& waited);

  static Member& member(Operation const& op, int i) { return op.group.state()->members[static_cast<std::size_t>(i)]; }
  static Member& mine(Operation const& op) { return member(op, op.group.rank()); }
  static Cell& cell(Operation const& op, int i) { return member(op, i).cell(op.ticket); }
  static bool two_shot(Call const& c) {
    return c.verb == Verb::all_reduce && c.n * bytes_of(c.element) > one_shot_bytes;
  }
  /// A piece of another rank's buffer is about to be read.
  void count(Exchange kind, i64 bytes) {
    if (bytes > 0) traffic[kind] += {1, bytes};
  }
  void copy(Exchange kind, std::byte* to, std::byte const* from, i64 bytes) {
    count(kind, bytes);
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  WorldState& world_;
  int const rank_;
  OperationPool pool_;
  Matcher matcher_;
  std::vector<Operation*> active_;  // in the order started
};

inline void Engine::start(Operation& op) {
  op.from = rank_;
  active_.push_back(&op);
  if (op.call.verb == Verb::send) {
    op.stage = Stage::posted;
    world_.inboxes[op.call.peer].push(op);
  } else if (op.call.verb == Verb::receive) {
    op.stage = Stage::posted;
    matcher_.expect(op);
  } else {
    op.ticket = mine(op).issued++;
    post(op);
  }
}

inline bool Engine::progress() {
  bool moved = false;
  for (std::size_t i = 0; i < active_.size(); ++i)
    if (active_[i]->stage != Stage::complete) moved = advance(*active_[i]) || moved;
  return moved;
}

inline void Engine::complete(Operation& op) {
  auto& beat = world_.failure.presence[rank_].beat;
  Backoff backoff(world_.spins);
  bool asleep = false;
  std::uint64_t seen = 0;
  auto const stir = [&](std::uint64_t steps) { beat.fetch_add(steps, std::memory_order_release); };
  while (op.stage != Stage::complete) {
    if (world_.failure.stopped()) world_.failure.raise(rank_);
    if (progress()) {
      if (asleep) stir(2), world_.inquiry.withdraw(rank_);
      backoff.reset(), seen = 0;
      continue;
    }
    if (asleep) look_around(seen, backoff.sleeps(), op);
    backoff();
    if (!asleep && backoff.sleeps() > 0) stir(1), asleep = true;
  }
  if (asleep) stir(1), world_.inquiry.withdraw(rank_);
  active_.erase(std::find(active_.begin(), active_.end(), &op));
  pool_.give_back(op);
}

/// After a nap in which nothing came: has a rank ended that this one waits for, and does anybody still move?
inline void Engine::look_around(std::uint64_t& seen, int sleeps, Operation const& waited) {
  auto& failure = world_.failure;
  for (Operation const* op : active_) {
    int const peer = awaited(*op);
    if (peer < 0 || !failure.presence[peer].ended.load(std::memory_order_acquire)) continue;
    if (progress()) {  // it came before the end
      failure.presence[rank_].beat.fetch_add(2, std::memory_order_release);
      return;
    }
    fail(peer, "rank " + std::to_string(peer) + " ended while rank " + std::to_string(rank_) + " waits for it in " +
                   op->text());
  }
  std::uint64_t const question = world_.inquiry.open();
  if (question == 0) {
    if (sleeps % 16 == 15) world_.inquiry.ask(failure, rank_);
  } else if (seen != question) {
    seen = question;
  } else {
    if (failure.presence[rank_].answer.load(std::memory_order_relaxed) != question)
      world_.inquiry.answer(failure, rank_, question, "waits in " + waited.text());
    world_.inquiry.conclude(failure, rank_);
  }
}

/// World rank that keeps `op` where it is, -1 where an earlier call of this rank does.
inline int Engine::awaited(Operation const& op) const {
  if (op.stage == Stage::complete) return -1;
  if (op.call.verb == Verb::send || op.call.verb == Verb::receive) return op.call.peer;
  if (op.stage == Stage::queued || op.ticket == mine(op).completed) return op.group.world_rank(op.next);
  return -1;
}

inline bool Engine::advance(Operation& op) {
  if (op.call.verb == Verb::send) return advance_send(op);
  if (op.call.verb == Verb::receive) return advance_receive(op);
  bool moved = false;
  if (op.stage == Stage::queued) {
    if (!post(op)) return false;
    moved = true;
  }
  Member& me = mine(op);
  if (op.ticket != me.completed) return moved;
  int const n = op.group.size();
  auto const all = [&](auto const& ready) {
    while (op.next < n && ready(op.next)) ++op.next;
    return op.next == n;
  };
  auto const then = [&](Stage stage) { op.stage = stage, op.next = 0, moved = true; };

  if (op.stage == Stage::posted) {
    if (!all([&](int i) { return cell(op, i).posted.load(std::memory_order_acquire) == op.ticket + 1; })) return moved;
    compare(op);
    read(op);
    if (two_shot(op.call)) {
      me.reduced.store(op.ticket + 1, std::memory_order_release);
      then(Stage::reduced);
    } else {
      me.finished.store(op.ticket + 1, std::memory_order_release);
      then(Stage::leaving);
    }
  }
  if (op.stage == Stage::reduced) {
    if (!all([&](int i) { return member(op, i).reduced.load(std::memory_order_acquire) > op.ticket; })) return moved;
    read_blocks(op);
    me.finished.store(op.ticket + 1, std::memory_order_release);
    then(Stage::leaving);
  }
  if (cell(op, op.group.rank()).exposed) {
    if (!all([&](int i) { return member(op, i).finished.load(std::memory_order_acquire) > op.ticket; })) return moved;
    for (int i = 0; i < n; ++i) me.known[i] = std::max(me.known[i], op.ticket + 1);
  }
  op.stage = Stage::complete;
  me.completed = op.ticket + 1;
  return true;
}

/// Shows the call to the group, if every peer is done with the cell that it takes.
inline bool Engine::post(Operation& op) {
  Member& me = mine(op);
  int const self = op.group.rank(), n = op.group.size();
  for (; op.ticket >= 2 && op.next < n; ++op.next) {
    Ticket& known = me.known[op.next];
    if (op.next == self || known >= op.ticket - 1) continue;
    known = member(op, op.next).finished.load(std::memory_order_acquire);
    if (known < op.ticket - 1) return false;
  }
  Cell& c = me.cell(op.ticket);
  Call const& call = op.call;
  i64 offered = call.n;
  if (call.verb == Verb::all_gather) {
    offered = op.counts[0][self];
  } else if (call.verb == Verb::reduce_scatter || call.verb == Verb::all_to_all) {
    for (int i = 0; i < n; ++i) offered += op.counts[0][i];
  } else if (call.verb == Verb::broadcast && call.peer != self) {
    offered = 0;
  }
  i64 const bytes = offered * bytes_of(call.element);
  c.exposed = bytes > one_shot_bytes;
  c.source = c.exposed ? op.in : c.small;
  if (!c.exposed && bytes > 0) std::memcpy(c.small, op.in, static_cast<std::size_t>(bytes));
  c.call = call;
  if (call.verb != Verb::all_reduce && call.verb != Verb::broadcast)
    for (int k = 0; k < 2; ++k) std::copy_n(op.counts[k], n, c.counts[k]);
  c.finished = me.finished.load(std::memory_order_relaxed);
  c.posted.store(op.ticket + 1, std::memory_order_release);
  op.stage = Stage::posted, op.next = 0;
  return true;
}

/// Every member made the same call, or the world fails with both.
inline void Engine::compare(Operation& op) {
  int const self = op.group.rank(), n = op.group.size();
  Member& me = mine(op);
  Verb const verb = op.call.verb;
  for (int i = 0; i < n; ++i) {
    Cell const& c = cell(op, i);
    me.known[i] = std::max(me.known[i], c.finished);
    bool same = c.call == op.call;
    if (same && (verb == Verb::reduce_scatter || verb == Verb::all_gather))
      same = same_counts(c.counts[0], op.counts[0], n);
    if (same && verb == Verb::all_to_all)
      same = c.counts[0][self] == op.counts[1][i] && c.counts[1][self] == op.counts[0][i];
    if (same) continue;
    int const a = rank_, b = op.group.world_rank(i);
    fail(rank_, "ranks " + std::to_string(std::min(a, b)) + " and " + std::to_string(std::max(a, b)) +
                    " make calls that do not fit on the group of ranks " + text_of(op.group.state()->ranks.data(), n) +
                    ": rank " + std::to_string(a) + " calls " + op.text() + ", rank " + std::to_string(b) + " calls " +
                    text_of(c.call, c.counts[0], c.counts[1], n) +
                    "; members of a group make the same calls in the same order");
  }
}

/// All members have posted: takes what this rank needs, under guard where it stands in their own buffers.
inline void Engine::read(Operation& op) {
  bool exposed = false;
  for (int i = 0; i < op.group.size(); ++i) exposed = exposed || (i != op.group.rank() && cell(op, i).exposed);
  if (!exposed) return read_sources(op);
  Reading const reading(world_.failure, rank_);
  if (!reading) world_.failure.raise(rank_);
  read_sources(op);
}

inline void Engine::read_sources(Operation& op) {
  int const self = op.group.rank(), n = op.group.size();
  Call const& call = op.call;
  i64 const width = bytes_of(call.element);
  auto const reduce = [&](Exchange kind, i64 first, i64 size, std::byte* out) {
    void const** const sources = mine(op).sources;
    for (int i = 0; i < n; ++i) {
      sources[i] = cell(op, i).source + first * width;
      if (i != self) count(kind, size * width);
    }
    if (size > 0) reduce_in_order(sources, n, out, size, call.element, call.reduction);
  };
  auto const before = [](i64 const* counts, int i) {
    i64 sum = 0;
    for (int k = 0; k < i; ++k) sum += counts[k];
    return sum;
  };
  switch (call.verb) {
    case Verb::all_reduce: {
      Range const part = two_shot(call) ? block(call.n, 1, n, self) : Range{0, call.n};
      return reduce(Exchange::all_reduce, part.lo, part.size(), op.out + part.lo * width);
    }
    case Verb::reduce_scatter:
      return reduce(Exchange::reduce_scatter, before(op.counts[0], self), op.counts[0][self], op.out);
    case Verb::all_gather: {
      std::byte* out = op.out;
      for (int i = 0; i < n; out += op.counts[0][i++] * width)
        if (i != self) copy(Exchange::all_gather, out, cell(op, i).source, op.counts[0][i] * width);
      return;
    }
    case Verb::all_to_all: {
      std::byte* out = op.out;
      for (int i = 0; i < n; out += op.counts[1][i++] * width)
        if (i != self)
          copy(Exchange::all_to_all, out, cell(op, i).source + before(cell(op, i).counts[0], self) * width,
               op.counts[1][i] * width);
      return;
    }
    case Verb::broadcast:
      if (self != call.peer) copy(Exchange::broadcast, op.out, cell(op, call.peer).source, call.n * width);
      return;
    default: return;
  }
}

/// Second half of a two-shot all-reduce: the blocks that the others reduced, from where they reduced them.
inline void Engine::read_blocks(Operation& op) {
  Reading const reading(world_.failure, rank_);
  if (!reading) world_.failure.raise(rank_);
  i64 const width = bytes_of(op.call.element);
  for (int i = 0; i < op.group.size(); ++i) {
    Range const part = block(op.call.n, 1, op.group.size(), i);
    if (i != op.group.rank())
      copy(Exchange::all_reduce, op.out + part.lo * width, cell(op, i).source + part.lo * width, part.size() * width);
  }
}

inline bool Engine::advance_send(Operation& op) {
  if (!op.read.load(std::memory_order_acquire)) return false;
  op.stage = Stage::complete;
  return true;
}

inline bool Engine::advance_receive(Operation& op) {
  if (!op.letter) matcher_.deliver(world_.inboxes[rank_]);
  if (!op.letter) return false;
  Operation& send = *op.letter;
  if (send.call.n != op.call.n || send.call.element != op.call.element)
    fail(rank_, "rank " + std::to_string(send.from) + " calls " + send.text() + ", but rank " + std::to_string(rank_) +
                    " calls " + op.text() + "; both ends of a tag state the same size and element type");
  {
    Reading const reading(world_.failure, rank_);
    if (!reading) world_.failure.raise(rank_);
    i64 const bytes = op.call.n * bytes_of(op.call.element);
    if (send.from != rank_) count(Exchange::point_to_point, bytes);
    if (bytes > 0) std::memcpy(op.out, send.in, static_cast<std::size_t>(bytes));
  }
  send.read.store(true, std::memory_order_release);
  op.stage = Stage::complete;
  return true;
}

}  // namespace dovetail::threads
