// SPDX-License-Identifier: MIT
// Encoders with random weights and sizes that split badly, in stated and drawn layouts: the embeddings of ragged
// batches are those of the unsplit model bit for bit, traffic and memory are as predicted; and one clear error for each
// request that no run could serve, on every rank the same where one of them fails.
#include "catch.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/models/bert.hpp>
#include <dovetail/plan/arena.hpp>
#include <dovetail/plan/memory.hpp>
#include <dovetail/run/embed.hpp>
#include <mutex>

#include "draw_layout.hpp"
#include "tiny_blocks.hpp"

namespace dt = dovetail;
using test::Random;

namespace {

using Sequences = std::vector<std::vector<dt::i32>>;

dt::Model encoder(dt::BertConfig const& c) {
  dt::Model m;
  m.family = "bert", m.layers = c.layers, m.vocab_size = c.vocab_size, m.context_limit = c.position_count;
  m.embeds = true;
  m.plan = [c](dt::Builder& b, dt::Value ids) { return dt::bert(b, ids, c); };
  return m;
}
/// embed, layers, heads, ffn, vocabulary, positions, types.
std::vector<dt::Model> const& encoders() {
  static std::vector<dt::Model> const all = {encoder({20, 3, 5, 17, 41, 7, 2}),
                                             encoder({18, 4, 9, 22, 29, 12, 1, 1e-5, &dt::gelu_tanh}),
                                             encoder({12, 1, 2, 5, 13, 9, 3})};
  return all;
}

/// 1 to 5 sequences of 1 to 7 tokens.
Sequences ragged(dt::Model const& model, std::uint64_t seed) {
  Random random(seed);
  Sequences all(static_cast<std::size_t>(random.between(1, 5)));
  for (auto& ids : all)
    for (dt::i32 n = random.between(1, 7); n > 0; --n)
      ids.push_back(random.between(0, static_cast<dt::i32>(model.vocab_size) - 1));
  return all;
}

dt::EmbedResult embedded(dt::Model const& model, dt::Plan const& plan, Sequences const& sequences) {
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  return dt::embed_sequences(
      world, plan, model, sequences, [](int) { return dt::Reference(); }, tiny::Weights{7});
}
dt::EmbedResult embedded(dt::Model const& model, std::string const& layout, Sequences const& sequences) {
  auto const planned = dt::plan_layout(dt::read_layout(layout), model);
  return embedded(model, planned.view(), sequences);
}

void check_costs(dt::Plan const& plan, dt::EmbedResult const& result, Sequences const& sequences) {
  std::vector<dt::SequenceRun> shape;
  for (auto const& ids : sequences) shape.push_back({0, static_cast<dt::i64>(ids.size()), 0});
  dt::RunShape const run{shape.data(), static_cast<dt::i32>(shape.size())};
  auto const bytes = dt::RankMemory<dt::Reference>::storage_bytes();
  REQUIRE(static_cast<dt::i64>(result.ranks.size()) == plan.ranks());
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    auto const& report = result.ranks[r];
    auto const rank = static_cast<dt::i64>(r);
    CHECK(report.counted.total() == report.predicted);
    CHECK(report.weight_bytes == dt::weight_bytes(plan, rank, bytes));
    CHECK(report.arena_bytes == dt::arena_of(plan, rank, run, bytes).bytes);
    CHECK(report.state_bytes == 0);
  }
}

/// Whether the layout is legal; where it is, it must change nothing.
bool check(dt::Model const& model, std::string const& layout, Sequences const& sequences,
           std::vector<std::vector<double>> const& whole) {
  INFO("layout " << layout);
  auto const planned = dt::try_layout(dt::read_layout(layout), model.layers, model.plan);
  dt::Plan const plan = planned.view();
  if (!plan.ok() || plan.ranks() > 24) return false;
  auto const result = embedded(model, plan, sequences);
  CHECK(result.embeddings == whole);
  check_costs(plan, result, sequences);
  return true;
}

