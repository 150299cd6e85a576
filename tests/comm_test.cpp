// SPDX-License-Identifier: MIT
// Runs the conformance suite on threads, plain and recorded, for 1 to 32 ranks, and tests what is particular to them:
// several worlds at once, worlds run again, threads of a user's own, what a recording holds. Also the closed forms of
// the predicted costs and the arithmetic of f16 and bf16.
#include "comm_conformance.hpp"

#include <dovetail/comm/recording.hpp>
#include <dovetail/comm/threads.hpp>

#include "catch.hpp"

namespace {

using namespace dovetail;

// Costs in closed form, for every rank count up to 16 and sizes on both sides of the threshold.
template <class CostOf>
constexpr Cost summed(int ranks, CostOf cost_of) {
  Cost sum;
  for (int r = 0; r < ranks; ++r) sum += cost_of(r);
  return sum;
}
constexpr bool costs_have_closed_forms() {
  for (int n = 1; n <= 16; ++n) {
    i64 counts[16] = {}, all = 0, pieces = 0;
    for (int i = 0; i < n; ++i) counts[i] = (i * 7) % 5, all += counts[i], pieces += counts[i] > 0;
    Span<i64> const span{counts, n};
    Cost const others{pieces * (n - 1), (n - 1) * all * 4};
    if (summed(n, [&](int r) { return all_gather_cost(span, 4, n, r); }) != others) return false;
    if (summed(n, [&](int r) { return reduce_scatter_cost(counts, 4, n, r); }) != others) return false;
    auto const sent = [](int from, int to) { return i64{from * 3 + to} % 4; };
    i64 moved = 0, messages = 0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) moved += i == j ? 0 : sent(i, j), messages += i != j && sent(i, j) > 0;
    auto const exchanged = [&](int r) { return all_to_all_cost([&](int i) { return sent(i, r); }, 2, n, r); };
    if (summed(n, exchanged) != Cost{messages, 2 * moved}) return false;
    if (summed(n, [&](int r) { return broadcast_cost(10, 8, r, n - 1); }) != Cost{n - 1, 80 * (n - 1)}) return false;
    for (i64 size : {0, 1, 576, 1024, 1025, 4099}) {
      bool const one_shot = size * 4 <= one_shot_bytes;
      i64 const bytes = (n - 1) * size * 4 * (one_shot ? n : 2);
      i64 const reads = size == 0 ? 0 : (n - 1) * i64{n} * (one_shot ? 1 : 2);
      if (summed(n, [&](int r) { return all_reduce_cost(size, 4, n, r); }) != Cost{reads, bytes}) return false;
    }
  }
  return true;
}
static_assert(costs_have_closed_forms());
static_assert(all_reduce_cost(576, 4, 2, 1) == Cost{1, 2304});
static_assert(all_reduce_cost(1025, 4, 3, 0) == Cost{4, 2 * 342 * 4 + (342 + 341) * 4});
static_assert(point_to_point_cost(0, 4) == Cost{} && point_to_point_cost(3, 2) == Cost{1, 6});
static_assert(Traffic{1, 2} == Cost{1, 2} && Traffic{1, 2} != Cost{1, 3});

static_assert(WithReduceScatter<RecordingCommunicator<ThreadCommunicator>> &&
              WithAllGather<RecordingCommunicator<ThreadCommunicator>> &&
              WithAllToAll<RecordingCommunicator<ThreadCommunicator>>);

/// Runs `suite` on every rank; what the ranks found wrong, in their order.
struct Plain {
  template <class F>
  static std::string run(ThreadWorld& world, F suite) {
    std::vector<std::string> wrong(static_cast<std::size_t>(world.size()));
    world.run([&](ThreadCommunicator& c) { wrong[static_cast<std::size_t>(c.rank())] = suite(c); });
    std::string all;
    for (auto const& text : wrong) all += text;
    return all;
  }
};
struct Noted {
  template <class F>
  static std::string run(ThreadWorld& world, F suite) {
    return Plain::run(world, [&](ThreadCommunicator& c) {
      RecordingCommunicator<ThreadCommunicator> recording(c);
      return suite(recording);
    });
  }
};

constexpr int rank_counts[] = {1, 2, 3, 4, 5, 8, 9, 16, 32};

