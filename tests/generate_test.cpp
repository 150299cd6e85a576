// SPDX-License-Identifier: MIT
// The library's generation on a tiny checkpoint: sampling that does not depend on the layout, endings, callbacks,
// cancellation, limits, several worlds at once, weights from memory, and one clear error for each request that no run
// could serve.
#include "catch.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/generate.hpp>
#include <dovetail/run/model_config.hpp>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace dt = dovetail;

namespace {

struct Tiny {
  std::filesystem::path directory = std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures" / "tiny" / "llama-9-3";
  dt::Model model = dt::read_model(directory);
  dt::Checkpoint checkpoint{directory};
};
Tiny const& tiny() {
  static Tiny const once;
  return once;
}

template <class Source>
dt::GenerateResult run_with(std::string const& layout, dt::GenerateRequest const& request, dt::Plan const& plan,
                            Source const& source) {
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  auto result = dt::generate(
      world, plan, tiny().model, request, [](int) { return dt::Reference(); }, source);
  INFO("layout " << layout);
  for (auto const& r : result.ranks) CHECK(r.counted.total() == r.predicted);
  return result;
}
dt::GenerateResult run(std::string const& layout, dt::GenerateRequest const& request) {
  auto const planned = dt::plan_layout(dt::read_layout(layout), tiny().model);
  dt::Plan const plan = planned.view();
  return run_with(layout, request, plan, dt::CheckpointSource(tiny().checkpoint, tiny().model, plan));
}

dt::GenerateRequest request_of(std::vector<std::vector<dt::i32>> prompts, dt::i64 new_tokens) {
  dt::GenerateRequest r;
  r.prompts = std::move(prompts);
  r.max_new_tokens = new_tokens;
  return r;
}

std::vector<std::vector<dt::i32>> tokens_of(dt::GenerateResult const& r) {
  std::vector<std::vector<dt::i32>> all;
  for (auto const& s : r.sequences) all.push_back(s.tokens);
  return all;
}

char const* const layouts[] = {"tp2",
                               "tp5",
                               "tp9",
                               "pp3",
                               "dp2",
                               "dp4",
                               "dp2 pp2 tp3",
                               "pp2[tp3|tp1]",
                               "pp2[dp2|tp2]",
                               "tp2=2:1",
                               "tp2=0:1",
                               "sp2",
                               "a2(heads,vocab) b2(vocab)",
                               "dp2 tp3 dp(heads)"};

std::string message_of(dt::GenerateRequest const& request, std::string const& layout = "tp2") {
  try {
    run(layout, request);
  } catch (std::exception const& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sampling gives the same tokens in every layout, and a seed its own") {
  std::vector<dt::Sampling> const settings = {{0.8, 0, 1, 1}, {1.5, 7, 1, 2}, {1, 0, 0.6, 3}, {0.9, 11, 0.8, 4}};
  std::set<std::vector<std::vector<dt::i32>>> seen;
  for (auto const& sampling : settings) {
    auto request = request_of({{5, 17, 3, 44}, {60, 1}, {9}}, 10);
    request.sampling = sampling;
    auto const whole = tokens_of(run("single", request));
    CHECK(whole == tokens_of(run("single", request)));
    for (auto const* layout : layouts) {
      INFO("layout " << layout << ", seed " << sampling.seed);
      CHECK(tokens_of(run(layout, request)) == whole);
    }
    seen.insert(whole);
  }
  CHECK(seen.size() == settings.size());
}

TEST_CASE("top-k 1 and a tiny top-p are greedy; top-k leaves nothing but the k best") {
  auto request = request_of({{5, 17, 3, 44}, {60, 1}}, 8);
  auto const greedy = tokens_of(run("tp3", request));
  request.sampling = {1.3, 1, 1, 9};
  CHECK(tokens_of(run("tp3", request)) == greedy);
  request.sampling = {1.3, 0, 1e-9, 9};
  CHECK(tokens_of(run("tp3", request)) == greedy);

  request.prompts.resize(1), request.max_new_tokens = 1, request.all_logits = true;
  std::vector<double> const logits = run("single", request).sequences[0].logits[3];
  std::vector<std::size_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
  std::set<dt::i32> drawn;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    request.sampling = {5, 4, 1, seed};
    drawn.insert(run("tp2", request).sequences[0].tokens[0]);
  }
  std::set<dt::i32> best;
  for (std::size_t i = 0; i < 4; ++i) best.insert(static_cast<dt::i32>(order[i]));
  CHECK(drawn == best);
}

TEST_CASE("top-p keeps the fewest best tokens that make up the probability") {
  auto request = request_of({{5, 17, 3, 44}}, 1);
  request.all_logits = true;
  std::vector<double> logits = run("single", request).sequences[0].logits[3];
  double const temperature = 1.7, p = 0.5;
  double total = 0;
  for (double v : logits) total += std::exp(v / temperature);
  std::vector<std::pair<double, dt::i32>> order;
  for (std::size_t i = 0; i < logits.size(); ++i)
    order.push_back({-std::exp(logits[i] / temperature) / total, static_cast<dt::i32>(i)});
  std::sort(order.begin(), order.end());
  std::set<dt::i32> expected, drawn;
  double sum = 0;
  for (auto const& [mass, id] : order) {
    if (sum >= p) break;
    expected.insert(id), sum -= mass;
  }
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    request.sampling = {temperature, 0, p, seed};
    drawn.insert(run("tp3", request).sequences[0].tokens[0]);
  }
  for (auto const id : drawn) CHECK(expected.count(id) == 1);
  CHECK(drawn.size() * 2 > expected.size());
}

