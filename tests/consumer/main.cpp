// SPDX-License-Identifier: MIT
// What a user's program sees of an installed Dovetail: the plan-time core, its version, and the headers of the
// components that were asked for, with what they depend on. Exit code 0 only where all of it works.
#include <cstdio>
#include <cstring>
#include <dovetail/dovetail.hpp>
#ifdef WITH_THREADS
#include <atomic>
#include <dovetail/comm/threads.hpp>
#endif
#ifdef WITH_CPU
#include <dnnl.hpp>
#include <dovetail/device/cpu.hpp>
#endif
#ifdef WITH_IO
#include <dovetail/io/safetensors.hpp>
#include <nlohmann/json.hpp>
#endif

static_assert(dovetail::block(9, 1, 2, 0) == dovetail::Range{0, 5});

int main() {
  int faults = std::strcmp(DOVETAIL_VERSION, EXPECTED_VERSION) != 0;
#ifdef WITH_THREADS
  std::atomic<int> ran = 0;
  dovetail::ThreadWorld world(2);
  world.run([&](dovetail::ThreadCommunicator&) { ++ran; });
  faults += ran != 2;
#endif
#ifdef WITH_CPU
  faults += dnnl::engine::get_count(dnnl::engine::kind::cpu) == 0;
#endif
#ifdef WITH_IO
  faults += nlohmann::json::parse("[1]").size() != 1;
#endif
  std::printf("dovetail %s: %d faults\n", DOVETAIL_VERSION, faults);
  return faults;
}