TEMPLATE_TEST_CASE("a communicator conforms", "[comm]", Plain, Noted) {
  for (int n : rank_counts) {
    INFO(n << " ranks");
    ThreadWorld world(n);
    CHECK(TestType::run(world, [](auto& c) { return conformance::all_reduces(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::same_bits(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::reduce_scatters(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::all_gathers(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::all_to_alls(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::broadcasts(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::sends(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::meshes(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::arg_maxes(c); }) == "");
    CHECK(TestType::run(world, [](auto& c) { return conformance::overlaps(c); }) == "");
    CHECK(TestType::run(world, [n](auto& c) { return conformance::stress(c, n <= 4 ? 2000 : 200); }) == "");
  }
}

TEST_CASE("several worlds at once do not meet", "[comm]") {
  std::vector<std::string> wrong(3);
  std::vector<std::thread> owners;
  for (std::size_t k = 0; k < wrong.size(); ++k)
    owners.emplace_back([&, k] {
      ThreadWorld world(2 + static_cast<int>(k), {.pin = k == 0});
      try {
        wrong[k] = Plain::run(world, [](auto& c) { return conformance::overlaps(c) + conformance::stress(c, 300); });
      } catch (std::exception const& error) {
        wrong[k] = error.what();
      }
    });
  for (auto& owner : owners) owner.join();
  for (auto const& text : wrong) CHECK(text == "");
}

TEST_CASE("a user's own threads may be the ranks", "[comm]") {
  ThreadWorld world(3);
  std::vector<std::string> wrong(3);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 3; ++r)
    ranks.emplace_back([&, r] {
      auto& c = world.communicator(r);
      try {
        wrong[static_cast<std::size_t>(r)] = conformance::stress(c, 100);
      } catch (std::exception const& error) {
        wrong[static_cast<std::size_t>(r)] = error.what();
      }
      c.leave();
    });
  for (auto& rank : ranks) rank.join();
  for (auto const& text : wrong) CHECK(text == "");
  CHECK(world.communicator(1).counters().total().messages > 0);
}

TEST_CASE("a recording holds what was called", "[comm]") {
  ThreadWorld world(2);
  std::vector<Recorded> seen;
  std::vector<i64> times;
  world.run([&](ThreadCommunicator& inner) {
    RecordingCommunicator<ThreadCommunicator> c(inner);
    auto const g = c.group(conformance::iota(2));
    std::vector<float> x(8);
    std::vector<i64> const counts = {3, 5}, mine(2, c.rank() ? 2 : 1), theirs = {1, 2};
    std::vector<float> y(8);
    c.all_reduce(g, x.data(), 4, Element::f32, Reduction::sum).wait();
    c.all_gather(g, x.data(), y.data(), counts, Element::f32).wait();
    c.all_to_all(g, x.data(), mine, y.data(), theirs, Element::f32).wait();
    c.broadcast(g, x.data(), 2, Element::f64, 1).wait();
    c.barrier(g).wait();
    auto const sent = c.rank() ? typename ThreadCommunicator::Request{} : c.send(1, x.data(), 6, Element::f16, -4);
    if (c.rank()) c.receive(0, y.data(), 6, Element::f16, -4).wait();
    if (c.rank() != 1) return;
    seen = c.records();
    for (int kind = 0; kind < exchange_kinds; ++kind) times.push_back(c.count(static_cast<Exchange>(kind)));
    times.push_back(c.count_barriers());
    c.clear_records();
    times.push_back(static_cast<i64>(c.records().size()));
  });
  CHECK(times == std::vector<i64>{1, 0, 1, 1, 1, 1, 1, 0});
  REQUIRE(seen.size() == 6);
  CHECK(seen[0] == Recorded{Exchange::all_reduce, 2, Element::f32, {4}, 16});
  CHECK(seen[1] == Recorded{Exchange::all_gather, 2, Element::f32, {3, 5}, 32});
  CHECK(seen[2] == Recorded{Exchange::all_to_all, 2, Element::f32, {1, 2}, 12});
  CHECK(seen[3] == Recorded{Exchange::broadcast, 2, Element::f64, {2}, 16, 1});
  CHECK(seen[4] == Recorded{std::nullopt, 2, Element::u8, {}, 0});
  CHECK(seen[5] == Recorded{Exchange::point_to_point, 2, Element::f16, {6}, 12, 0, -4, Recorded::Way::in});
}

TEST_CASE("f16 and bf16 round to nearest, ties to even", "[comm]") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    auto const half = static_cast<std::uint16_t>(bits);
    float const f = float_of_f16(half), b = float_of_bf16(half);
    wrong += f == f ? f16_of(f) != half : float_of_f16(f16_of(f)) == float_of_f16(f16_of(f));
    wrong += b == b ? bf16_of(b) != half : float_of_bf16(bf16_of(b)) == float_of_bf16(bf16_of(b));
    auto const next = static_cast<std::uint16_t>(bits + 1);
    if ((bits & 0x7fff) < 0x7bff) {  // halfway to the next finite number, and a little to either side
      float const middle = (f + float_of_f16(next)) / 2;
      wrong += f16_of(middle) != (bits % 2 ? next : half);
      wrong += f16_of(std::nextafter(middle, f)) != half;
      wrong += f16_of(std::nextafter(middle, float_of_f16(next))) != next;
    }
  }
  CHECK(wrong == 0);
  CHECK(f16_of(65519.f) == 0x7bff);
  CHECK(f16_of(65520.f) == 0x7c00);
  CHECK(f16_of(-1e30f) == 0xfc00);
  CHECK(bf16_of(1.00390625f) == 0x3f80);  // a tie
  CHECK(bf16_of(1.01171875f) == 0x3f82);  // a tie
  CHECK(bf16_of(3.4e38f) == 0x7f80);
}

}  // namespace
