// SPDX-License-Identifier: MIT
// What it costs to ask who holds what: the executor and the loader ask once a value and rank while binding a plan, so
// this times ranks x values must stay far below the time to open the weights.
#include <benchmark/benchmark.h>

#include <dovetail/mesh/split.hpp>

namespace {

void balanced_block(benchmark::State& state) {
  int const ranks = static_cast<int>(state.range(0));
  int rank = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(dovetail::block(128256, 1, ranks, rank));
    rank = rank + 1 == ranks ? 0 : rank + 1;
  }
}
BENCHMARK(balanced_block)->Arg(2)->Arg(8)->Arg(64);

void stated_shares(benchmark::State& state) {
  dovetail::i64 const weights[] = {3, 1, 2, 2};
  dovetail::AxisInfo const axis{"tp", 4, weights};
  int rank = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(dovetail::part({0, 128256}, 1, axis, rank));
    rank = (rank + 1) % 4;
  }
}
BENCHMARK(stated_shares);

}  // namespace
