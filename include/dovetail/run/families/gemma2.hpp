// SPDX-License-Identifier: MIT
// config.json of Gemma 2.
#pragma once
#include <cmath>
#include <dovetail/models/gemma2.hpp>
#include <dovetail/run/families/fields.hpp>

namespace dovetail::model_config {

inline constexpr char const* gemma2_fields[] = {"hidden_size",
                                                "num_hidden_layers",
                                                "num_attention_heads",
                                                "num_key_value_heads",
                                                "head_dim",
                                                "intermediate_size",
                                                "hidden_act",
                                                "hidden_activation",
                                                "rms_norm_eps",
                                                "max_position_embeddings",
                                                "rope_theta",
                                                "rope_scaling",
                                                "rope_parameters",
                                                "attention_bias",
                                                "attention_dropout",
                                                "query_pre_attn_scalar",
                                                "attn_logit_softcapping",
                                                "final_logit_softcapping",
                                                "sliding_window",
                                                "sliding_window_size",
                                                "layer_types",
                                                "use_bidirectional_attention"};

inline Model read_gemma2(Json const& json, std::string const& file) {
  refuse_unknown(json, gemma2_fields, file);
  must_be_off(json, "use_bidirectional_attention", file);
  Gemma2Config c;
  c.embed_size = required_count(json, "hidden_size", file, widest);
  c.layers = static_cast<i32>(required_count(json, "num_hidden_layers", file, most_layers));
  c.head_count = required_count(json, "num_attention_heads", file, most_heads);
  c.kv_head_count = read_kv_heads(json, "num_key_value_heads", c.head_count, file);
  c.head_size = optional<i64>(json, "head_dim", file, i64{256}, FieldRange<i64>{2, most_heads});
  c.ffn_size = required_count(json, "intermediate_size", file, widest);
  c.vocab_size = read_vocab_size(json, file);
  c.tied = optional<bool>(json, "tie_word_embeddings", file, true);
  c.rope = read_rope(json, c.head_size, file);
  c.epsilon = read_epsilon(json, "rms_norm_eps", file);
  c.attention_bias = optional<bool>(json, "attention_bias", file, false);
  c.activation = read_activation(json, "hidden_activation", "gelu_pytorch_tanh", file);
  c.embedding_scale = std::sqrt(static_cast<double>(c.embed_size));
  FieldRange<double> const positive{1e-6, 1e9};
  c.query_scale = 1 / std::sqrt(optional<double>(json, "query_pre_attn_scalar", file, 256.0, positive));
  c.score_cap = optional<double>(json, "attn_logit_softcapping", file, 0.0, positive);
  c.logit_cap = optional<double>(json, "final_logit_softcapping", file, 0.0, positive);
  i64 const window = optional<i64>(json, "sliding_window", file, i64{4096}, FieldRange<i64>{1, i64{1} << 40});
  auto const windows = read_windows(
      json, c.layers, window, [&](i32 l) { return l % 2 ? i64{0} : window; }, file);
  Model m;
  m.layers = c.layers, m.vocab_size = c.vocab_size;
  m.plan = [c, windows](Builder& b, Value ids) {
    return gemma2(b, ids, c, [&](i32 layer) { return windows[static_cast<std::size_t>(layer)]; });
  };
  m.names = gemma2_names;
  if (c.tied) m.tied_copy = "lm_head.weight";
  m.unread = llama_unread;
  return m;
}

}  // namespace dovetail::model_config
