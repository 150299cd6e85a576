// SPDX-License-Identifier: MIT
// One call of one rank on its way: what was asked, and how far it has come. Operations live in a pool of their rank and
// are used again; a send is also the letter that the receiver finds, so it stays until the receiver has copied it.
#pragma once
#include <deque>
#include <dovetail/comm/threads/group.hpp>

namespace dovetail::threads {

enum class Stage : std::uint8_t {
  queued,   ///< not yet posted: a peer still needs the cell that it will take
  posted,   ///< waits for every member's post, or for the other end
  reduced,  ///< two-shot: waits for every member's block
  leaving,  ///< has all it needs; peers may still read its buffer
  complete,
};

struct Operation {
  Call call;
  Stage stage = Stage::queued;
  int from = 0;  ///< world rank that called
  std::byte const* in = nullptr;
  std::byte* out = nullptr;

  // Of a collective.
  Group group;
  Ticket ticket = 0;
  int next = 0;  ///< first member that was not yet where this stage needs it
  i64 counts[2][max_ranks];

  // Of a send and a receive.
  Operation* letter = nullptr;    ///< the send that a receive was matched with
  Operation* link = nullptr;      ///< next in an inbox
  std::atomic<bool> read{false};  ///< the receiver has copied this send

  std::string text() const { return text_of(call, counts[0], counts[1], group.size()); }
};

/// A rank's operations; grows to the largest number that was ever under way at once.
class OperationPool {
 public:
  OperationPool() {
    free_.reserve(64);
    for (int i = 0; i < 16; ++i) free_.push_back(&all_.emplace_back());
  }
  Operation& take() {
    if (free_.empty()) free_.push_back(&all_.emplace_back());
    Operation& op = *free_.back();
    free_.pop_back();
    op.stage = Stage::queued;
    op.next = 0;
    op.group = {};
    op.letter = nullptr;
    op.read.store(false, std::memory_order_relaxed);
    return op;
  }
  void give_back(Operation& op) { free_.push_back(&op); }

 private:
  std::deque<Operation> all_;
  std::vector<Operation*> free_;
};

/// Sends on their way to one rank: any rank pushes, the owner takes all of them, oldest first.
class Inbox {
 public:
  void push(Operation& send) {
    send.link = newest_.load(std::memory_order_relaxed);
    while (!newest_.compare_exchange_weak(send.link, &send, std::memory_order_release, std::memory_order_relaxed)) {}
  }
  Operation* take_all() {
    if (!newest_.load(std::memory_order_relaxed)) return nullptr;
    Operation* oldest = nullptr;
    for (Operation* op = newest_.exchange(nullptr, std::memory_order_acquire); op;) {
      Operation* const older = op->link;
      op->link = oldest, oldest = op, op = older;
    }
    return oldest;
  }

 private:
  alignas(64) std::atomic<Operation*> newest_{nullptr};
};

/// Pairs the sends that reach a rank with its receives: by (from, tag), each in order. Only the owner touches it.
class Matcher {
 public:
  Matcher() {
    letters_.reserve(64);
    receives_.reserve(64);
  }
  /// A letter that already waits for this receive is taken, else the receive waits for one.
  void expect(Operation& receive) {
    for (auto it = letters_.begin(); it != letters_.end(); ++it) {
      if (!fits(**it, receive)) continue;
      receive.letter = *it;
      letters_.erase(it);
      return;
    }
    receives_.push_back(&receive);
  }
  void deliver(Inbox& inbox) {
    for (Operation* send = inbox.take_all(); send;) {
      Operation* const newer = send->link;
      deliver(*send);
      send = newer;
    }
  }

 private:
  static bool fits(Operation const& send, Operation const& receive) {
    return send.from == receive.call.peer && send.call.tag == receive.call.tag;
  }
  void deliver(Operation& send) {
    for (auto it = receives_.begin(); it != receives_.end(); ++it) {
      if (!fits(send, **it)) continue;
      (*it)->letter = &send;
      receives_.erase(it);
      return;
    }
    letters_.push_back(&send);
  }
  std::vector<Operation*> letters_, receives_;
};

}  // namespace dovetail::threads
