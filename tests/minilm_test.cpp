// SPDX-License-Identifier: MIT
// The real weights of all-MiniLM-L6-v2 against embeddings that owe nothing to this project (float64, by another
// library, on a padded batch): in many layouts on the Cpu device, and on Reference the split model bit for bit the
// whole one. Needs scripts/fetch_weights.
#include "catch.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/embed.hpp>
#include <dovetail/run/model_config.hpp>

namespace dt = dovetail;

namespace {

using Sequences = std::vector<std::vector<dt::i32>>;
using Vectors = std::vector<std::vector<double>>;

struct Loaded {
  std::filesystem::path directory = std::filesystem::path(DOVETAIL_MODELS_DIR) / "all-minilm-l6-v2";
  dt::Model model = dt::read_model(directory);
  dt::Checkpoint checkpoint{directory};
  Sequences sequences{};
  Vectors expected{};

  Loaded() {
    auto const golden = dt::load_json(std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures/minilm-embeddings.json");
    for (auto const& s : golden["sentences"]) {
      sequences.push_back(s["ids"].get<std::vector<dt::i32>>());
      expected.push_back(s["embedding"].get<std::vector<double>>());
    }
  }
};
Loaded const& loaded() {
  static Loaded const once;
  return once;
}

template <class MakeDevice>
Vectors embedded(std::string const& layout, Sequences const& sequences, MakeDevice const& device) {
  auto const& m = loaded();
  auto const planned = dt::plan_layout(dt::read_layout(layout), m.model);
  dt::Plan const plan = planned.view();
  dt::CheckpointSource const source(m.checkpoint, m.model, plan);
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  auto const result = dt::embed_sequences(world, plan, m.model, sequences, device, source);
  for (auto const& r : result.ranks) CHECK(r.counted.total() == r.predicted);
  return result.embeddings;
}
dt::Cpu cpu(int) { return dt::Cpu(); }
dt::Reference reference(int) { return {}; }

double largest_difference(Vectors const& got, Vectors const& expected) {
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  for (std::size_t s = 0; s < got.size(); ++s) {
    REQUIRE(got[s].size() == expected[s].size());
    for (std::size_t i = 0; i < got[s].size(); ++i) worst = std::max(worst, std::abs(got[s][i] - expected[s][i]));
  }
  return worst;
}

std::vector<std::string> layouts() {
  std::vector<std::string> all;
  for (int tp : {2, 3, 4, 5, 6, 12}) all.push_back("tp" + std::to_string(tp));
  for (char const* more :
       {"pp2", "pp4", "pp6", "dp2", "dp2 pp2 tp3", "pp2[tp3|tp2]", "tp2=2:1", "sp2", "sp3 tp2", "x2(embed)", "dp12",
        "tp2=1:0", "pp3=3,1,2", "dp3 tp2", "tp3 tp(sequence)@attention_norm,mlp_norm,embedding_norm"})
    all.push_back(more);
  return all;
}

}  // namespace

TEST_CASE("each sentence alone has the oracle's embedding, on Cpu and on Reference") {
  auto const& m = loaded();
  REQUIRE(m.sequences.size() == 10);
  for (std::size_t s = 0; s < m.sequences.size(); ++s) {
    INFO("sentence " << s);
    CHECK(largest_difference(embedded("single", {m.sequences[s]}, cpu), {m.expected[s]}) < 1e-5);
    CHECK(largest_difference(embedded("single", {m.sequences[s]}, reference), {m.expected[s]}) < 1e-5);
  }
}

TEST_CASE("one ragged batch of all sentences has the oracle's embeddings in every layout on Cpu") {
  for (auto const& layout : layouts()) {
    INFO("layout " << layout);
    CHECK(largest_difference(embedded(layout, loaded().sequences, cpu), loaded().expected) < 1e-5);
  }
}

TEST_CASE("the whole encoder, split in many ways, is the unsplit one bit for bit on Reference") {
  auto const whole = embedded("single", loaded().sequences, reference);
  CHECK(largest_difference(whole, loaded().expected) < 1e-5);
  for (auto const& v : whole) {
    double square = 0;
    for (double x : v) square += x * x;
    CHECK(std::abs(square - 1) < 1e-6);
  }
  for (auto const& layout : layouts()) {
    INFO("layout " << layout);
    CHECK(embedded(layout, loaded().sequences, reference) == whole);
  }
}
