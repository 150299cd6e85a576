// SPDX-License-Identifier: MIT
// Tiny random checkpoints of real families, with logits and greedy tokens computed in float64 by another library: the
// reader, the names, every layer and both devices against an oracle that owes nothing to this project.
#include "catch.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/plan/memory.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/generate.hpp>
#include <dovetail/run/model_config.hpp>
#include <filesystem>

#include "sanitizers.hpp"

namespace dt = dovetail;

namespace {

/// Refused layouts are left out: what is refused, and why, is tested elsewhere.
template <class MakeDevice>
bool check(std::filesystem::path const& directory, std::string const& layout, double tolerance,
           MakeDevice const& device) {
  INFO(directory.filename().string() << ", layout " << layout);
  dt::Model const model = dt::read_model(directory);
  dt::Checkpoint const checkpoint{directory};
  auto const golden = dt::load_json(directory / "golden.json");
  auto const planned = dt::try_layout(dt::read_layout(layout), model.layers, model.plan);
  dt::Plan const plan = planned.view();
  if (!plan.ok()) return false;
  CHECK(dt::total_parameters(plan) == golden["parameters"].get<dt::i64>());
  dt::CheckpointSource const source(checkpoint, model, plan);
  dt::GenerateRequest request;
  request.max_new_tokens = 8, request.all_logits = true;
  for (auto const& p : golden["prompts"]) request.prompts.push_back(p["prompt_ids"].get<std::vector<dt::i32>>());
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  auto const result = dt::generate(world, plan, model, request, device, source);
  for (auto const& r : result.ranks) CHECK(r.counted.total() == r.predicted);
  for (std::size_t s = 0; s < request.prompts.size(); ++s) {
    auto const& p = golden["prompts"][s];
    auto const logits = p["logits"].get<std::vector<std::vector<double>>>();
    std::size_t const first = request.prompts[s].size() - logits.size();  // all positions, or the last
    double worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i)
      for (std::size_t v = 0; v < logits[i].size(); ++v)
        worst = std::max(worst, std::abs(result.sequences[s].logits[first + i][v] - logits[i][v]));
    CHECK(worst < tolerance);
    auto const greedy = p["greedy_ids"].get<std::vector<dt::i32>>();
    auto const margins = p["greedy_margins"].get<std::vector<double>>();
    REQUIRE(result.sequences[s].tokens.size() == greedy.size());
    for (std::size_t i = 0; i < greedy.size() && margins[i] >= 1e-3; ++i)
      CHECK(result.sequences[s].tokens[i] == greedy[i]);
  }
  return true;
}

/// Checkpoints with answers: those of the tests, and those of a folder that the environment names.
std::vector<std::filesystem::path> checkpoints() {
  std::vector<std::filesystem::path> found, folders{std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures" / "tiny"};
  if (char const* more = std::getenv("DOVETAIL_TINY_CHECKPOINTS")) folders.push_back(more);
  for (auto const& folder : folders)
    for (auto const& entry : std::filesystem::directory_iterator(folder))
      if (std::filesystem::exists(entry.path() / "golden.json")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// Every tp up to 9, pp up to 4 and dp up to 2 on at most 12 ranks, and some that mix otherwise; the latter alone where
/// a sanitizer makes a run many times slower.
std::vector<std::string> layouts() {
  std::vector<std::string> all{"single",
                               "sp2",
                               "dp3 pp2",
                               "tp4 tp(sequence)@attention_norm",
                               "pp2[tp3|tp2]",
                               "tp2=2:1",
                               "tp2 tp(sequence)@mlp_norm,final_norm",
                               "tp3=1:0:2"};
  for (int dp = 1; dp <= 2 && !test::sanitized; ++dp)
    for (int pp = 1; pp <= 4; ++pp)
      for (int tp = 1; tp <= 9 && dp * pp * tp <= 12; ++tp)
        all.push_back("dp" + std::to_string(dp) + " pp" + std::to_string(pp) + " tp" + std::to_string(tp));
  return all;
}

}  // namespace

TEST_CASE("tiny checkpoints of real families give the oracle's logits and tokens in every layout") {
  for (auto const& directory : checkpoints()) {
    int run = 0;
    for (auto const& layout : layouts()) {
      bool const legal = check(directory, layout, 2e-5, [](int) { return dt::Reference(); });
      CHECK(check(directory, layout, 1e-4, [](int) { return dt::Cpu(); }) == legal);
      run += legal;
    }
    INFO(directory);
    CHECK(run >= (test::sanitized ? 4 : 20));
  }
  CHECK(checkpoints().size() >= 9);
}
