// SPDX-License-Identifier: MIT
// A model at run time: how to plan it, what its tensors are called in a checkpoint, and the limits that its
// configuration states. Made from a model directory by run/model_config.hpp, or by hand around any planning function.
#pragma once
#include <dovetail/models/checkpoint_names.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dovetail {

/// A model that a run plans, loads and asks.
struct Model {
  std::string family{};
  i32 layers = 0;  ///< numbered layers, what a pipeline deals
  i64 vocab_size = 0;
  i64 context_limit = 0;  ///< tokens of a sequence that the model was made for; 0: not stated
  std::vector<i32> end_tokens{};
  bool embeds = false;  ///< an encoder: the result is an embedding of each sequence, not logits of its tokens
  std::function<Value(Builder&, Value)> plan{};  ///< token ids to logits
  CheckpointNames names{};                       ///< role path to stored tensor
  char const* tied_copy = "";             ///< stored head that a tied model's file may carry: the embedding again
  char const* optional_prefix = "";       ///< of stored names, which files of the bare model leave out
  std::span<char const* const> unread{};  ///< patterns of stored tensors that the model rightly leaves alone
};

/// Plans a model under a layout. @throws LayoutError with the rule's sentence
inline LayoutPlan plan_layout(Layout const& layout, Model const& model) {
  return plan_layout(layout, model.layers, model.plan);
}

}  // namespace dovetail
