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
#include <limits>
#include <span>
#include <string_view>

namespace dovetail {
namespace model_config {

/// Numbers beyond these belong to no model: a base, a factor or a frequency of rotary positions.
inline constexpr FieldRange<double> rotary_range{1, 1e30};
inline constexpr FieldRange<double> frequency_range{0, 1e30};

/// Fields of `rope_scaling` and `rope_parameters`.
inline constexpr char const* rope_fields[] = {"rope_theta",
                                              "rope_type",
                                              "type",
                                              "factor",
                                              "low_freq_factor",
                                              "high_freq_factor",
                                              "original_max_position_embeddings"};

/// Refuses fields outside the list that say anything.
inline void refuse_others(Json const& json, std::span<char const* const> known_fields, std::string const& file) {
  for (auto const& [field, value] : json.items()) {
    bool const known =
        std::find(known_fields.begin(), known_fields.end(), std::string_view(field)) != known_fields.end();
    if (!known && !value.is_null() && value != Json(false))
      throw io_error(file, ": field ", in_quotes(field), " is ", json_kind(value),
                     " and not known; it may change the computation, so the model is not run without it");
  }
}

/// Rotary settings of a config: `rope_theta` with `rope_scaling`, or `rope_parameters`.
inline RotaryConfig read_rope(Json const& json, std::string const& file) {
  RotaryConfig rope;
  Json const* const parameters = optional_object(json, "rope_parameters", file);
  Json const* const legacy = optional_object(json, "rope_scaling", file);
  if (parameters && legacy && *parameters != *legacy)
    throw io_error(file, ": fields 'rope_parameters' and 'rope_scaling' differ; one of them must go");
  char const* const name = parameters ? "rope_parameters" : "rope_scaling";
  Json const* const scaling = parameters ? parameters : legacy;
  std::string const inside = file + ": " + name;
  double const outer = optional<double>(json, "rope_theta", file, rope.theta, rotary_range);
  rope.theta = scaling ? optional<double>(*scaling, "rope_theta", inside, outer, rotary_range) : outer;
  if (rope.theta != outer && present(json, "rope_theta", file))
    throw io_error(file, ": field 'rope_theta' is ", outer, " but ", rope.theta, " in ", name, "; one of them must go");
  if (!scaling) return rope;
  refuse_others(*scaling, rope_fields, inside);
  auto const old_kind = optional<std::string>(*scaling, "type", inside);
  std::string const kind = optional<std::string>(*scaling, "rope_type", inside, old_kind.value_or("default"));
  if (kind != "default" && kind != "llama3")
    throw io_error(inside, ": type ", in_quotes(kind), " is not known; known are default and llama3");
  if (old_kind && *old_kind != kind)
    throw io_error(inside, ": field 'rope_type' is ", in_quotes(kind), " but 'type' is ", in_quotes(*old_kind),
                   "; one of them must go");
  if (kind == "default") return rope;
  rope.factor = required<double>(*scaling, "factor", inside, rotary_range);
  rope.low_frequency = required<double>(*scaling, "low_freq_factor", inside, frequency_range);
  rope.high_frequency = required<double>(*scaling, "high_freq_factor", inside, frequency_range);
  rope.original_context = static_cast<double>(required_count(*scaling, "original_max_position_embeddings", inside));
  if (!(rope.high_frequency > rope.low_frequency))
    throw io_error(inside, ": field 'high_freq_factor' must be above low_freq_factor (", rope.low_frequency,
                   "); it is ", rope.high_frequency);
  return rope;
}

inline LlamaConfig read_llama(Json const& json, std::string const& file) {
  LlamaConfig c;
  constexpr i64 widest = i64{1} << 24;  // far above any model: products of two sizes fit i64 with room to spare
  c.embed_size = required_count(json, "hidden_size", file, widest);
  c.layers = static_cast<i32>(required_count(json, "num_hidden_layers", file, 10000));
  c.head_count = required_count(json, "num_attention_heads", file, 1 << 16);
  c.kv_head_count = optional<i64>(json, "num_key_value_heads", file, c.head_count, FieldRange<i64>{1, c.head_count});
  if (c.head_count % c.kv_head_count)
    throw io_error(file, ": field 'num_key_value_heads' must divide num_attention_heads (", c.head_count, "); it is ",
                   c.kv_head_count);
  auto const head_size = optional<i64>(json, "head_dim", file, FieldRange<i64>{2, 1 << 16});
  if (!head_size && c.embed_size % c.head_count)
    throw io_error(file, ": hidden_size (", c.embed_size, ") is not a multiple of num_attention_heads (", c.head_count,
                   "), so head_dim must be stated");
  c.head_size = head_size.value_or(c.embed_size / c.head_count);
  if (c.head_size < 2 || c.head_size % 2)
    throw io_error(file, ": head_dim is ", c.head_size, "; rotary positions need an even number of at least 2");
  c.ffn_size = required_count(json, "intermediate_size", file, widest);
  c.vocab_size = required_count(json, "vocab_size", file, (std::numeric_limits<i32>::max)());  // token ids are i32
  c.tied = optional<bool>(json, "tie_word_embeddings", file, false);
  c.rope = read_rope(json, file);
  // Below the least normal number of f32 it would vanish there; above 1 it would outweigh what is normalised.
  c.epsilon = required<double>(json, "rms_norm_eps", file, FieldRange<double>{1.2e-38, 1});
  c.attention_bias = optional<bool>(json, "attention_bias", file, false);
  c.mlp_bias = optional<bool>(json, "mlp_bias", file, false);
  c.window = optional<i64>(json, "sliding_window", file, i64{0}, FieldRange<i64>{0, i64{1} << 40});
  std::string const activation = optional<std::string>(json, "hidden_act", file, std::string("silu"));
  if (activation != "silu" && activation != "swish")
    throw io_error(file, ": hidden_act ", in_quotes(activation), " is not known; known is silu");
  return c;
}

/// Ids of `key`, each a token of the vocabulary.
inline std::vector<i32> read_tokens(Json const& json, char const* key, i64 vocab_size, std::string const& file) {
  return one_or_more<i32>(json, key, file, FieldRange<i32>{0, static_cast<i32>(vocab_size - 1)});
}
/// End tokens of a file, whose other token ids are checked too.
inline std::vector<i32> read_end_tokens(Json const& json, i64 vocab_size, std::string const& file) {
  for (char const* other : {"bos_token_id", "pad_token_id", "unk_token_id"}) read_tokens(json, other, vocab_size, file);
  return read_tokens(json, "eos_token_id", vocab_size, file);
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
    if (Json const* const value = present(json, field, file); value && *value != Json(false))
      throw io_error(file, ": field ", in_quotes(field), " is ", json_kind(*value),
                     ", which this library does not compute; it must be false, null or absent");
  };
  must_be_off("rope_interleaved");
  must_be_off("quantization_config");
  optional<i64>(json, "pretraining_tp", file, FieldRange<i64>{1, 1});
  refuse_others(json, known_fields, file);
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
  m.context_limit = optional<i64>(json, "max_position_embeddings", file, i64{0}, FieldRange<i64>{1, i64{1} << 40});
  m.end_tokens = model_config::read_end_tokens(json, m.vocab_size, file);
  std::error_code ignored;
  if (std::filesystem::exists(generation, ignored)) {
    auto more = model_config::read_end_tokens(load_json(generation), m.vocab_size, generation.string());
    if (!more.empty()) m.end_tokens = std::move(more);
  }
  return m;
}

}  // namespace dovetail