std::string message_of(auto const& f) {
  try {
    f();
  } catch (std::exception const& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an encoder split in many ways gives the unsplit one's embeddings bit for bit") {
  int run = 0;
  for (std::size_t m = 0; m < encoders().size(); ++m) {
    auto const& model = encoders()[m];
    auto const sequences = ragged(model, m);
    auto const whole = embedded(model, "single", sequences).embeddings;
    for (char const* layout : {"tp2",
                               "tp3",
                               "tp4",
                               "tp5",
                               "tp9",
                               "pp2",
                               "pp3",
                               "pp4",
                               "dp2",
                               "dp3",
                               "dp7",
                               "dp2=3:1",
                               "sp2",
                               "sp3 tp2",
                               "sp9",
                               "dp2 pp2 tp3",
                               "pp2[tp3|tp2]",
                               "pp2[dp2|tp2]",
                               "pp2[sp2|dp3]",
                               "tp2=2:1",
                               "tp2=1:0",
                               "tp2=0:1",
                               "x2(embed)",
                               "x3(embed) tp2",
                               "a2(heads) b2(ffn)",
                               "pp2=0,3 tp2",
                               "tp2 tp(sequence)@attention_norm,mlp_norm",
                               "dp2 tp2 dp(heads)"})
      run += check(model, layout, sequences, whole);
  }
  CHECK(run >= 60);
}

TEST_CASE("drawn layouts and batches change nothing either") {
  int run = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const& model = encoders()[seed % encoders().size()];
    Random random(seed);
    draw::Drawing drawing(random, model.layers,
                          {"attention", "mlp", "attention_norm", "mlp_norm", "embedding_norm", "positions", "q", "up"});
    auto const sequences = ragged(model, 100 + seed);
    INFO("seed " << seed);
    run += check(model, drawing.text(), sequences, embedded(model, "single", sequences).embeddings);
  }
  CHECK(run >= 80);
}

TEST_CASE("embeddings have length 1, do not depend on the batch, and on every token") {
  auto const& model = encoders()[0];
  Sequences const sequences = {{5, 17, 3, 40}, {9},           {0, 1, 2, 3, 4, 5, 6}, {5, 17, 3, 40},
                               {6, 17, 3, 40}, {5, 17, 3, 39}};
  auto const result = embedded(model, "tp2", sequences);
  CHECK(result.tokens == 4 + 1 + 7 + 4 + 4 + 4);
  auto const& e = result.embeddings;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    double square = 0;
    for (double v : e[s]) square += v * v;
    CHECK(std::abs(square - 1) < 1e-5);
    CHECK(embedded(model, "single", {sequences[s]}).embeddings[0] == e[s]);
  }
  CHECK(e[0] == e[3]);
  CHECK(e[0] != e[4]);
  CHECK(e[0] != e[5]);
}

TEST_CASE("a world embeds again, and counts anew") {
  auto const& model = encoders()[0];
  auto const planned = dt::plan_layout(dt::read_layout("pp2 tp2"), model);
  dt::Plan const plan = planned.view();
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  for (Sequences const& sequences : {Sequences{{1, 2, 3}}, Sequences{{4}, {5, 6, 7, 8}}}) {
    auto const result = dt::embed_sequences(
        world, plan, model, sequences, [](int) { return dt::Reference(); }, tiny::Weights{7});
    CHECK(result.embeddings == embedded(model, "single", sequences).embeddings);
    check_costs(plan, result, sequences);
  }
}

