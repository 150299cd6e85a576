// SPDX-License-Identifier: MIT
// Fields that the config.json files of several families have in common: sizes, rotary positions, windows by layer,
// activations, token ids. What would change the computation and is not understood is refused by name, never ignored.
#pragma once
#include <algorithm>
#include <dovetail/io/json_field.hpp>
#include <dovetail/io/json_file.hpp>
#include <dovetail/layer/attention.hpp>
#include <dovetail/models/layer_windows.hpp>
#include <dovetail/run/model.hpp>
#include <initializer_list>
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
                                              "partial_rotary_factor",
                                              "factor",
                                              "low_freq_factor",
                                              "high_freq_factor",
                                              "original_max_position_embeddings"};

/// Fields of every family that say nothing about the computation, or that are read for all of them.
inline constexpr char const* common_fields[] = {"architectures",
                                                "model_type",
                                                "vocab_size",
                                                "tie_word_embeddings",
                                                "torch_dtype",
                                                "dtype",
                                                "bos_token_id",
                                                "eos_token_id",
                                                "pad_token_id",
                                                "unk_token_id",
                                                "sep_token_id",
                                                "cls_token_id",
                                                "mask_token_id",
                                                "initializer_range",
                                                "transformers_version",
                                                "use_cache",
                                                "_name_or_path",
                                                "auto_map",
                                                "transformers.js_config",
                                                "id2label",
                                                "label2id",
                                                "output_attentions",
                                                "output_hidden_states",
                                                "return_dict",
                                                "chunk_size_feed_forward",
                                                "problem_type",
                                                "is_encoder_decoder",
                                                "quantization_config",
                                                "task_specific_params",
                                                "gradient_checkpointing",
                                                "cache_implementation"};

/// Refuses fields outside the lists that say anything.
inline void refuse_others(Json const& json, std::initializer_list<std::span<char const* const>> known,
                          std::string const& file) {
  for (auto const& [field, value] : json.items()) {
    auto const is_field = [&, &name = field](char const* f) { return name == f; };
    bool const listed = std::any_of(known.begin(), known.end(),
                                    [&](auto const& list) { return std::any_of(list.begin(), list.end(), is_field); });
    if (!listed && !value.is_null() && value != Json(false))
      throw io_error(file, ": field ", in_quotes(field), " is ", json_kind(value),
                     " and not known; it may change the computation, so the model is not run without it");
  }
}
/// Refuses the fields that a family's reader does not know, and weights that are packed.
inline void refuse_unknown(Json const& json, std::span<char const* const> family_fields, std::string const& file) {
  if (Json const* const packed = present(json, "quantization_config", file); packed && *packed != Json(false))
    throw io_error(file, ": field 'quantization_config' is ", json_kind(*packed),
                   ", and quantised weights are not read; it must be false, null or absent");
  refuse_others(json, {common_fields, family_fields}, file);
}
/// Refuses a field that asks for what no layer here computes.
inline void must_be_off(Json const& json, char const* field, std::string const& file) {
  if (Json const* const value = present(json, field, file); value && *value != Json(false))
    throw io_error(file, ": field ", in_quotes(field), " is ", json_kind(*value),
                   ", which this library does not compute; it must be false, null or absent");
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
  refuse_others(*scaling, {rope_fields}, inside);
  auto const old_kind = optional<std::string>(*scaling, "type", inside);
  std::string const kind = optional<std::string>(*scaling, "rope_type", inside, old_kind.value_or("default"));
  if (kind != "default" && kind != "linear" && kind != "llama3")
    throw io_error(inside, ": type ", in_quotes(kind), " is not known; known are default, linear and llama3");
  if (old_kind && *old_kind != kind)
    throw io_error(inside, ": field 'rope_type' is ", in_quotes(kind), " but 'type' is ", in_quotes(*old_kind),
                   "; one of them must go");
  if (kind == "default") return rope;
  rope.factor = required<double>(*scaling, "factor", inside, rotary_range);
  if (kind == "linear") {  // every wavelength is above a context of next to nothing, so every one is scaled
    rope.original_context = 1e-9;
    return rope;
  }
  rope.low_frequency = required<double>(*scaling, "low_freq_factor", inside, frequency_range);
  rope.high_frequency = required<double>(*scaling, "high_freq_factor", inside, frequency_range);
  rope.original_context = static_cast<double>(required_count(*scaling, "original_max_position_embeddings", inside));
  if (!(rope.high_frequency > rope.low_frequency))
    throw io_error(inside, ": field 'high_freq_factor' must be above low_freq_factor (", rope.low_frequency,
                   "); it is ", rope.high_frequency);
  return rope;
}

/// Sizes that are far above any model's: products of two of them fit i64 with room to spare.
inline constexpr i64 widest = i64{1} << 24, most_layers = 10000, most_heads = 1 << 16;

