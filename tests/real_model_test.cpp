// SPDX-License-Identifier: MIT
// The real weights of SmolLM2-135M against answers that owe nothing to this project (float64, by another library):
// greedy tokens and logits on the Cpu device in many layouts, and on Reference the split model bit for bit the whole
// one. Needs scripts/fetch_weights.
#include "catch.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/generate.hpp>
#include <dovetail/run/model_config.hpp>

namespace dt = dovetail;

namespace {

struct Loaded {
  std::filesystem::path directory = std::filesystem::path(DOVETAIL_MODELS_DIR) / "smollm2-135m";
  dt::Model model = dt::read_model(directory);
  dt::Checkpoint checkpoint{directory};
  dt::Json golden = dt::load_json(std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures" / "smollm2-135m-greedy.json");
};
Loaded const& loaded() {
  static Loaded const once;
  return once;
}

template <class MakeDevice>
dt::GenerateResult generated(std::string const& layout, dt::GenerateRequest const& request, MakeDevice const& device) {
  auto const& m = loaded();
  auto const planned = dt::plan_layout(dt::read_layout(layout), m.model);
  dt::Plan const plan = planned.view();
  dt::CheckpointSource const source(m.checkpoint, m.model, plan);
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  auto result = dt::generate(world, plan, m.model, request, device, source);
  for (auto const& r : result.ranks) CHECK(r.counted.total() == r.predicted);
  return result;
}

/// All golden prompts as one ragged batch.
dt::GenerateRequest golden_request(dt::i64 new_tokens) {
  dt::GenerateRequest request;
  for (auto const& p : loaded().golden["prompts"])
    request.prompts.push_back(p["prompt_ids"].get<std::vector<dt::i32>>());
  request.max_new_tokens = new_tokens;
  return request;
}

void check_logits(dt::GenerateResult const& result, double tolerance) {
  auto const& prompts = loaded().golden["prompts"];
  for (std::size_t s = 0; s < prompts.size(); ++s) {
    auto const& last = result.sequences[s].logits[prompts[s]["prompt_ids"].size() - 1];
    double sum = 0;
    for (double v : last) sum += v;
    CHECK(std::abs(sum - prompts[s]["last_logits_sum"].get<double>()) < tolerance * static_cast<double>(last.size()));
    for (auto const& [id, value] : prompts[s]["last_logits_top10"].get<std::vector<std::pair<std::size_t, double>>>())
      CHECK(std::abs(last[id] - value) < tolerance);
  }
}

/// Tokens agree up to the first step whose margin leaves the choice to rounding.
void check_tokens(dt::GenerateResult const& result) {
  auto const& prompts = loaded().golden["prompts"];
  for (std::size_t s = 0; s < prompts.size(); ++s) {
    auto const greedy = prompts[s]["greedy_ids"].get<std::vector<dt::i32>>();
    auto const margins = prompts[s]["greedy_margins"].get<std::vector<double>>();
    REQUIRE(result.sequences[s].tokens.size() == greedy.size());
    for (std::size_t i = 0; i < greedy.size() && margins[i] >= 1e-3; ++i) {
      INFO("prompt " << s << ", token " << i);
      CHECK(result.sequences[s].tokens[i] == greedy[i]);
    }
  }
}

}  // namespace

TEST_CASE("the greedy tokens and logits of the oracle, in every layout, on Cpu") {
  auto request = golden_request(32);
  request.all_logits = true;
  for (char const* layout :
       {"single", "tp2", "tp3", "tp4", "tp5", "tp9", "pp2", "pp3", "pp7", "dp2", "pp2 tp2", "dp2 pp2 tp3",
        "pp2[tp3|tp1]", "tp2=2:1", "tp3 tp(sequence)@attention_norm,mlp_norm,final_norm"}) {
    INFO("layout " << layout);
    auto const result = generated(layout, request, [](int) { return dt::Cpu(); });
    check_tokens(result);
    check_logits(result, 2e-3);
  }
}

TEST_CASE("the whole real model, split in many ways, is the unsplit one bit for bit on Reference") {
  dt::GenerateRequest request;
  request.prompts = {loaded().golden["prompts"][0]["prompt_ids"].get<std::vector<dt::i32>>()};
  REQUIRE(request.prompts[0].size() == 5);
  request.max_new_tokens = 3, request.all_logits = true;
  auto const device = [](int) { return dt::Reference(); };
  auto const whole = generated("single", request, device);
  auto const& last = whole.sequences[0].logits[4];
  for (auto const& [id, value] :
       loaded().golden["prompts"][0]["last_logits_top10"].get<std::vector<std::pair<std::size_t, double>>>())
    CHECK(std::abs(last[id] - value) < 1e-4);

  std::vector<std::string> layouts;
  for (int tp = 2; tp <= 9; ++tp) layouts.push_back("tp" + std::to_string(tp));
  for (int pp : {2, 3, 4, 7}) layouts.push_back("pp" + std::to_string(pp));
  for (int tp : {2, 3, 4, 5})
    for (int pp : {2, 3}) layouts.push_back("pp" + std::to_string(pp) + " tp" + std::to_string(tp));
  for (int tp : {2, 4, 5}) layouts.push_back("tp" + std::to_string(tp) + " tp(sequence)@attention_norm,mlp_norm");
  for (char const* more : {"dp2",
                           "dp2 tp2",
                           "dp2 pp2 tp2",
                           "tp2=2:1",
                           "tp2=1:3",
                           "tp3=4:3:2",
                           "tp2=1:0",
                           "tp3=1:0:2",
                           "pp2=10,20",
                           "pp3=12,10,8",
                           "pp2[tp3|tp1]",
                           "pp2[tp2|tp5]",
                           "pp3[tp2|single|tp4]",
                           "pp2[dp2|tp2]",
                           "a2(heads,ffn) b2(heads)",
                           "a2(heads,ffn) b3(heads,vocab)",
                           "a2(heads) b2(ffn) c2(vocab)",
                           "sp2",
                           "sp3 tp2",
                           "x2(embed)",
                           "tp3 x2(vocab)",
                           "tp3 tp(sequence)@attention_norm,mlp_norm,final_norm"})
    layouts.push_back(more);
  REQUIRE(layouts.size() >= 40);
  for (auto const& layout : layouts) {
    INFO("layout " << layout);
    auto const split = generated(layout, request, device);
    CHECK(split.sequences[0].tokens == whole.sequences[0].tokens);
    CHECK(split.sequences[0].logits == whole.sequences[0].logits);
  }
}