TEST_CASE("a sequence ends at any of its end tokens, at its length, at the context limit; others go on") {
  auto request = request_of({{5, 17, 3, 44}, {60, 1}, {9}}, 12);
  auto const free = run("single", request);
  dt::i32 const end = free.sequences[0].tokens[3];
  request.end_tokens = {60, end};
  for (auto const* layout : layouts) {
    INFO("layout " << layout);
    auto const ended = run(layout, request);
    for (std::size_t s = 0; s < 3; ++s) {
      auto expected = free.sequences[s].tokens;
      auto const stop = std::find_if(expected.begin(), expected.end(), [&](auto t) { return t == end || t == 60; });
      bool const stops = stop != expected.end();
      if (stops) expected.erase(stop + 1, expected.end());
      CHECK(ended.sequences[s].tokens == expected);
      CHECK(ended.sequences[s].ended == (stops ? dt::Ended::end_token : dt::Ended::length));
    }
  }
  request.end_tokens.clear();
  request.max_new_tokens = 1000;  // the model's limit is 64
  auto const longest = run("tp2", request);
  CHECK(longest.sequences[0].ended == dt::Ended::context);
  CHECK(longest.sequences[0].tokens.size() == 64 - 4 + 1);
  request.capacity = 5000;  // room is not context
  CHECK(run("pp2", request).sequences[0].tokens == longest.sequences[0].tokens);
  request.capacity = 0, request.max_new_tokens = dt::i64{1} << 36;
  CHECK(run("tp2", request).sequences[0].ended == dt::Ended::context);
  request.max_new_tokens = 0;
  CHECK(run("pp2", request).new_tokens == 0);
}

TEST_CASE("every token is told once, by one rank, and a callback or a flag can end a text") {
  for (auto const* layout : layouts) {
    INFO("layout " << layout);
    auto request = request_of({{5, 17, 3, 44}, {60, 1}, {9}}, 6);
    std::mutex mutex;
    std::map<dt::i64, std::vector<dt::i32>> told;
    request.on_token = [&](dt::i64 sequence, dt::i32 token) {
      std::scoped_lock const lock(mutex);
      told[sequence].push_back(token);
      return !(sequence == 1 && told[1].size() == 2);
    };
    auto const result = run(layout, request);
    for (std::size_t s = 0; s < 3; ++s) CHECK(told[static_cast<dt::i64>(s)] == result.sequences[s].tokens);
    CHECK(result.sequences[1].tokens.size() == 2);
    CHECK(result.sequences[1].ended == dt::Ended::stopped);
    CHECK(result.sequences[0].tokens.size() == 6);

    std::atomic<bool> cancel{false};
    request.cancel = &cancel;
    request.on_token = [&](dt::i64, dt::i32) {
      cancel = true;
      return true;
    };
    auto const cancelled = run(layout, request);
    dt::i64 const most = 3 * 2;  // replicas may be one token further
    CHECK(cancelled.new_tokens <= most);
    bool any = false;
    for (auto const& s : cancelled.sequences) any = any || s.ended == dt::Ended::cancelled;
    CHECK(any);
  }
}

TEST_CASE("several worlds generate at once in one process") {
  auto const request = request_of({{5, 17, 3, 44}, {60, 1}}, 6);
  auto const alone = tokens_of(run("single", request));
  std::vector<std::vector<std::vector<dt::i32>>> results(3);
  std::vector<std::thread> threads;
  char const* const each[] = {"tp3", "pp2", "dp2"};
  for (std::size_t i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      auto const planned = dt::plan_layout(dt::read_layout(each[i]), tiny().model);
      dt::Plan const plan = planned.view();
      dt::ThreadWorld world(static_cast<int>(plan.ranks()));
      dt::CheckpointSource const source(tiny().checkpoint, tiny().model, plan);
      results[i] = tokens_of(dt::generate(
          world, plan, tiny().model, request, [](int) { return dt::Reference(); }, source));
    });
  for (auto& t : threads) t.join();
  for (auto const& r : results) CHECK(r == alone);
}

