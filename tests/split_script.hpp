// SPDX-License-Identifier: MIT
// What a test asks of a model: a few passes with ragged prompts, pauses and sampling, drawn from a seed.
#pragma once
#include <algorithm>
#include <dovetail/mesh/region.hpp>

#include "tiny_model.hpp"

namespace split_run {

using namespace dovetail;
using test::Random;

/// What a test asks a model for: one entry of `steps` a forward().
struct Script {
  struct Step {
    std::vector<SequenceRun> run{};
    std::vector<std::vector<i32>> tokens{};  ///< by sequence
    std::vector<ChoiceRule> rules{};
    RunShape shape() const { return {run.data(), static_cast<i32>(run.size())}; }
    i64 first_row(i64 sequence) const {
      i64 n = 0;
      for (i64 s = 0; s < sequence; ++s) n += run[static_cast<std::size_t>(s)].rows;
      return n;
    }
  };
  i64 sequences = 0, capacity = 0;
  std::uint64_t weights = 0;
  std::vector<Step> steps{};
};

/// Ragged prompts with all logits, then more of some sequences, then single tokens: any sequence may pause, the logits
/// asked for differ, the last step samples.
inline Script script_of(tiny::Model const& model, std::uint64_t seed) {
  Random random(seed ^ test::mix(model.name));
  Script script;
  script.sequences = random.between(1, 4), script.weights = seed;
  std::vector<i64> past(static_cast<std::size_t>(script.sequences), 0);
  for (i32 at = 0; at < 4; ++at) {
    Script::Step step;
    for (i64 s = 0; s < script.sequences; ++s) {
      i32 const tokens = at == 0   ? random.between(s == 0, 6)
                         : at == 1 ? random.between(0, 3)
                                   : random.between(s == at % script.sequences, 1);
      auto& before = past[static_cast<std::size_t>(s)];
      step.run.push_back({before, tokens, at < 2 ? tokens : random.between(0, tokens)});
      before += tokens;
      script.capacity = std::max(script.capacity, before);
      step.tokens.emplace_back();
      for (i32 t = 0; t < tokens; ++t)
        step.tokens.back().push_back(random.between(0, static_cast<i32>(model.vocab_size) - 1));
      if (at == 3) step.rules.push_back({0.5 + 0.25 * random.between(0, 4), -0.5, random.one_in(2), random.next()});
    }
    script.steps.push_back(std::move(step));
  }
  return script;
}

}  // namespace split_run
