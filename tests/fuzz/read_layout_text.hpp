// SPDX-License-Identifier: MIT
// Any bytes as a layout of a small Llama: a text that is accepted plans, or is refused with the sentence of a rule. A
// plan covers its model; what is printed of it is UTF-8 and JSON.
#pragma once
#include <dovetail/io/json_file.hpp>
#include <dovetail/models/llama.hpp>
#include <dovetail/plan/coverage.hpp>
#include <dovetail/plan/json.hpp>
#include <dovetail/plan/print.hpp>
#include <dovetail/policy/layout_text.hpp>

#include "checked.hpp"

namespace fuzz {

using namespace dovetail;

inline std::string refusal_of_layout(std::string_view input) {
  constexpr i32 layers = 4;
  constexpr LlamaConfig config{.embed_size = 36,
                               .layers = layers,
                               .head_count = 9,
                               .kv_head_count = 3,
                               .head_size = 4,
                               .ffn_size = 50,
                               .vocab_size = 61};
  try {
    Layout const layout = read_layout(input);
    LayoutPlan const planned =
        plan_layout(layout, layers, [&](Builder& b, Value ids) { return llama(b, ids, config); });
    Plan const plan = planned.view();
    must(plan.ranks() > 0, "a plan for no rank");
    if (plan.ranks() <= 256) {  // the proof walks over them
      must(coverage(plan).ok(), "a plan that does not cover its model");
      std::string const text = explain(plan);
      must(utf8_valid_prefix(text) == text.size(), "a plan whose text is not UTF-8");
      must(parse_json(to_json(plan), "plan")["ranks"] == plan.ranks(), "JSON with other ranks");
    }
    return "";
  } catch (LayoutTextError const& e) {
    return checked_message(e.what());
  } catch (LayoutError const& e) {
    return checked_message(e.what());
  }
}

}  // namespace fuzz
