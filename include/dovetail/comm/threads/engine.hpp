// SPDX-License-Identifier: MIT
// Drives the operations of one rank. There is no thread behind it: a rank that waits for one operation moves all that
// it has under way, so nothing depends on the order in which requests are waited for. Calls on one group are finished
// in the order called. No lock and no allocation once the pool has grown to what the rank needs.
#pragma once
#include <dovetail/comm/threads/collective.hpp>
#include <dovetail/comm/threads/inquiry.hpp>

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
  template <class Read>
  void guarded(Read read);
  int awaited(Operation const& op) const;
  void look_around(std::uint64_t& seen, int sleeps, Operation const& waited);

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
  Ticket const completed = mine(op).completed;
  bool const first = op.stage == Stage::queued ? op.ticket < completed + 2 : op.ticket == completed;
  return first ? op.group.world_rank(op.next) : -1;
}

/// Reads peers' buffers, unless the world has stopped and they may be gone.
template <class Read>
void Engine::guarded(Read read) {
  Reading const reading(world_.failure, rank_);
  if (!reading) world_.failure.raise(rank_);
  read();
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
    if (int const i = misfit(op); i >= 0) fail(rank_, misfit_text(op, i));
    if (reads_exposed(op)) {
      guarded([&] { read_sources(op, traffic); });
    } else {
      read_sources(op, traffic);
    }
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
    guarded([&] { read_blocks(op, traffic); });
    me.finished.store(op.ticket + 1, std::memory_order_release);
    then(Stage::leaving);
  }
  if (cell(op, op.group.rank()).exposed) {
    if (!all([&](int i) { return member(op, i).finished.load(std::memory_order_acquire) > op.ticket; })) return moved;
    for (int i = 0; i < n; ++i) me.known[i] = (std::max)(me.known[i], op.ticket + 1);
  }
  op.stage = Stage::complete;
  me.completed = op.ticket + 1;
  return true;
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
  guarded([&] {
    i64 const bytes = op.call.n * bytes_of(op.call.element);
    if (send.from != rank_) count(traffic, Exchange::point_to_point, bytes);
    if (bytes > 0) std::memcpy(op.out, send.in, static_cast<std::size_t>(bytes));
  });
  send.read.store(true, std::memory_order_release);
  op.stage = Stage::complete;
  return true;
}

}  // namespace dovetail::threads
