// SPDX-License-Identifier: MIT
// config.json of the families that are Llamas with options: Llama, Mistral, Qwen2.5, Qwen3, Phi-3, and OLMo 2, whose
// norms stand elsewhere.
#pragma once
#include <dovetail/models/mistral.hpp>
#include <dovetail/models/olmo2.hpp>
#include <dovetail/models/phi3.hpp>
#include <dovetail/models/qwen.hpp>
#include <dovetail/run/families/fields.hpp>

namespace dovetail {
namespace model_config {

inline constexpr char const* llama_fields[] = {
    "hidden_size",       "num_hidden_layers", "num_attention_heads", "num_key_value_heads",     "head_dim",
    "intermediate_size", "hidden_act",        "rms_norm_eps",        "max_position_embeddings", "rope_theta",
    "rope_scaling",      "rope_parameters",   "attention_dropout"};

/// Fields that all of these families have. @param may_be_partial  whether a part of each head may be rotated
inline LlamaConfig read_llama_sizes(Json const& json, std::string const& file, bool may_be_partial = false) {
  LlamaConfig c;
  c.embed_size = required_count(json, "hidden_size", file, widest);
  c.layers = static_cast<i32>(required_count(json, "num_hidden_layers", file, most_layers));
  c.head_count = required_count(json, "num_attention_heads", file, most_heads);
  c.kv_head_count = read_kv_heads(json, "num_key_value_heads", c.head_count, file);
  c.head_size = read_head_size(json, c.embed_size, c.head_count, file);
  c.ffn_size = required_count(json, "intermediate_size", file, widest);
  c.vocab_size = read_vocab_size(json, file);
  c.tied = optional<bool>(json, "tie_word_embeddings", file, false);
  c.rope = read_rope(json, c.head_size, file, may_be_partial);
  c.epsilon = read_epsilon(json, "rms_norm_eps", file);
  if (read_activation(json, "hidden_act", "silu", file) != &silu)
    throw io_error(file, ": field 'hidden_act' is ", json_kind(json["hidden_act"]), "; known is silu");
  return c;
}

inline Model model_of(LlamaConfig const& c, std::vector<i64> const& windows) {
  Model m;
  m.family = "llama", m.layers = c.layers, m.vocab_size = c.vocab_size;
  m.plan = [c, windows](Builder& b, Value ids) {
    return llama(b, ids, c, [&](i32 layer) { return windows[static_cast<std::size_t>(layer)]; });
  };
  m.names = llama_names;
  if (c.tied) m.tied_copy = "lm_head.weight";
  m.unread = llama_unread;
  return m;
}

inline Model read_llama(Json const& json, std::string const& file) {
  static constexpr char const* more[] = {"attention_bias", "mlp_bias", "pretraining_tp", "rope_interleaved",
                                         "is_llama_config"};
  std::vector<char const*> fields(std::begin(llama_fields), std::end(llama_fields));
  fields.insert(fields.end(), std::begin(more), std::end(more));
  refuse_unknown(json, fields, file);
  must_be_off(json, "rope_interleaved", file);
  optional<i64>(json, "pretraining_tp", file, FieldRange<i64>{1, 1});
  LlamaConfig c = read_llama_sizes(json, file);
  c.qkv_bias = c.o_bias = optional<bool>(json, "attention_bias", file, false);
  c.mlp_bias = optional<bool>(json, "mlp_bias", file, false);
  return model_of(c, std::vector<i64>(static_cast<std::size_t>(c.layers), 0));
}

inline Model read_mistral(Json const& json, std::string const& file) {
  std::vector<char const*> fields(std::begin(llama_fields), std::end(llama_fields));
  fields.insert(fields.end(), {"sliding_window", "layer_types"});
  refuse_unknown(json, fields, file);
  LlamaConfig const c = read_llama_sizes(json, file);
  i64 const window = read_window(json, file);
  return model_of(c, read_windows(
                         json, c.layers, window, [&](i32) { return window; }, file));
}

/// Windows of Qwen2.5 and Qwen3: off unless use_sliding_window; then the layers from max_window_layers on have them.
inline Model read_qwen(Json const& json, std::string const& file, bool has_head_norms) {
  std::vector<char const*> fields(std::begin(llama_fields), std::end(llama_fields));
  fields.insert(fields.end(), {"sliding_window", "layer_types", "use_sliding_window", "max_window_layers"});
  if (has_head_norms) fields.push_back("attention_bias");
  refuse_unknown(json, fields, file);
  LlamaConfig c = read_llama_sizes(json, file);
  i64 const stated = read_window(json, file);
  i64 const window = optional<bool>(json, "use_sliding_window", file, false) ? stated : 0;
  i64 const from = optional<i64>(json, "max_window_layers", file, i64{28}, FieldRange<i64>{0, most_layers});
  if (has_head_norms) {
    c.qk_norm = QkNorm::per_head;
    c.qkv_bias = c.o_bias = optional<bool>(json, "attention_bias", file, false);
  } else {
    c.qkv_bias = true;
  }
  return model_of(c, read_windows(
                         json, c.layers, window, [&](i32 l) { return l >= from ? window : 0; }, file));
}
inline Model read_qwen2(Json const& json, std::string const& file) { return read_qwen(json, file, false); }
inline Model read_qwen3(Json const& json, std::string const& file) { return read_qwen(json, file, true); }

inline Model read_phi3(Json const& json, std::string const& file) {
  std::vector<char const*> fields(std::begin(llama_fields), std::end(llama_fields));
  fields.insert(fields.end(), {"sliding_window", "partial_rotary_factor", "original_max_position_embeddings",
                               "embd_pdrop", "resid_pdrop", "attention_bias"});
  refuse_unknown(json, fields, file);
  must_be_off(json, "attention_bias", file);
  LlamaConfig const c = read_llama_sizes(json, file, true);
  Model m = model_of(c, std::vector<i64>(static_cast<std::size_t>(c.layers), read_window(json, file)));
  m.names = phi3_names(c);
  return m;
}

inline Model read_olmo2(Json const& json, std::string const& file) {
  std::vector<char const*> fields(std::begin(llama_fields), std::end(llama_fields));
  fields.push_back("attention_bias");
  refuse_unknown(json, fields, file);
  LlamaConfig c = read_llama_sizes(json, file);
  c.qkv_bias = c.o_bias = optional<bool>(json, "attention_bias", file, false);
  c.qk_norm = QkNorm::full;
  Model m = model_of(c, {});
  m.plan = [c](Builder& b, Value ids) { return olmo2(b, ids, c); };
  m.names = olmo2_names;
  return m;
}

}  // namespace model_config

/// Model around a Llama configuration.
inline Model llama_model(LlamaConfig const& c) {
  std::vector<i64> windows;
  for (i32 l = 0; l < c.layers; ++l) windows.push_back(c.windows(l));
  return model_config::model_of(c, windows);
}

}  // namespace dovetail
