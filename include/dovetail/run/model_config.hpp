// SPDX-License-Identifier: MIT
// Models from a Hugging Face model directory: config.json names a family, whose reader makes the configuration that the
// types use too. A new family is a header in models/, one in run/families/, and a row here.
#pragma once
#include <dovetail/run/families/bert.hpp>
#include <dovetail/run/families/falcon.hpp>
#include <dovetail/run/families/gemma2.hpp>
#include <dovetail/run/families/gpt2.hpp>
#include <dovetail/run/families/llama.hpp>
#include <filesystem>

namespace dovetail {

/// A family: its `model_type` and its reader.
struct ModelFamily {
  char const* type;
  Model (*read)(Json const& config, std::string const& file);
};
/// The families that config.json may name.
inline constexpr ModelFamily model_families[] = {
    {"llama", &model_config::read_llama},   {"mistral", &model_config::read_mistral},
    {"qwen2", &model_config::read_qwen2},   {"qwen3", &model_config::read_qwen3},
    {"phi3", &model_config::read_phi3},     {"olmo2", &model_config::read_olmo2},
    {"gemma2", &model_config::read_gemma2}, {"gpt2", &model_config::read_gpt2},
    {"falcon", &model_config::read_falcon}, {"bert", &model_config::read_bert}};

/// The model that a configuration describes. @param file  for errors @throws IoError naming file and field
inline Model model_from(Json const& json, std::string const& file) {
  if (!json.is_object()) throw io_error(file, ": is not a JSON object");
  std::string const type = required<std::string>(json, "model_type", file);
  std::string known;
  for (ModelFamily const& family : model_families) {
    known += (known.empty() ? "" : ", ") + std::string(family.type);
    if (type != family.type) continue;
    Model m = family.read(json, file);
    m.family = type;
    i64 const context = optional<i64>(json, "max_position_embeddings", file, i64{0}, FieldRange<i64>{1, i64{1} << 40});
    if (!m.context_limit) m.context_limit = context;
    m.end_tokens = model_config::read_end_tokens(json, m.vocab_size, file);
    return m;
  }
  throw io_error(file, ": model_type ", in_quotes(type), " is not known; known are ", known);
}

/// Reads `config.json`, and the end tokens of `generation_config.json` where there is one, from a model directory.
/// @throws IoError naming file and field
inline Model read_model(std::filesystem::path const& directory) {
  auto const config = directory / "config.json", generation = directory / "generation_config.json";
  Model m = model_from(load_json(config), config.string());
  std::error_code ignored;
  if (std::filesystem::exists(generation, ignored)) {
    auto more = model_config::read_end_tokens(load_json(generation), m.vocab_size, generation.string());
    if (!more.empty()) m.end_tokens = std::move(more);
  }
  return m;
}

}  // namespace dovetail
