// SPDX-License-Identifier: MIT
// config.json of GPT-2.
#pragma once
#include <dovetail/models/gpt2.hpp>
#include <dovetail/run/families/fields.hpp>

namespace dovetail::model_config {

inline constexpr char const* gpt2_fields[] = {"n_embd",
                                              "n_layer",
                                              "n_head",
                                              "n_inner",
                                              "n_positions",
                                              "n_ctx",
                                              "activation_function",
                                              "layer_norm_epsilon",
                                              "scale_attn_weights",
                                              "scale_attn_by_inverse_layer_idx",
                                              "reorder_and_upcast_attn",
                                              "add_cross_attention",
                                              "attn_pdrop",
                                              "embd_pdrop",
                                              "resid_pdrop",
                                              "summary_activation",
                                              "summary_first_dropout",
                                              "summary_proj_to_labels",
                                              "summary_type",
                                              "summary_use_proj"};

inline Model read_gpt2(Json const& json, std::string const& file) {
  refuse_unknown(json, gpt2_fields, file);
  must_be_off(json, "scale_attn_by_inverse_layer_idx", file);
  must_be_off(json, "add_cross_attention", file);
  if (!optional<bool>(json, "scale_attn_weights", file, true))
    throw io_error(file, ": field 'scale_attn_weights' is false, which this library does not compute; it must be true");
  Gpt2Config c;
  c.embed_size = required_count(json, "n_embd", file, widest);
  c.layers = static_cast<i32>(required_count(json, "n_layer", file, most_layers));
  c.head_count = required_count(json, "n_head", file, most_heads);
  if (c.embed_size % c.head_count)
    throw io_error(file, ": field 'n_embd' must be a multiple of n_head (", c.head_count, "); it is ", c.embed_size);
  c.ffn_size = optional<i64>(json, "n_inner", file, 4 * c.embed_size, FieldRange<i64>{1, 4 * widest});
  c.position_count = required_count(json, "n_positions", file, widest);
  c.vocab_size = read_vocab_size(json, file);
  c.epsilon = read_epsilon(json, "layer_norm_epsilon", file);
  c.tied = optional<bool>(json, "tie_word_embeddings", file, true);
  c.activation = read_activation(json, "activation_function", "gelu_new", file);
  Model m;
  m.layers = c.layers, m.vocab_size = c.vocab_size, m.context_limit = c.position_count;
  m.plan = [c](Builder& b, Value ids) { return gpt2(b, ids, c); };
  m.names = gpt2_names(c);
  m.optional_prefix = "transformer.";
  if (c.tied) m.tied_copy = "lm_head.weight";
  m.unread = gpt2_unread;
  return m;
}

}  // namespace dovetail::model_config
