// SPDX-License-Identifier: MIT
// config.json of Falcon, its first form and the one with grouped queries.
#pragma once
#include <dovetail/models/falcon.hpp>
#include <dovetail/run/families/fields.hpp>

namespace dovetail::model_config {

inline constexpr char const* falcon_fields[] = {"hidden_size",
                                                "num_hidden_layers",
                                                "num_attention_heads",
                                                "num_kv_heads",
                                                "ffn_hidden_size",
                                                "ff_factor",
                                                "layer_norm_epsilon",
                                                "activation",
                                                "alibi",
                                                "bias",
                                                "multi_query",
                                                "parallel_attn",
                                                "new_decoder_architecture",
                                                "num_ln_in_parallel_attn",
                                                "max_position_embeddings",
                                                "rope_theta",
                                                "rope_scaling",
                                                "rope_parameters",
                                                "attention_dropout",
                                                "hidden_dropout",
                                                "apply_residual_connection_post_layernorm"};

inline Model read_falcon(Json const& json, std::string const& file) {
  refuse_unknown(json, falcon_fields, file);
  must_be_off(json, "alibi", file);
  must_be_off(json, "apply_residual_connection_post_layernorm", file);
  FalconConfig c;
  c.embed_size = required_count(json, "hidden_size", file, widest);
  c.layers = static_cast<i32>(required_count(json, "num_hidden_layers", file, most_layers));
  c.head_count = required_count(json, "num_attention_heads", file, most_heads);
  if (c.embed_size % c.head_count)
    throw io_error(file, ": field 'hidden_size' must be a multiple of num_attention_heads (", c.head_count, "); it is ",
                   c.embed_size);
  bool const grouped = optional<bool>(json, "new_decoder_architecture", file, false);
  bool const one_key = optional<bool>(json, "multi_query", file, true);
  i64 const stated = read_kv_heads(json, "num_kv_heads", c.head_count, file);
  c.kv_head_count = grouped ? stated : one_key ? 1 : c.head_count;  // the field may say otherwise where it goes unused
  c.rows = grouped ? FalconRows::by_group : one_key ? FalconRows::whole : FalconRows::by_head;
  i64 const norms = optional<i64>(json, "num_ln_in_parallel_attn", file, i64{grouped ? 2 : 1}, FieldRange<i64>{1, 2});
  bool const parallel = optional<bool>(json, "parallel_attn", file, true);
  c.kind = grouped && norms == 2 ? FalconBlockKind::two_norms
           : grouped || parallel ? FalconBlockKind::one_norm
                                 : FalconBlockKind::sequential;
  i64 const factor = optional<i64>(json, "ff_factor", file, i64{4}, FieldRange<i64>{1, 1024});
  c.ffn_size = optional<i64>(json, "ffn_hidden_size", file, factor * c.embed_size, FieldRange<i64>{1, 4 * widest});
  c.vocab_size = read_vocab_size(json, file);
  c.epsilon = read_epsilon(json, "layer_norm_epsilon", file);
  c.tied = optional<bool>(json, "tie_word_embeddings", file, true);
  c.bias = optional<bool>(json, "bias", file, false);
  c.activation = read_activation(json, "activation", "gelu", file);
  c.rope = read_rope(json, c.head_size(), file);
  Model m;
  m.layers = c.layers, m.vocab_size = c.vocab_size;
  m.plan = [c](Builder& b, Value ids) { return falcon(b, ids, c); };
  m.names = falcon_names(c);
  m.optional_prefix = "transformer.";
  if (c.tied) m.tied_copy = "lm_head.weight";
  m.unread = falcon_unread;
  return m;
}

}  // namespace dovetail::model_config
