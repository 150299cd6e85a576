// SPDX-License-Identifier: MIT
// A world of ranks in one process: its shared state, a communicator a rank, and a way to run a function on all of them.
// Worlds are independent of each other, and a world may be run again until one of its ranks has failed. Requests and
// groups of a world must not outlive it.
#pragma once
#include <dovetail/comm/threads/communicator.hpp>
#include <system_error>

namespace dovetail {

/// How a ThreadWorld runs its threads.
struct ThreadOptions {
  bool pin = false;  ///< keep the thread of rank r on one core, round robin; Linux only, elsewhere nothing happens
};

/// Ranks on threads of this process: `run(f)` calls f(communicator) on all of them at once and waits for the last.
class ThreadWorld {
 public:
  /// Throws std::invalid_argument unless 1 <= ranks <= 64.
  explicit ThreadWorld(int ranks, ThreadOptions options = {}) : options_(options), state_(checked(ranks)) {
    for (int r = 0; r < ranks; ++r) communicators_.push_back(std::make_unique<ThreadCommunicator>(state_, r));
  }
  ThreadWorld(ThreadWorld const&) = delete;

  int size() const { return state_.ranks; }

  /// For users with threads of their own: one thread at a time a rank, and leave() when a rank is done.
  ThreadCommunicator& communicator(int rank) {
    if (rank < 0 || rank >= size())
      throw std::invalid_argument("dovetail: a thread world of " + counted(size(), "rank") + " has no rank " +
                                  std::to_string(rank));
    return *communicators_[static_cast<std::size_t>(rank)];
  }

  /// Calls f(ThreadCommunicator&) on one thread a rank and joins them all. Rethrows the failure that came first, as it
  /// was thrown; the others' WorldFailed are its consequences. Throws WorldFailed at once if the world failed before.
  template <class F>
  void run(F&& f) {
    if (state_.failure.stopped()) state_.failure.raise(0);
    for (auto& presence : state_.failure.presence) presence.ended.store(false);
    std::vector<std::thread> ranks;
    ranks.reserve(communicators_.size());
    for (int r = 0; r < size(); ++r) {
      try {
        ranks.emplace_back([this, r, &f] { attend(r, f); });
      } catch (std::system_error const& error) {
        state_.failure.fail(r, std::string("its thread could not be started: ") + error.what());
        break;
      }
    }
    for (auto& rank : ranks) rank.join();
    if (state_.failure.stopped()) state_.failure.rethrow();
  }

 private:
  static int checked(int ranks) {
    if (ranks >= 1 && ranks <= threads::max_ranks) return ranks;
    throw std::invalid_argument("dovetail: a thread world of " + counted(ranks, "rank") +
                                " is not possible; legal are 1 to " + std::to_string(threads::max_ranks));
  }

  /// What the thread of a rank does. Where there is no memory left to tell of a failure the process ends.
  template <class F>
  void attend(int rank, F& f) noexcept {  // NOLINT(bugprone-exception-escape)
    if (options_.pin) threads::pin_to_core(rank);
    ThreadCommunicator& c = communicator(rank);
    try {
      f(c);
    } catch (std::exception const& error) {
      state_.failure.fail(rank, error.what(), std::current_exception());
    } catch (...) {
      state_.failure.fail(rank, "an exception that is not a std::exception", std::current_exception());
    }
    c.leave();
  }

  ThreadOptions options_;
  threads::WorldState state_;
  std::vector<std::unique_ptr<ThreadCommunicator>> communicators_;
};

}  // namespace dovetail
