// SPDX-License-Identifier: MIT
// Any bytes as a command line, one argument a line: of examples/plan where the first line is "plan", otherwise of
// examples/generate. Options that are accepted are within the ranges that the flags state.
#pragma once
#include "../../examples/generate_options.hpp"
#include "../../examples/plan_options.hpp"
#include "checked.hpp"

namespace fuzz {

inline void check_generate(std::vector<char const*> const& arguments) {
  generate_example::Options o;
  if (!generate_example::read_options(static_cast<int>(arguments.size()), arguments.data(), o)) return;
  must(!o.model.empty() && (o.plan || !o.prompts.empty()), "nothing to do");
  must(o.max_new_tokens >= 0 && o.capacity >= 0 && o.threads_per_rank >= 0, "a negative count");
  must(o.device == "cpu" || o.device == "reference", "an unknown device");
  must(o.json || !o.logits, "logits that nothing prints");
  for (auto const& prompt : o.prompts)
    if (prompt.kind == generate_example::Prompt::Kind::ids) must(!prompt.ids.empty(), "a list of no ids");
  o.sampling.check();
}

inline void check_plan(std::vector<char const*> const& arguments) {
  plan_example::Options o;
  if (!plan_example::read_options(static_cast<int>(arguments.size()), arguments.data(), o)) return;
  must(o.config.empty() != o.model.empty(), "two models, or none");
  must(o.sequences >= 0 && o.tokens >= 1 && o.tokens <= o.context, "a count out of range");
  must(o.compare.size() <= 16, "too many layouts");
  must(o.dtype == "f32" || o.dtype == "f16" || o.dtype == "bf16", "an unknown type");
}

inline std::string refusal_of_flags(std::string_view input) {
  if (input.ends_with('\n')) input.remove_suffix(1);
  std::vector<std::string> words = parts_of(input, "\n");
  bool const plan = words[0] == "plan";
  if (!plan) words.insert(words.begin(), "generate");
  std::vector<char const*> arguments;
  for (auto const& word : words) arguments.push_back(word.c_str());
  try {
    (plan ? check_plan : check_generate)(arguments);
    return "";
  } catch (flags::UsageError const& e) {
    return checked_message(e.what());
  }
}

}  // namespace fuzz
