// SPDX-License-Identifier: MIT
// Any bytes as config.json, with generation_config.json after a line "---" where there is one: a model that is accepted
// has sizes that add up within 64 bits, end tokens of its vocabulary, and a plan on one rank.
#pragma once
#include <dovetail/plan/memory.hpp>
#include <dovetail/run/model_config.hpp>

#include "checked.hpp"
#include "scratch.hpp"

namespace fuzz {

using namespace dovetail;

inline std::string refusal_of_config(std::string_view input) {
  static test::Scratch const directory;
  auto const files = parts_of(input, "\n---\n");
  directory.write("config.json", files[0]);
  std::filesystem::remove(directory / "generation_config.json");
  if (files.size() > 1) directory.write("generation_config.json", files[1]);
  try {
    Model const model = read_model(directory.path());
    must(model.layers > 0 && model.vocab_size > 0 && model.context_limit >= 0, "a model without a size");
    for (i32 token : model.end_tokens)
      must(token >= 0 && token < model.vocab_size, "an end token beyond the vocabulary");
    LayoutPlan const planned = plan_layout(read_layout("single"), model);
    must(planned.view().ranks() == 1 && total_parameters(planned.view()) > 0, "a model without parameters");
    return "";
  } catch (IoError const& e) {
    return checked_message(e.what());
  } catch (LayoutError const& e) {
    return checked_message(e.what());
  }
}

}  // namespace fuzz