inline i64 read_vocab_size(Json const& json, std::string const& file) {
  return required_count(json, "vocab_size", file, (std::numeric_limits<i32>::max)());  // token ids are i32
}
/// Below the least normal number of f32 it would vanish there; above 1 it would outweigh what is normalised.
inline double read_epsilon(Json const& json, char const* field, std::string const& file) {
  return required<double>(json, field, file, FieldRange<double>{1.2e-38, 1});
}
/// Size of a head: stated, or the embedding's share of it.
inline i64 read_head_size(Json const& json, i64 embed_size, i64 head_count, std::string const& file) {
  auto const stated = optional<i64>(json, "head_dim", file, FieldRange<i64>{2, most_heads});
  if (!stated && embed_size % head_count)
    throw io_error(file, ": the hidden size (", embed_size, ") is not a multiple of the number of heads (", head_count,
                   "), so head_dim must be stated");
  return stated.value_or(embed_size / head_count);
}
/// Heads of keys and values: a divisor of the query heads'.
inline i64 read_kv_heads(Json const& json, char const* field, i64 head_count, std::string const& file) {
  i64 const n = optional<i64>(json, field, file, head_count, FieldRange<i64>{1, head_count});
  if (head_count % n)
    throw io_error(file, ": field ", in_quotes(field), " must divide the number of heads (", head_count, "); it is ",
                   n);
  return n;
}
/// Rotary settings for heads of `head_size`. @param may_be_partial  whether the family rotates a part of each head
inline RotaryConfig read_rope(Json const& json, i64 head_size, std::string const& file, bool may_be_partial = false) {
  RotaryConfig rope = read_rope(json, file);
  char const* const name = present(json, "rope_parameters", file) ? "rope_parameters" : "rope_scaling";
  Json const* const inner = optional_object(json, name, file);
  FieldRange<double> const range{1e-6, 1};
  double const outer = optional<double>(json, "partial_rotary_factor", file, 1.0, range);
  double const part =
      inner ? optional<double>(*inner, "partial_rotary_factor", file + ": " + name, outer, range) : outer;
  if (part != 1 && !may_be_partial)
    throw io_error(file, ": field 'partial_rotary_factor' is ", part, ", which models of this family do not have");
  i64 const rotated = part == 1 ? head_size : static_cast<i64>(static_cast<double>(head_size) * part);
  if (rotated < 2 || rotated % 2)
    throw io_error(file, ": ", rotated, " elements of a head of ", head_size,
                   " are rotated; rotary positions need an even number of at least 2");
  rope.rotated = rotated == head_size ? 0 : rotated;
  return rope;
}
/// The op of an activation by its name in configurations.
inline Op const* read_activation(Json const& json, char const* field, char const* fallback, std::string const& file) {
  struct Known {
    char const* name;
    Op const* op;
  };
  static constexpr Known known[] = {{"silu", &silu},           {"swish", &silu},
                                    {"gelu", &gelu},           {"gelu_new", &gelu_tanh},
                                    {"gelu_fast", &gelu_tanh}, {"gelu_pytorch_tanh", &gelu_tanh}};
  std::string const name = optional<std::string>(json, field, file, std::string(fallback));
  std::string all;
  for (auto const& k : known) {
    if (name == k.name) return k.op;
    all += (all.empty() ? "" : ", ") + std::string(k.name);
  }
  throw io_error(file, ": field ", in_quotes(field), " is ", in_quotes(name), ", which is not known; known are ", all);
}
/// Window of each layer's attention: by `layer_types` where they are stated, else by `usual` (layer index -> window).
inline std::vector<i64> read_windows(Json const& json, i32 layers, i64 window, auto const& usual,
                                     std::string const& file) {
  std::vector<i64> windows;
  auto const types = optional<std::vector<std::string>>(json, "layer_types", file);
  if (types && static_cast<i64>(types->size()) != layers)
    throw io_error(file, ": field 'layer_types' has ", types->size(), " entries for ", layers, " layers");
  for (i32 l = 0; l < layers; ++l) {
    std::string const type = types ? (*types)[static_cast<std::size_t>(l)] : "";
    if (types && type != "full_attention" && type != "sliding_attention")
      throw io_error(file, ": field 'layer_types[", l, "]' is ", in_quotes(type),
                     "; known are full_attention and sliding_attention");
    if (type == "sliding_attention" && window < 1)
      throw io_error(file, ": field 'layer_types[", l, "]' is sliding_attention, but no sliding_window is stated");
    windows.push_back(!types ? usual(l) : type == "sliding_attention" ? window : 0);
  }
  return windows;
}
inline i64 read_window(Json const& json, std::string const& file) {
  return optional<i64>(json, "sliding_window", file, i64{0}, FieldRange<i64>{0, i64{1} << 40});
}

/// Ids of `key`, each a token of the vocabulary.
inline std::vector<i32> read_tokens(Json const& json, char const* key, i64 vocab_size, std::string const& file,
                                    i32 least = 0) {
  return one_or_more<i32>(json, key, file, FieldRange<i32>{least, static_cast<i32>(vocab_size - 1)});
}
/// End tokens of a file, whose other token ids are checked too.
inline std::vector<i32> read_end_tokens(Json const& json, i64 vocab_size, std::string const& file) {
  for (char const* other : {"bos_token_id", "unk_token_id"}) read_tokens(json, other, vocab_size, file);
  read_tokens(json, "pad_token_id", vocab_size, file, -1);  // old files say -1 for none
  return read_tokens(json, "eos_token_id", vocab_size, file);
}

}  // namespace model_config
}  // namespace dovetail
