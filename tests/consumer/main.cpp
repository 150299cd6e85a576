// SPDX-License-Identifier: MIT
// What a user's program does with Dovetail: the plan-time core proves a layout, and with the components threads, cpu
// and io that layout runs and a file is read. Exit code 0 only where all of it is as it should be.
#include <cstdio>
#include <cstring>

#include "layout.hpp"
#ifdef WITH_THREADS
#include <atomic>
#include <dovetail/comm/threads.hpp>
#endif
#ifdef WITH_CPU
#include <algorithm>
#include <dovetail/device/cpu.hpp>
#include <dovetail/run/executor.hpp>
#endif
#ifdef WITH_IO
#include <dovetail/io/json_file.hpp>
#include <filesystem>
#include <fstream>
#endif

static_assert(dovetail::plan_of<Layout>.ranks() == 2);
static_assert(dovetail::plan_of<Layout>.count(dovetail::step::all_reduce) > 0);

#if defined(WITH_THREADS) && defined(WITH_CPU)
/// With weights of 1, each logit is the sum of `width` ones. Returns how many of the logits that ranks hold are not.
int wrong_logits() {
  dovetail::Plan const plan = dovetail::plan_of<Layout>;
  std::atomic<int> seen = 0, wrong = 0;
  dovetail::ThreadWorld world(2);
  world.run([&](dovetail::ThreadCommunicator& comm) {
    dovetail::Cpu device;
    auto const ones = [](std::string const&, dovetail::WeightShape const&, std::span<float> w) {
      std::fill(w.begin(), w.end(), 1.0f);
    };
    dovetail::Executor<dovetail::Cpu, dovetail::ThreadCommunicator> executor(plan, device, comm, ones, {1, 1});
    dovetail::SequenceRun const one{0, 1, 1};
    dovetail::i32 const token = 3;
    std::span<dovetail::i32 const> const tokens[] = {{&token, 1}};
    executor.forward({&one, 1}, tokens);
    auto const view = executor.view(plan.result);
    for (dovetail::i64 i = 0; view && i < view->rows * view->width; ++i, ++seen)
      wrong += view->as<float>()[i] != float(width);
  });
  return wrong + (seen != vocabulary);
}
#elif defined(WITH_THREADS)
int wrong_logits() {
  std::atomic<int> ran = 0;
  dovetail::ThreadWorld world(2);
  world.run([&](dovetail::ThreadCommunicator&) { ++ran; });
  return ran != 2;
}
#else
int wrong_logits() { return 0; }
#endif

int wrong_files() {
#ifdef WITH_IO
  std::string const path = (std::filesystem::current_path() / "consumer.json").string();
  std::ofstream(path) << "{\"answer\": [4, 2]}";
  return dovetail::load_json(path).at("answer").size() != 2;
#else
  return 0;
#endif
}

int main() {
  int const faults = (std::strcmp(DOVETAIL_VERSION, EXPECTED_VERSION) != 0) + (&plan_in_other_unit() != plan_here()) +
                     wrong_logits() + wrong_files();
  std::printf("dovetail %s: %d faults\n", DOVETAIL_VERSION, faults);
  return faults;
}