TEST_CASE("weights may come from memory") {
  std::vector<std::byte> bytes;
  {
    dt::MappedFile const file(tiny().directory / "model.safetensors");
    bytes.assign(file.bytes().begin(), file.bytes().end());
  }
  dt::Checkpoint const memory(dt::SafetensorsFile::from_memory(bytes, "memory"));
  auto const planned = dt::plan_layout(dt::read_layout("tp2"), tiny().model);
  dt::Plan const plan = planned.view();
  auto const request = request_of({{5, 17, 3, 44}}, 5);
  CHECK(tokens_of(run_with("tp2", request, plan, dt::CheckpointSource(memory, tiny().model, plan))) ==
        tokens_of(run("single", request)));
}

TEST_CASE("what cannot be served is refused with what, where and what would work") {
  using Catch::Matchers::Contains;
  CHECK_THAT(message_of(request_of({}, 3)), Contains("no prompt"));
  CHECK_THAT(message_of(request_of({{1}, {}}, 3)), Contains("prompt 1 is empty"));
  CHECK_THAT(message_of(request_of({{1, 61}}, 3)), Contains("prompt 0: token 61 at position 1") && Contains("0 to 60"));
  CHECK_THAT(message_of(request_of({{1, -1}}, 3)), Contains("token -1 at position 1"));
  CHECK_THAT(message_of(request_of({std::vector<dt::i32>(65, 1)}, 3)), Contains("65 tokens") && Contains("64"));
  auto request = request_of({{1, 2, 3}}, 3);
  request.capacity = 2;
  CHECK_THAT(message_of(request), Contains("capacity of 2"));
  request.capacity = 0, request.max_new_tokens = (std::numeric_limits<dt::i64>::max)();
  CHECK_THAT(message_of(request), Contains("max-new-tokens is 9223372036854775807"));
  request.max_new_tokens = 3, request.sampling.top_p = 0;
  CHECK_THAT(message_of(request), Contains("top-p is 0"));
  request.sampling = {-1, 0, 1, 0};
  CHECK_THAT(message_of(request), Contains("temperature is -1"));
  request.sampling = {1, -2, 1, 0};
  CHECK_THAT(message_of(request), Contains("top-k is -2"));
}

namespace {

/// A world that keeps what each rank ended with.
struct ListeningWorld {
  dt::ThreadWorld inner;
  std::vector<std::string> said;

  explicit ListeningWorld(dt::i64 ranks)
      : inner(static_cast<int>(ranks)), said(static_cast<std::size_t>(ranks), "fine") {}
  int size() const { return inner.size(); }
  void run(auto&& f) {
    inner.run([&](dt::ThreadCommunicator& comm) {
      try {
        f(comm);
      } catch (std::exception const& e) {
        said[static_cast<std::size_t>(comm.rank())] = e.what();
        throw;
      }
    });
  }
};

}  // namespace

TEST_CASE("a callback that throws ends every rank with its words, also those without a sequence") {
  for (auto const* layout : {"dp2", "dp3", "pp2=3,0 tp2", "dp5", "dp3 pp2", "dp7", "dp2 pp2 tp2", "dp8"}) {
    auto const planned = dt::plan_layout(dt::read_layout(layout), tiny().model);
    dt::Plan const plan = planned.view();
    auto request = request_of({{5, 17, 3, 44}}, 12);
    std::atomic<int> told{0};
    request.on_token = [&](dt::i64, dt::i32) {
      if (++told == 4) throw std::runtime_error("the reader left");
      return true;
    };
    ListeningWorld world(plan.ranks());
    INFO("layout " << layout);
    CHECK_THROWS_WITH(dt::generate(
                          world, plan, tiny().model, request, [](int) { return dt::Reference(); },
                          dt::CheckpointSource(tiny().checkpoint, tiny().model, plan)),
                      "the reader left");
    for (auto const& s : world.said) CHECK_THAT(s, Catch::Contains("the reader left"));
  }
}

TEST_CASE("NaN is an error that names where it is, in every layout: a weight on Reference, the logits on Cpu") {
  for (auto const* layout : {"single", "tp3", "pp2", "dp2"}) {
    auto const planned = dt::plan_layout(dt::read_layout(layout), tiny().model);
    dt::Plan const plan = planned.view();
    dt::CheckpointSource const source(tiny().checkpoint, tiny().model, plan);
    auto const broken = [&](std::string const& name, dt::WeightShape const& shape, auto room) {
      source(name, shape, room);
      if (name == "final_norm.weight") room[0] = std::numeric_limits<float>::quiet_NaN();
    };
    auto const request = request_of({{5, 17, 3, 44}, {7}}, 3);
    auto const message = [&](auto const& device) -> std::string {
      dt::ThreadWorld world(static_cast<int>(plan.ranks()));
      try {
        dt::generate(world, plan, tiny().model, request, device, broken);
      } catch (std::exception const& e) {
        return e.what();
      }
      return "";
    };
    using Catch::Matchers::Contains;
    INFO(layout);
    CHECK_THAT(message([](int) { return dt::Reference(); }),
               Contains("rank ") && Contains("stage ") && Contains("final_norm.weight"));
    CHECK_THAT(message([](int) { return dt::Cpu(); }),
               Contains("rank ") && Contains("stage ") && Contains("choose") && Contains("NaN"));
  }
}
