// SPDX-License-Identifier: MIT
// Field cases of loading: fused and turned tensors, vocabularies and blocks that the ranks do not divide, tied heads,
// and files that are not the model's. Files are made in memory from the tiny checkpoints of real families; what a rank
// read is known by its value, for every element of a file may hold its own place in it.
#include <dovetail/comm/threads.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/io/safetensors_writer.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/generate.hpp>
#include <dovetail/run/model_config.hpp>

#include "catch.hpp"
#include "field_cases.hpp"
#include "scratch.hpp"

namespace {

using namespace field_cases;

struct StoredTensor {
  std::vector<i64> shape{};
  std::vector<double> values{};
  Element element = Element::f32;
};
/// A checkpoint, to be changed and read.
struct Stored {
  Json config{};
  std::map<std::string, StoredTensor> tensors{};
};

std::filesystem::path fixtures() { return std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures" / "tiny"; }

Stored stored(std::string const& name) {
  Stored s{load_json(fixtures() / name / "config.json")};
  Checkpoint const file{fixtures() / name};
  for (auto const& t : file.tensors()) {
    StoredTensor& tensor = s.tensors[t.name];
    tensor.shape = t.shape;
    tensor.values.resize(static_cast<std::size_t>(t.elements()));
    std::vector<Range> box;
    for (i64 extent : t.shape) box.push_back({0, extent});
    read_slice(t, box, tensor.values.data());
  }
  return s;
}
std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(fixtures()))
    if (std::filesystem::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

template <class T>
void put(std::vector<std::byte>& bytes, T value) {
  auto const* raw = reinterpret_cast<std::byte const*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}
std::vector<std::byte> encoded(StoredTensor const& t) {
  std::vector<std::byte> bytes;
  for (double v : t.values) {
    auto const single = static_cast<float>(v);
    if (t.element == Element::f64) put(bytes, v);
    else if (t.element == Element::f16) put(bytes, f16_of(single));
    else if (t.element == Element::bf16) put(bytes, bf16_of(single));
    else if (t.element == Element::u8) put(bytes, static_cast<std::uint8_t>(v));
    else if (t.element == Element::i32) put(bytes, static_cast<std::int32_t>(v));
    else put(bytes, single);
  }
  return bytes;
}
std::vector<std::byte> file_of(Stored const& s) {
  dovetail::test::Scratch const scratch;
  std::vector<std::vector<std::byte>> kept;
  std::vector<TensorSource> sources;
  for (auto const& [name, t] : s.tensors) kept.push_back(encoded(t));
  for (std::size_t i = 0; auto const& [name, t] : s.tensors) sources.push_back({name, t.element, t.shape, kept[i++]});
  write_safetensors(scratch / "model.safetensors", sources);
  MappedFile const file(scratch / "model.safetensors");
  return {file.bytes().begin(), file.bytes().end()};
}

/// Model, file and plan of one layout, with the source that reads one for the other.
struct Opened {
  Model model;
  std::vector<std::byte> bytes;
  Checkpoint checkpoint{SafetensorsFile::from_memory(bytes, "model.safetensors")};
  LayoutPlan planned;
  CheckpointSource source;

  Opened(Stored const& s, std::string const& layout, CheckpointNames const& names = CheckpointNames{})
      : model(named(model_from(s.config, "config.json"), names)),
        bytes(file_of(s)),
        planned(plan_layout(read_layout(layout), model)),
        source(checkpoint, model, planned.view()) {}

  static Model named(Model m, CheckpointNames const& names) {
    if (!names.empty()) m.names = names;
    return m;
  }
  /// Calls f(role with its layer, shape, values) for every slice that a rank holds.
  void each_slice(auto const& f) const {
    Plan const plan = planned.view();
    for (i64 rank = 0; rank < plan.ranks(); ++rank) {
      RankPlace const place = plan.place_of(rank);
      for (auto const& p : plan.parameters) {
        if (p.stage != place.stage) continue;
        Tensor const& leaf = plan.values[p.value];
        WeightShape shape;
        shape.dims = leaf.dims;
        for (i32 k = 0; k < leaf.dims.size(); ++k)
          shape.ranges[k] = held(leaf.dims[k], leaf.places, plan.mesh(place.stage), place.at);
        std::vector<double> values(static_cast<std::size_t>(shape.elements()));
        each_iteration(plan, p.layer, p.loop, [&](i64, i64 layer) {
          std::string const role = indexed_name(p.name, layer);
          source(role, shape, std::span<double>(values));
          f(role, shape, values);
        });
      }
    }
  }
};

/// What opening and reading everything says; "" where all is well.
std::string refusal(Stored const& s, std::string const& layout = "single",
                    CheckpointNames const& names = CheckpointNames{}) {
  return dovetail::test::refusal<IoError>([&] { Opened(s, layout, names).each_slice([](auto const&...) {}); });
}

std::vector<std::vector<double>> logits_of(Stored const& s, std::string const& layout) {
  Opened const o(s, layout);
  GenerateRequest request;
  request.prompts = {{5, 17, 3, 44}, {60, 2}};
  request.max_new_tokens = 2, request.all_logits = true;
  ThreadWorld world(static_cast<int>(o.planned.view().ranks()));
  auto const result = generate(
      world, o.planned.view(), o.model, request, [](int) { return Reference(); }, o.source);
  auto all = result.sequences[0].logits;
  all.insert(all.end(), result.sequences[1].logits.begin(), result.sequences[1].logits.end());
  return all;
}

bool legal_for(Stored const& s, std::string const& layout) {
  Model const m = model_from(s.config, "config.json");
  return try_layout(read_layout(layout), m.layers, m.plan).owned.verdict.ok();
}

// ---- fused and turned tensors

/// How a family's file lies, written down as one would write the file: q, k and v of which head after one another.
struct Lying {
  std::vector<std::pair<char, i64>> heads{};  ///< empty: q, k and v are tensors of their own
  i64 head_size = 0;
  bool gate_before_up = false, turned = false;

  i64 first_row(char part, i64 head) const {
    auto const at = std::find(heads.begin(), heads.end(), std::pair(part, head));
    return (at - heads.begin()) * head_size;
  }
};
Lying lying_of(Json const& c) {
  Lying lying;
  std::string const type = c["model_type"];
  auto const append = [&](char part, i64 from, i64 to) {
    for (i64 h = from; h < to; ++h) lying.heads.emplace_back(part, h);
  };
  if (type == "gpt2") {
    i64 const n = c["n_head"];
    append('q', 0, n), append('k', 0, n), append('v', 0, n);
    lying.head_size = c["n_embd"].get<i64>() / n, lying.turned = true;
  } else if (type == "phi3") {
    i64 const n = c["num_attention_heads"], k = c["num_key_value_heads"];
    append('q', 0, n), append('k', 0, k), append('v', 0, k);
    lying.head_size = c["hidden_size"].get<i64>() / n, lying.gate_before_up = true;
  } else if (type == "falcon") {
    i64 const n = c["num_attention_heads"];
    bool const grouped = c["new_decoder_architecture"], one_key = c["multi_query"];
    i64 const groups = grouped ? c["num_kv_heads"].get<i64>() : one_key ? 1 : n;
    for (i64 g = 0; g < groups; ++g)
      append('q', g * n / groups, (g + 1) * n / groups), append('k', g, g + 1), append('v', g, g + 1);
    lying.head_size = c["hidden_size"].get<i64>() / n;
  }
  return lying;
}

/// Index in its stored tensor of the element of a parameter at these coordinates.
i64 index_in_file(Lying const& lying, std::string const& role, WeightShape const& shape, StoredTensor const& tensor,
                  i64 const* at) {
  auto const has = [&](char const* word) { return role.find(word) != std::string::npos; };
  i32 const dims = shape.dims.size();
  i32 rows_from = 1;  // dims that are rows
  i64 row = at[0];
  char const part = has("attention.q.") ? 'q' : has("attention.k.") ? 'k' : has("attention.v.") ? 'v' : 0;
  if (part) {
    rows_from = 2;
    row = lying.heads.empty() ? at[0] * shape.dims[1].size + at[1] : lying.first_row(part, at[0]) + at[1];
  } else if (lying.gate_before_up && has("mlp.up")) {
    row += shape.dims[0].size;
  } else if (has("q_norm") || has("k_norm")) {
    for (i32 k = 1; k < dims; ++k) row = row * shape.dims[k].size + at[k];
    return row;
  }
  i64 column = 0, columns = 1;
  for (i32 k = rows_from; k < dims; ++k) {
    column = column * shape.dims[k].size + at[k];
    columns *= shape.dims[k].size;
  }
  bool const turned = lying.turned && dims > rows_from && has("layers.");
  return turned ? column * tensor.shape[1] + row : row * columns + column;
}

/// Gives every element of the file a value of its own. @return the first value of each tensor
std::map<double, std::string> number_elements(Stored& s) {
  std::map<double, std::string> first;
  double next = 1;
  for (auto& [name, t] : s.tensors) {
    first[next] = name;
    for (double& v : t.values) v = next++;
  }
  return first;
}

TEST_CASE("every element of a rank's slice is the file's: fused, turned, followed by a head, of a vocabulary of 61") {
  for (auto const& name : fixture_names()) {
    Stored s = stored(name);
    auto const first = number_elements(s);
    Lying const lying = lying_of(s.config);
    for (char const* layout : {"single", "tp2", "tp3", "tp4", "tp5", "tp3=1:0:2", "tp2 pp2", "e2(embed)"}) {
      if (!legal_for(s, layout)) continue;
      i64 wrong = 0, seen = 0;
      std::string where;
      Opened(s, layout).each_slice([&](std::string const& role, WeightShape const& shape, auto const& values) {
        i64 at[max_dims] = {};
        for (i32 k = 0; k < shape.dims.size(); ++k) at[k] = shape.ranges[k].lo;
        for (double v : values) {
          auto const tensor = std::prev(first.upper_bound(v));
          StoredTensor const& t = s.tensors[tensor->second];
          wrong += v != tensor->first + static_cast<double>(index_in_file(lying, role, shape, t, at));
          if (wrong == 1 && where.empty()) where = role + " of " + tensor->second;
          ++seen;
          for (i32 k = shape.dims.size() - 1; k >= 0 && ++at[k] == shape.ranges[k].hi; --k)
            if (k) at[k] = shape.ranges[k].lo;
        }
      });
      INFO(name << ", " << layout << ": " << where);
      CHECK(wrong == 0);
      CHECK(seen > 1000);
    }
  }
}

TEST_CASE("fused q, k and v of unequal heads give the whole model's logits however the ranks cut them") {
  for (auto const& name : {"falcon-7-1", "falcon-mha", "falcon-new", "phi3-fused", "phi3-partial", "gpt2"}) {
    Stored const s = stored(name);
    auto const whole = logits_of(s, "single");
    int run = 0;
    for (auto const& layout : {"tp2", "tp3", "tp4", "tp5", "tp7", "tp3=2:0:1", "pp2 tp2", "dp2 tp2"}) {
      if (!legal_for(s, layout)) continue;
      INFO(name << ", " << layout);
      CHECK(logits_of(s, layout) == whole);
      ++run;
    }
    CHECK(run >= 6);
  }
}

TEST_CASE("a fused tensor whose parts do not fill it, or meet, is refused with the row") {
  Stored const s = stored("phi3-fused");  // 6 and 3 heads of 8: rows 0 to 48 to 72 to 96
  auto const with_slices = [&](StoredSlice const& k, StoredSlice const& v) {
    CheckpointNames names;
    for (auto n : model_from(s.config, "config.json").names) {
      if (std::string(n.role) == "layers.*.attention.k.*") n.slice = k;
      if (std::string(n.role) == "layers.*.attention.v.*") n.slice = v;
      names.push(n);
    }
    return refusal(s, "tp2", names);
  };
  CHECK(with_slices({.of = 96, .first = 48}, {.of = 96, .first = 72}) == "");
  CHECK(with_slices({.of = 96, .first = 72}, {.of = 96, .first = 48}) == "");  // v before k is a layout, too
  CHECK_THAT(with_slices({.of = 96, .first = 48}, {.of = 96, .first = 48}),
             Catch::Contains("model.layers.0.self_attn.qkv_proj.weight") && Catch::Contains("F32[96,48]") &&
                 Catch::Contains("row 48") && Catch::Contains("two parameters"));
  CHECK_THAT(with_slices({.of = 96, .first = 40}, {.of = 96, .first = 72}),
             Catch::Contains("row 40") && Catch::Contains("two parameters"));
  CHECK_THAT(with_slices({.of = 96, .first = 72}, {.of = 96, .first = 72, .block = 8, .stride = 16}),
             Catch::Contains("model's is [3,8,48] (kv_heads,head_dim,embed), one of several in 96 rows"));
  CHECK_THAT(with_slices({.of = 96, .first = 48, .block = 8, .stride = 16}, {.of = 96, .first = 72}),
             Catch::Contains("row 56") && Catch::Contains("no parameter"));
  for (i64 rows : {95, 97}) {
    Stored other = s;
    StoredTensor& t = other.tensors["model.layers.1.self_attn.qkv_proj.weight"];
    t.shape[0] = rows, t.values.resize(static_cast<std::size_t>(rows * 48));
    CHECK_THAT(refusal(other), Catch::Contains("model.layers.1.self_attn.qkv_proj.weight") &&
                                   Catch::Contains("F32[" + std::to_string(rows) + ",48]") &&
                                   Catch::Contains("one of several in 96 rows"));
  }
}

// ---- files that are not the model's

TEST_CASE("every tensor of every family is missed by name") {
  for (auto const& name : fixture_names()) {
    Stored const s = stored(name);
    for (auto const& [tensor, t] : s.tensors) {
      Stored other = s;
      other.tensors.erase(tensor);
      INFO(name);
      CHECK_THAT(refusal(other), Catch::Contains("model.safetensors") && Catch::Contains(tensor));
    }
  }
}

TEST_CASE("every tensor of every family is refused by name and both shapes where it has another one") {
  for (auto const& name : fixture_names()) {
    Stored const s = stored(name);
    CHECK(refusal(s) == "");
    for (auto const& [tensor, t] : s.tensors) {
      if (tensor.find(".1.") != std::string::npos || tensor.find(".2.") != std::string::npos) continue;  // as the first
      for (std::size_t dim = 0; dim < t.shape.size(); ++dim)
        for (i64 more : {-1, 1}) {
          Stored other = s;
          StoredTensor& changed = other.tensors[tensor];
          changed.shape[dim] += more;
          i64 elements = 1;
          for (i64 n : changed.shape) elements *= n;
          changed.values.resize(static_cast<std::size_t>(elements));
          INFO(name);
          CHECK_THAT(refusal(other), Catch::Contains("tensor '" + tensor + "'") &&
                                         Catch::Contains(shape_text("F32", changed.shape)) &&
                                         Catch::Contains("is config.json the one of this file?"));
        }
    }
  }
}

TEST_CASE("a tensor that the model does not read is refused by name, in every family") {
  for (auto const& name : fixture_names()) {
    INFO(name);
    Stored const s = stored(name);
    for (char const* ending : {"_scale", ".scales", "s"}) {
      Stored other = s;
      std::string const more = s.tensors.rbegin()->first + ending;
      other.tensors[more] = {{2}, {1, 1}};
      CHECK_THAT(refusal(other), Catch::Contains("holds 1 tensor that the model does not read: '" + more + "'"));
    }
  }
}

TEST_CASE("a configuration of another model than the file's is refused, whichever size it differs in") {
  int tried = 0;
  for (auto const& name : fixture_names()) {
    Stored const s = stored(name);
    auto const check = [&](char const* field, Json const& value) {
      Stored other = s;
      other.config[field] = value;
      INFO(name << ": " << field << " is " << value << " instead of " << s.config[field]);
      CHECK(refusal(other) != "");
      ++tried;
    };
    bool const ungrouped = s.config["model_type"] == "falcon" && s.config["new_decoder_architecture"] == false;
    for (char const* field : {"num_hidden_layers", "n_layer", "intermediate_size", "ffn_hidden_size", "n_inner",
                              "vocab_size", "n_positions"})
      if (s.config.contains(field) && s.config[field].is_number())
        for (int more : {-1, 1}) check(field, s.config[field].get<i64>() + more);
    for (auto const& [size, heads] : {std::pair("hidden_size", "num_attention_heads"), {"n_embd", "n_head"}})
      if (s.config.contains(size))
        for (int more : {-2, 2}) check(size, s.config[size].get<i64>() + more * s.config[heads].get<i64>());
    for (char const* field : {"num_key_value_heads", "num_kv_heads"})
      if (s.config.contains(field) && !ungrouped)
        for (i64 n = 1, all = s.config["num_attention_heads"]; n <= all; ++n)
          if (n != s.config[field].get<i64>()) check(field, n);
    for (char const* field : {"attention_bias", "mlp_bias", "bias", "multi_query", "parallel_attn"}) {
      bool const unused = std::string(field) == "multi_query" && !ungrouped;
      if (s.config.contains(field) && !unused && (std::string(field) != "parallel_attn" || ungrouped))
        check(field, !s.config[field].get<bool>());
    }
    if (s.config.contains("tie_word_embeddings") && s.config["tie_word_embeddings"] == true)
      check("tie_word_embeddings", false);
  }
  CHECK(tried > 150);
}

TEST_CASE("fused rows that would fill the tensor in another way are refused by the tensors beside it") {
  Stored s = stored("phi3-fused");  // 6 + 2 x 3 heads; 8 + 2 x 2 and 10 + 2 x 1 fill as many rows
  for (auto const& [heads, kv_heads] : {std::pair(8, 2), {10, 1}, {4, 4}}) {
    s.config["num_attention_heads"] = heads, s.config["num_key_value_heads"] = kv_heads, s.config["head_dim"] = 8;
    CHECK_THAT(refusal(s), Catch::Contains("self_attn.o_proj.weight") && Catch::Contains("F32[48,48]"));
  }
}

// ---- element types, packed weights

TEST_CASE("element types may differ from tensor to tensor; packed ones are refused by name and type") {
  for (auto const& name : {"llama-9-3", "gpt2", "falcon-new"}) {
    Stored s = stored(name);
    for (auto& [tensor, t] : s.tensors)
      for (std::size_t i = 0; i < t.values.size(); ++i) t.values[i] = static_cast<double>(i % 127) / 128 - 0.5;
    auto const exact = logits_of(s, "single");
    std::size_t next = 0;
    constexpr Element types[] = {Element::f16, Element::f32, Element::bf16, Element::f64};
    for (auto& [tensor, t] : s.tensors) t.element = types[next++ % 4];
    for (char const* layout : {"single", "tp2", "pp2", "tp4"}) CHECK(logits_of(s, layout) == exact);
    for (auto const& [element, word] : {std::pair(Element::u8, "U8"), {Element::i32, "I32"}}) {
      auto& [tensor, t] = *std::prev(s.tensors.end());
      t.element = element;
      CHECK_THAT(refusal(s, "tp2"), Catch::Contains("tensor '" + tensor + "', " + word) &&
                                        Catch::Contains("cannot be read as f64 without loss"));
    }
  }
}

TEST_CASE("a configuration that says the weights are packed is refused before any weight is read") {
  for (auto const& name : fixture_names()) {
    Stored s = stored(name);
    s.config["quantization_config"] = {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}};
    CHECK_THAT(refusal(s), Catch::Contains("config.json: field 'quantization_config'") &&
                               Catch::Contains("quantised weights are not read"));
  }
}

// ---- tied heads

TEST_CASE("a tied head comes with or without a tensor of its own, on one stage and on several, in every family") {
  int tied = 0;
  for (auto const& name : fixture_names()) {
    Stored s = stored(name);
    if (s.tensors.count("lm_head.weight")) continue;
    INFO(name);
    ++tied;
    auto const whole = logits_of(s, "single");
    for (auto const& [tensor, t] : s.tensors)
      if (t.shape[0] == s.config["vocab_size"].get<i64>() && t.shape.size() == 2) {
        s.tensors["lm_head.weight"] = t;
        break;
      }
    REQUIRE(s.tensors.count("lm_head.weight"));
    Stored const without = stored(name);
    for (char const* layout : {"pp2", "pp2 tp2", "pp2[tp2|tp1]", "tp4"}) {
      if (!legal_for(s, layout)) continue;
      CHECK(logits_of(s, layout) == whole);
      CHECK(logits_of(without, layout) == whole);
    }
  }
  CHECK(tied >= 8);
}

TEST_CASE("a head that is not tied is read on the last stage alone, and missed where the file lacks it") {
  for (auto const& name : {"llama-bias", "olmo2-full-norm", "qwen2-window"}) {
    Stored s = stored(name);
    std::map<std::string, int> reads;
    Opened(s, "pp2").each_slice([&](std::string const& role, auto const&...) { ++reads[role]; });
    CHECK(reads["embedding.weight"] == 1);
    CHECK(reads["head.weight"] == 1);
    s.tensors.erase("lm_head.weight");
    CHECK_THAT(refusal(s, "pp2"), Catch::Contains("has no tensor 'lm_head.weight'"));
  }
}

TEST_CASE("a file of the bare model lacks the prefix of every name, and a file that mixes both is refused") {
  for (auto const& [name, prefix] : {std::pair<std::string, std::string>{"gpt2", "transformer."},
                                     {"falcon-new", "transformer."},
                                     {"falcon-7-1", "transformer."}}) {
    Stored const s = stored(name);
    Stored bare{s.config}, mixed{s.config};
    bool first = true;
    for (auto const& [tensor, t] : s.tensors) {
      REQUIRE(tensor.starts_with(prefix));
      bare.tensors[tensor.substr(prefix.size())] = t;
      mixed.tensors[first ? tensor.substr(prefix.size()) : tensor] = t;
      first = false;
    }
    CHECK(logits_of(bare, "tp2") == logits_of(s, "single"));
    CHECK(refusal(mixed) != "");
  }
}

}  // namespace
