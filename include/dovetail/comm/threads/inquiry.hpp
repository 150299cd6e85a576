// SPDX-License-Identifier: MIT
// Finds out that a world is stuck: every rank waits, or has ended, and none can go on. A rank that has slept for a
// while asks; every sleeping rank answers after one more look that found nothing. If all have answered and none has
// moved since before the question, none ever will, and the world fails with what each waits for. No timeout decides.
#pragma once
#include <dovetail/comm/threads/failure.hpp>

namespace dovetail::threads {

class Inquiry {
 public:
  explicit Inquiry(int ranks) : ranks_(ranks) {}

  /// The question that is open, 0 where none is.
  std::uint64_t open() const { return open_.load(std::memory_order_acquire); }

  /// Opens a question if every rank is asleep or has ended.
  void ask(Failure& failure, int me) {
    std::lock_guard const lock(mutex_);
    if (open()) return;
    for (int r = 0; r < ranks_; ++r) {
      beats_[r] = failure.presence[r].beat.load(std::memory_order_acquire);
      ended_[r] = failure.presence[r].ended.load(std::memory_order_acquire);
      if (!ended_[r] && beats_[r] % 2 == 0) return;
      said_[r] = ended_[r] ? "has ended" : "";
    }
    asker_ = me;
    open_.store(++asked_, std::memory_order_release);
  }

  /// What `me` waits for. @pre it read open() == question, and then looked once more and found nothing.
  void answer(Failure& failure, int me, std::uint64_t question, std::string text) {
    std::lock_guard const lock(mutex_);
    if (open() != question) return;
    said_[me] = std::move(text);
    failure.presence[me].answer.store(question, std::memory_order_release);
  }

  /// The asker looks at the answers: withdraws where a rank moved, fails the world where none can.
  void conclude(Failure& failure, int me) {
    std::lock_guard const lock(mutex_);
    if (!open() || asker_ != me) return;
    for (int r = 0; r < ranks_; ++r) {
      if (ended_[r]) continue;
      bool const answered = failure.presence[r].answer.load(std::memory_order_acquire) == open();
      if (failure.presence[r].beat.load(std::memory_order_acquire) != beats_[r]) {
        open_.store(0, std::memory_order_release);
        return;
      }
      if (!answered) return;
    }
    std::string text = "no rank can go on:";
    for (int r = 0; r < ranks_; ++r) text += (r ? "; rank " : " rank ") + std::to_string(r) + " " + said_[r];
    failure.fail(me, text + "; check the order of calls, and that all members of a group were given the same list");
  }

  /// `me` has something to do again: its own question is void.
  void withdraw(int me) {
    std::lock_guard const lock(mutex_);
    if (open() && asker_ == me) open_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<std::uint64_t> open_{0};
  std::mutex mutex_;
  int ranks_, asker_ = -1;
  std::uint64_t asked_ = 0, beats_[max_ranks] = {};
  bool ended_[max_ranks] = {};
  std::string said_[max_ranks];
};

}  // namespace dovetail::threads
