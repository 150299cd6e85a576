// SPDX-License-Identifier: MIT
// Models from a Hugging Face model directory: config.json becomes the configuration that the types use too, and what
// would change the computation and is not understood is refused by name rather than ignored.
#pragma once
#include <algorithm>
#include <dovetail/io/json_field.hpp>
#include <dovetail/io/json_file.hpp>
#include <dovetail/models/llama.hpp>
#include <dovetail/run/model.hpp>
#include <filesystem>

namespace dovetail {
namespace model_config {

/// Rotary settings of a config: `rope_theta` with `rope_scaling`, or `rope_parameters`.
inline RotaryConfig read_rope(Json const& json, std::string const& file) {
  RotaryConfig rope;
  bool const joined = json.contains("rope_parameters") && json["rope_parameters"].is_object();
  Json const none = Json::object();
  Json const& theta_of = joined ? json["rope_parameters"] : json;
  rope.theta = optional<double>(theta_of, "rope_theta", file, rope.theta);
  if (!(rope.theta > 0)) throw io_error(file, ": rope_theta is ", rope.theta, "; a positive base is expected");
  Json const& scaling = joined                                                              ? json["rope_parameters"]
                        : json.contains("rope_scaling") && json["rope_scaling"].is_object() ? json["rope_scaling"]
                                                                                            : none;
  std::string const kind = optional<std::string>(scaling, "rope_type", file,
                                                 optional<std::string>(scaling, "type", file, std::string("default")));
  if (kind == "default") return rope;
  if (kind != "llama3")
    throw io_error(file, ": rope scaling of type ", in_quotes(kind), " is not known; known are default and llama3");
  rope.factor = required<double>(scaling, "factor", file);
  rope.low_frequency = required<double>(scaling, "low_freq_factor", file);
  rope.high_frequency = required<double>(scaling, "high_freq_factor", file);
  rope.original_context = required<double>(scaling, "original_max_position_embeddings", file);
  if (!(rope.factor > 0) || !(rope.high_frequency > rope.low_frequency) || !(rope.original_context > 0))
    throw io_error(file, ": rope scaling has a factor of ", rope.factor, ", frequencies ", rope.low_frequency, " to ",
                   rope.high_frequency, " and a context of ", rope.original_context,
                   "; positive numbers with the low frequency below the high one are expected");
  return rope;
}

inline LlamaConfig read_llama(Json const& json, std::string const& file) {
  LlamaConfig c;
  c.embed_size = required_count(json, "hidden_size", file);
  i64 const layers = required_count(json, "num_hidden_layers", file);
  if (layers > 10000) throw io_error(file, ": num_hidden_layers is ", layers, "; at most 10,000 are planned");
  c.layers = static_cast<i32>(layers);
  c.head_count = required_count(json, "num_attention_heads", file);
  c.kv_head_count = optional<i64>(json, "num_key_value_heads", file, c.head_count);
  if (c.kv_head_count < 1 || c.head_count % c.kv_head_count)
    throw io_error(file, ": num_key_value_heads (", c.kv_head_count, ") does not divide num_attention_heads (",
                   c.head_count, ")");
  if (!json.contains("head_dim") && c.embed_size % c.head_count)
    throw io_error(file, ": hidden_size (", c.embed_size, ") is not a multiple of num_attention_heads (", c.head_count,
                   "), so head_dim must be stated");
  c.head_size = optional<i64>(json, "head_dim", file, c.embed_size / c.head_count);
  if (c.head_size < 2 || c.head_size % 2)
    throw io_error(file, ": head_dim is ", c.head_size, "; rotary positions need an even number of at least 2");
  c.ffn_size = required_count(json, "intermediate_size", file);
  c.vocab_size = required_count(json, "vocab_size", file);
  c.tied = optional<bool>(json, "tie_word_embeddings", file, false);
  c.rope = read_rope(json, file);
  c.epsilon = required<double>(json, "rms_norm_eps", file);
  c.attention_bias = optional<bool>(json, "attention_bias", file, false);
  c.mlp_bias = optional<bool>(json, "mlp_bias", file, false);
  c.window = optional<i64>(json, "sliding_window", file, 0);
  std::string const activation = optional<std::string>(json, "hidden_act", file, std::string("silu"));
  if (activation != "silu" && activation != "swish")
    throw io_error(file, ": hidden_act ", in_quotes(activation), " is not known; known is silu");
  return c;
}

/// Fields that say nothing about the computation, or that are read elsewhere.
inline constexpr char const* known_fields[] = {"architectures",
                                               "model_type",
                                               "hidden_act",
                                               "hidden_size",
                                               "intermediate_size",
                                               "num_hidden_layers",
                                               "num_attention_heads",
                                               "num_key_value_heads",
                                               "head_dim",
                                               "max_position_embeddings",
                                               "rms_norm_eps",
                                               "rope_theta",
                                               "rope_scaling",
                                               "rope_parameters",
                                               "tie_word_embeddings",
                                               "torch_dtype",
                                               "dtype",
                                               "bos_token_id",
                                               "eos_token_id",
                                               "pad_token_id",
                                               "unk_token_id",
                                               "vocab_size",
                                               "attention_bias",
                                               "mlp_bias",
                                               "sliding_window",
                                               "attention_dropout",
                                               "initializer_range",
                                               "pretraining_tp",
                                               "transformers_version",
                                               "use_cache",
                                               "_name_or_path",
                                               "transformers.js_config",
                                               "rope_interleaved",
                                               "is_llama_config",
                                               "quantization_config",
                                               "id2label",
                                               "label2id",
                                               "output_attentions",
                                               "output_hidden_states",
                                               "return_dict",
                                               "chunk_size_feed_forward",
                                               "problem_type",
                                               "is_encoder_decoder"};

/// Refuses what would change the computation.
inline void refuse_unknown(Json const& json, std::string const& file) {
  auto const must_be_off = [&](char const* field) {
    if (json.contains(field) && !json[field].is_null() && json[field] != Json(false))
      throw io_error(file, ": ", in_quotes(field), " is ", json[field].dump(), ", which this library does not compute");
  };
  must_be_off("rope_interleaved");
  must_be_off("quantization_config");
  if (json.contains("pretraining_tp") && json["pretraining_tp"] != Json(1)) must_be_off("pretraining_tp");
  for (auto const& [field, value] : json.items()) {
    bool const known = std::find_if(std::begin(known_fields), std::end(known_fields),
                                    [&](char const* f) { return field == f; }) != std::end(known_fields);
    if (!known && !value.is_null() && value != Json(false))
      throw io_error(file, ": field ", in_quotes(field), " = ", value.dump().substr(0, 80),
                     " is not known; it may change the computation, so the model is not run without it");
  }
}

}  // namespace model_config

/// Model around a Llama configuration.
inline Model llama_model(LlamaConfig const& c) {
  Model m;
  m.family = "llama", m.layers = c.layers, m.vocab_size = c.vocab_size;
  m.plan = [c](Builder& b, Value ids) { return llama(b, ids, c); };
  m.names = llama_names;
  if (c.tied) m.unread = llama_tied_unread;
  else m.unread = llama_unread;
  return m;
}

/// Reads `config.json`, and the end tokens of `generation_config.json` where there is one, from a model directory.
/// @throws IoError naming file and field
inline Model read_model(std::filesystem::path const& directory) {
  auto const config = directory / "config.json", generation = directory / "generation_config.json";
  Json const json = load_json(config);
  std::string const file = config.string();
  if (!json.is_object()) throw io_error(file, ": is not a JSON object");
  std::string const type = required<std::string>(json, "model_type", file);
  if (type != "llama" && type != "mistral")
    throw io_error(file, ": model_type ", in_quotes(type), " is not known; known are llama and mistral");
  model_config::refuse_unknown(json, file);
  Model m = llama_model(model_config::read_llama(json, file));
  m.family = type;
  m.context_limit = optional<i64>(json, "max_position_embeddings", file, 0);
  std::error_code ignored;
  if (std::filesystem::exists(generation, ignored)) {
    Json const more = load_json(generation);
    if (more.is_object() && more.contains("eos_token_id") && !more["eos_token_id"].is_null())
      m.end_tokens = one_or_more<i32>(more, "eos_token_id", generation.string());
  }
  if (m.end_tokens.empty() && json.contains("eos_token_id") && !json["eos_token_id"].is_null())
    m.end_tokens = one_or_more<i32>(json, "eos_token_id", file);
  return m;
}

}  // namespace dovetail
