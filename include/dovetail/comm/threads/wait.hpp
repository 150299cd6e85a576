// SPDX-License-Identifier: MIT
// How a rank waits: it spins briefly, then gives its core away, then sleeps longer and longer. Fast where every rank
// has a core, and still fair where many ranks share few. Nothing here knows what is waited for.
#pragma once
#include <chrono>
#include <thread>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace dovetail::threads {

/// Tells the core that this is a spin loop, where it has a way to be told.
inline void pause_hint() {
#if defined(__has_builtin)
#if __has_builtin(__builtin_ia32_pause)
  __builtin_ia32_pause();
#endif
#endif
}

/// Iterations of a spin: few where ranks outnumber cores, since the rank waited for may need this one's core.
inline int spins_for(int ranks) { return ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? 400 : 8; }

/// One wait: called after each look that found nothing.
class Backoff {
 public:
  explicit Backoff(int spins) : spins_(spins) {}

  void operator()() {
    if (step_ < spins_) {
      ++step_;
      pause_hint();
    } else if (step_ < spins_ + yields) {
      ++step_;
      std::this_thread::yield();
    } else {
      ++sleeps_;
      std::this_thread::sleep_for(nap_);
      nap_ = nap_ + nap_ / 4 < longest ? nap_ + nap_ / 4 : longest;
    }
  }
  /// Naps taken so far; 0 while it spins or yields.
  int sleeps() const { return sleeps_; }
  void reset() { *this = Backoff(spins_); }

 private:
  static constexpr int yields = 1000;
  static constexpr std::chrono::microseconds longest{500};
  int spins_, step_ = 0, sleeps_ = 0;
  std::chrono::microseconds nap_{50};
};

/// Keeps the calling thread on one of the cores that it may use, counted round robin. Does nothing off Linux, or where
/// the system refuses: pinning is for speed, never for correctness.
inline void pin_to_core([[maybe_unused]] int index) {
#if defined(__linux__)
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0) return;
  int left = index % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
#endif
}

}  // namespace dovetail::threads