TEST_CASE("what cannot be embedded is refused with what, where and what would work") {
  using Catch::Matchers::Contains;
  dt::Model const model = encoders()[0];
  auto const refusal = [&](Sequences const& sequences) {
    return message_of([&] { embedded(model, "tp2", sequences); });
  };
  CHECK_THAT(refusal({}), Contains("there is no sequence to embed"));
  CHECK_THAT(refusal({{1}, {}}), Contains("sequence 1 is empty"));
  CHECK_THAT(refusal({{1, 41}}), Contains("sequence 0: token 41 at position 1") && Contains("0 to 40"));
  CHECK_THAT(refusal({{1}, {-1}}), Contains("sequence 1: token -1 at position 0"));
  CHECK_THAT(refusal({std::vector<dt::i32>(8, 1)}), Contains("8 tokens") && Contains("positions for 7"));

  dt::Model decoder = model;
  decoder.embeds = false, decoder.family = "llama";
  CHECK_THAT(message_of([&] { embedded(decoder, "tp2", {{1}}); }), Contains("llama is no encoder"));
  dt::Model pools_nothing = model;
  pools_nothing.plan = [](dt::Builder& b, dt::Value ids) {
    return dt::token_embedding(b, ids, dt::EmbeddingConfig{41, 20});
  };
  CHECK_THAT(message_of([&] { embedded(pools_nothing, "single", {{1}}); }),
             Contains("no vector for each sequence") && Contains("3 dims"));
  auto const planned = dt::plan_layout(dt::read_layout("tp2"), model);
  CHECK_THAT(message_of([&] {
               dt::ThreadWorld world(3);
               dt::embed_sequences(
                   world, planned.view(), model, Sequences{{1}}, [](int) { return dt::Reference(); }, tiny::Weights{7});
             }),
             Contains("the plan is for 2 ranks, but the world has 3"));
  dt::Model unlimited = model;
  unlimited.context_limit = 0;  // then it is the table of positions that ends
  CHECK_THAT(message_of([&] { embedded(unlimited, "tp2", {std::vector<dt::i32>(8, 1)}); }),
             Contains("learned 7 positions"));
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
      auto& mine = said[static_cast<std::size_t>(comm.rank())];
      mine = message_of([&] { f(comm); });
      if (!mine.empty()) throw std::runtime_error(mine);
    });
  }
};

/// Fails where sequence 1 comes by.
void choke(dt::KernelCall<dt::Reference> const& call) {
  for (auto const& s : call.operands[0].segments)
    if (s.sequence == 1) throw std::runtime_error("sequence 1 is too much");
  for (auto const& row : dt::Reference::kernels())
    if (row.op == &dt::mean_rows) row.run(call);
}

}  // namespace

TEST_CASE("a rank that fails ends all of them with its words, also replicas that exchange nothing") {
  auto const& model = encoders()[0];
  dt::KernelRow<dt::Reference> const kernels[] = {{&dt::mean_rows, &choke}};
  for (char const* layout : {"single", "dp2", "dp5", "tp3", "pp3", "dp2 pp2 tp2", "sp2"}) {
    INFO("layout " << layout);
    auto const planned = dt::plan_layout(dt::read_layout(layout), model);
    ListeningWorld world(planned.view().ranks());
    CHECK_THROWS_WITH(dt::embed_sequences(
                          world, planned.view(), model, Sequences{{1, 2}, {3, 4}}, [](int) { return dt::Reference(); },
                          tiny::Weights{7}, std::span<dt::KernelRow<dt::Reference> const>(kernels)),
                      Catch::Contains("sequence 1 is too much"));
    for (auto const& s : world.said) CHECK_THAT(s, Catch::Contains("sequence 1 is too much"));
  }
}

TEST_CASE(
    "a weight that is no number is an error that names where it shows: on Reference the weight, on Cpu the result") {
  auto const& model = encoders()[0];
  auto const broken = [](std::string const& name, dt::WeightShape const& shape, auto room) {
    tiny::Weights{7}(name, shape, room);
    if (name == "layers.2.mlp_norm.bias") room[0] = std::numeric_limits<float>::quiet_NaN();
  };
  for (char const* layout : {"single", "tp3", "pp2", "dp2"}) {
    INFO("layout " << layout);
    auto const planned = dt::plan_layout(dt::read_layout(layout), model);
    auto const message = [&](auto const& device) {
      dt::ThreadWorld world(static_cast<int>(planned.view().ranks()));
      return message_of([&] { dt::embed_sequences(world, planned.view(), model, Sequences{{1, 2}}, device, broken); });
    };
    CHECK_THAT(message([](int) { return dt::Reference(); }), Catch::Contains("layers.2.mlp_norm.bias"));
    CHECK_THAT(message([](int) { return dt::Cpu(); }), Catch::Contains("sequence 0: element 0 of its embedding"));
  }
}
