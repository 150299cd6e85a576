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

namespace dt = dovetail;

namespace {

template <class MakeDevice>
void check(std::string const& name, std::string const& layout, double tolerance, MakeDevice const& device) {
  INFO(name << ", layout " << layout);
  auto const directory = std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures" / "tiny" / name;
  dt::Model const model = dt::read_model(directory);
  dt::Checkpoint const checkpoint{directory};
  auto const golden = dt::load_json(directory / "golden.json");
  auto const planned = dt::plan_layout(dt::read_layout(layout), model);
  dt::Plan const plan = planned.view();
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
}

}  // namespace

TEST_CASE("tiny checkpoints of real families give the oracle's logits and tokens in every layout") {
  struct Family {
    char const* name;
    int heads, layers;
  };
  for (auto const& [name, heads, layers] : std::initializer_list<Family>{{"llama-9-3", 9, 3},
                                                                         {"llama-untied-rope3", 9, 3},
                                                                         {"qwen2-14-2", 14, 3},
                                                                         {"qwen3-head-norm", 4, 3},
                                                                         {"gpt2", 6, 3},
                                                                         {"falcon-7-1", 7, 3},
                                                                         {"gemma2", 4, 4},
                                                                         {"olmo2-full-norm", 9, 3},
                                                                         {"phi3-fused", 6, 3}}) {
    std::vector<std::string> layouts{"single",       "pp2",     "pp3 tp2", "dp2",
                                     "dp2 pp2 tp2",  "dp3 pp2", "sp2",     "tp4 tp(sequence)@attention_norm",
                                     "pp2[tp3|tp2]", "tp2=2:1"};
    for (int tp = 2; tp <= std::min(heads, 9); ++tp) layouts.push_back("tp" + std::to_string(tp));
    if (layers > 3) layouts.push_back("pp4");
    for (auto const& layout : layouts) {
      check(name, layout, 2e-5, [](int) { return dt::Reference(); });
      check(name, layout, 1e-4, [](int) { return dt::Cpu(); });
    }
  }
}
