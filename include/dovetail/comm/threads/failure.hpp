// SPDX-License-Identifier: MIT
// The first failure of a world, and the care taken when ranks leave because of it. Once a world has stopped nobody
// begins to read a peer's buffer, and nobody throws before every read that was under way has ended: a rank that
// unwinds frees buffers that no peer still reads. Looking is one atomic load; only failing takes a lock.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <dovetail/comm/communicator.hpp>
#include <dovetail/comm/threads/wait.hpp>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

namespace dovetail::threads {

inline constexpr int max_ranks = 64;  ///< ranks of one world

/// What the other ranks may see of one rank, on a cache line of its own.
struct alignas(64) Presence {
  std::atomic<bool> reading{false};      ///< inside a peer's buffer
  std::atomic<bool> ended{false};        ///< takes no further part
  std::atomic<std::uint64_t> beat{0};    ///< odd while asleep in a wait; grows with everything it does there
  std::atomic<std::uint64_t> answer{0};  ///< the last inquiry that it answered
};

class Failure {
 public:
  explicit Failure(int ranks) : ranks_(ranks) {}

  bool stopped() const noexcept { return state_.load(std::memory_order_seq_cst) != running; }

  /// Records the first failure, and stops the world. Later ones are consequences and change nothing.
  void fail(int rank, std::string message, std::exception_ptr cause = nullptr) {
    std::lock_guard const lock(mutex_);
    if (state_.load() == failed) return;
    rank_ = rank, message_ = std::move(message), cause_ = std::move(cause);
    state_.store(failed);
  }

  /// An exception passes through `rank`, which leaves operations unfinished; what it says is known only when it has
  /// been caught, so the world stops now and hears the reason then.
  void abandon(int rank, std::string message) {
    std::lock_guard const lock(mutex_);
    if (state_.load() != running) return;
    rank_ = rank, message_ = std::move(message);
    state_.store(abandoned);
  }

  /// Returns once no other rank reads any buffer. @pre stopped()
  void quiesce(int me) const noexcept {
    for (int r = 0; r < ranks_; ++r)
      for (Backoff backoff(8); r != me && presence[r].reading.load(std::memory_order_seq_cst);) backoff();
  }

  /// What every wait of a stopped world ends with. @pre stopped(), and this rank is not reading.
  [[noreturn]] void raise(int me) {
    quiesce(me);
    // The exception that passes through the failing rank is normally caught at once; a rank that swallowed it instead
    // leaves the words of abandon().
    for (int tries = 0; tries < 200 && state_.load() == abandoned; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    {
      std::lock_guard const lock(mutex_);
      state_.store(failed);
    }
    throw WorldFailed(message_, rank_);
  }

  /// After all ranks have been joined: the first failure as it was thrown.
  void rethrow() {
    if (cause_) std::rethrow_exception(cause_);
    throw WorldFailed(message_, rank_);
  }

  Presence presence[max_ranks];

 private:
  enum State : int { running, abandoned, failed };
  std::atomic<int> state_{running};
  std::mutex mutex_;
  int ranks_, rank_ = 0;
  std::string message_;
  std::exception_ptr cause_;
};

/// While it lives and is true this rank may read its peers' buffers.
class Reading {
 public:
  Reading(Failure& failure, int rank) : presence_(failure.presence[rank]) {
    presence_.reading.store(true, std::memory_order_seq_cst);  // before the look: see quiesce()
    allowed_ = !failure.stopped();
    if (!allowed_) presence_.reading.store(false, std::memory_order_release);
  }
  Reading(Reading const&) = delete;
  ~Reading() {
    if (allowed_) presence_.reading.store(false, std::memory_order_release);
  }
  explicit operator bool() const { return allowed_; }

 private:
  Presence& presence_;
  bool allowed_;
};

}  // namespace dovetail::threads
