// SPDX-License-Identifier: MIT
// Weights from files into ranks: half types, tied heads with and without a stored head on one stage and on two, fused
// and transposed tensors, names without their prefix, several files, and one clear error for names, shapes and numbers
// that do not fit the model. Layouts that cut inside stored dims read exactly their slices.
#include "catch.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/io/safetensors_writer.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/generate.hpp>
#include <dovetail/run/model_config.hpp>
#include <map>

#include "scratch.hpp"

namespace dt = dovetail;

namespace {

using Tensors = std::map<std::string, std::pair<std::vector<dt::i64>, std::vector<float>>>;

std::filesystem::path tiny(std::string const& name = "llama-9-3") {
  return std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures" / "tiny" / name;
}

Tensors read_all(std::string const& name = "llama-9-3") {
  Tensors all;
  dt::Checkpoint const file{tiny(name)};
  for (auto const& t : file.tensors()) {
    std::vector<float> values(static_cast<std::size_t>(t.elements()));
    std::vector<dt::Range> box;
    for (dt::i64 extent : t.shape) box.push_back({0, extent});
    dt::read_slice(t, box, values.data());
    all[t.name] = {t.shape, std::move(values)};
  }
  return all;
}

/// The same tensors in memory as a safetensors file of this element type; halves keep the upper 16 bits.
std::vector<std::byte> file_of(Tensors const& tensors, dt::Element element = dt::Element::f32) {
  dt::test::Scratch const scratch;
  auto const path = scratch.path() / "model.safetensors";
  std::vector<std::vector<std::uint16_t>> halves;
  halves.reserve(tensors.size());
  std::vector<dt::TensorSource> sources;
  for (auto const& [name, tensor] : tensors) {
    auto const& [shape, values] = tensor;
    if (element == dt::Element::f32) {
      sources.push_back(dt::tensor_source(name, shape, values));
      continue;
    }
    auto& half = halves.emplace_back();
    for (float v : values) half.push_back(element == dt::Element::bf16 ? dt::bf16_of(v) : dt::f16_of(v));
    sources.push_back({name, element, shape, std::as_bytes(std::span(half))});
  }
  dt::write_safetensors(path, sources);
  dt::MappedFile const file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

std::vector<std::vector<double>> logits_of(dt::Checkpoint const& checkpoint, std::string const& layout,
                                           std::string const& name) {
  dt::Model const model = dt::read_model(tiny(name));
  auto const planned = dt::plan_layout(dt::read_layout(layout), model);
  dt::Plan const plan = planned.view();
  dt::CheckpointSource const source(checkpoint, model, plan);
  dt::GenerateRequest request;
  request.prompts = {{5, 17, 3, 44}};
  request.max_new_tokens = 2, request.all_logits = true;
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  return dt::generate(
             world, plan, model, request, [](int) { return dt::Reference(); }, source)
      .sequences[0]
      .logits;
}

std::vector<std::vector<double>> logits_of(std::vector<std::byte> const& file, std::string const& layout,
                                           std::string const& name = "llama-9-3") {
  return logits_of(dt::Checkpoint(dt::SafetensorsFile::from_memory(file, "memory")), layout, name);
}

std::string refusal(Tensors const& tensors, std::string const& name = "llama-9-3") {
  try {
    logits_of(file_of(tensors), "tp2", name);
  } catch (dt::IoError const& e) {
    return e.what();
  }
  return "";
}

char const* const layouts[] = {"tp4", "tp9", "pp2", "pp2 tp2", "dp2 pp3", "tp3=1:5:3"};

}  // namespace

TEST_CASE("f32, f16 and bf16 files load the same in every layout") {
  auto const tensors = read_all();
  auto const exact = logits_of(file_of(tensors), "single");
  for (auto const element : {dt::Element::f32, dt::Element::f16, dt::Element::bf16}) {
    auto const file = file_of(tensors, element);
    auto const whole = logits_of(file, "single");
    CHECK((whole == exact) == (element == dt::Element::f32));
    for (std::size_t v = 0; v < whole[0].size(); ++v) CHECK(std::abs(whole[0][v] - exact[0][v]) < 0.1);
    for (auto const* layout : layouts) {
      INFO(dt::name_of(element) << ", layout " << layout);
      CHECK(logits_of(file, layout) == whole);
    }
  }
}

TEST_CASE("a tied head works on one stage and on two, whether the file stores it again or not") {
  auto tensors = read_all();
  REQUIRE(tensors.count("lm_head.weight") == 0);
  auto const whole = logits_of(file_of(tensors), "single");
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  auto const stored = file_of(tensors);
  for (auto const* layout : layouts) {
    INFO("layout " << layout);
    CHECK(logits_of(stored, layout) == whole);
    CHECK(logits_of(file_of(read_all()), layout) == whole);
  }
}

TEST_CASE("a stored head that differs from the embedding it is tied to is refused") {
  auto tensors = read_all();
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  tensors["lm_head.weight"].second[11] += 1;
  CHECK_THAT(refusal(tensors), Catch::Contains("'lm_head.weight' differs from 'model.embed_tokens.weight'") &&
                                   Catch::Contains("'tie_word_embeddings' must be false"));
}

TEST_CASE("names and shapes that do not fit the model are named") {
  using Catch::Matchers::Contains;
  auto tensors = read_all();
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  CHECK_THAT(refusal(tensors), Contains("model.layers.1.mlp.up_proj.weight"));

  tensors = read_all();
  tensors["model.layers.0.self_attn.q_proj.bias"] = {{36}, std::vector<float>(36)};
  CHECK_THAT(refusal(tensors), Contains("model.layers.0.self_attn.q_proj.bias") && Contains("does not read"));

  tensors = read_all();
  auto& norm = tensors["model.norm.weight"];
  norm = {{35}, std::vector<float>(35)};
  CHECK_THAT(refusal(tensors), Contains("model.norm.weight") && Contains("[35]") && Contains("[36]"));

  tensors = read_all();
  auto& up = tensors["model.layers.2.mlp.up_proj.weight"].first;
  std::swap(up[0], up[1]);  // transposed
  CHECK_THAT(refusal(tensors),
             Contains("model.layers.2.mlp.up_proj.weight") && Contains("[36,50]") && Contains("[50,36]"));

  tensors = read_all();
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{2}, std::vector<float>(2)};
  CHECK(refusal(tensors).empty());  // a table that models compute: rightly left alone
}

TEST_CASE("fused and transposed tensors are cut as the layout says, in files of any element type") {
  for (char const* name : {"gpt2", "phi3-fused", "falcon-7-1", "falcon-mha", "falcon-new"}) {
    auto const tensors = read_all(name);
    for (auto const element : {dt::Element::f32, dt::Element::bf16}) {
      auto const file = file_of(tensors, element);
      auto const whole = logits_of(file, "single", name);
      for (auto const* layout : {"tp4", "pp2 tp2", "tp3=1:3:1", "tp2(embed)", "dp2 pp2"}) {
        INFO(name << " as " << dt::name_of(element) << ", layout " << layout);
        CHECK(logits_of(file, layout, name) == whole);
      }
    }
  }
}

TEST_CASE("a fused tensor of other rows than the model's is refused") {
  using Catch::Matchers::Contains;
  auto tensors = read_all("phi3-fused");
  auto& fused = tensors["model.layers.1.self_attn.qkv_proj.weight"];
  fused.first[0] += 8, fused.second.resize(fused.second.size() + 8 * 48);
  CHECK_THAT(refusal(tensors, "phi3-fused"), Contains("model.layers.1.self_attn.qkv_proj.weight") &&
                                                 Contains("[104,48]") && Contains("one of several in 96 rows"));
  tensors = read_all("gpt2");
  auto& turned = tensors["transformer.h.0.attn.c_attn.weight"].first;
  std::swap(turned[0], turned[1]);  // as most families store it
  CHECK_THAT(refusal(tensors, "gpt2"), Contains("transformer.h.0.attn.c_attn.weight") && Contains("[108,36]") &&
                                           Contains("stored the other way round"));
}

TEST_CASE("every row of a fused tensor is read by exactly one parameter") {
  using Catch::Matchers::Contains;
  auto const proof = [](auto const& change) -> std::string {
    dt::Model model = dt::read_model(tiny("phi3-fused"));
    change(model);
    auto const planned = dt::plan_layout(dt::read_layout("single"), model);
    dt::Checkpoint const checkpoint{tiny("phi3-fused")};
    try {
      dt::CheckpointSource const source(checkpoint, model, planned.view());
    } catch (dt::IoError const& e) {
      return e.what();
    }
    return "";
  };
  auto const slice_of = [](dt::Model& m, std::string const& role) -> dt::StoredSlice& {
    for (auto& n : m.names)
      if (n.role == role) return n.slice;
    throw std::out_of_range(role);
  };
  CHECK(proof([](dt::Model&) {}).empty());
  CHECK_THAT(proof([&](dt::Model& m) { slice_of(m, "layers.*.mlp.up.*").first = 0; }),
             Contains("row 0 of tensor 'model.layers.0.mlp.gate_up_proj.weight'") && Contains("two parameters"));
  CHECK_THAT(proof([&](dt::Model& m) { slice_of(m, "layers.*.attention.v.*").first -= 4; }),
             Contains("qkv_proj.weight") && Contains("two parameters"));
  CHECK_THAT(proof([&](dt::Model& m) {
               slice_of(m, "layers.*.attention.k.*").first = slice_of(m, "layers.*.attention.v.*").first;
             }),
             Contains("row 48 of tensor 'model.layers.0.self_attn.qkv_proj.weight'") && Contains("no parameter"));
}

TEST_CASE("a file of the bare model lacks the prefix of its names") {
  auto tensors = read_all("gpt2");
  auto const whole = logits_of(file_of(tensors), "single", "gpt2");
  Tensors bare;
  for (auto const& [name, tensor] : tensors) bare[name.substr(std::string("transformer.").size())] = tensor;
  bare["h.0.attn.bias"] = {{1, 1, 4, 4}, std::vector<float>(16)};  // a mask of old files
  for (char const* layout : {"single", "tp3"}) CHECK(logits_of(file_of(bare), layout, "gpt2") == whole);
}

TEST_CASE("weights in several files load as from one") {
  for (char const* name : {"llama-9-3", "gpt2", "falcon-new"}) {
    auto const tensors = read_all(name);
    dt::test::Scratch const scratch;
    std::string map;
    std::vector<std::vector<dt::TensorSource>> files(3);
    std::size_t next = 0;
    for (auto const& [tensor, content] : tensors) {
      std::size_t const file = next++ % files.size();
      files[file].push_back(dt::tensor_source(tensor, content.first, content.second));
      map += (map.empty() ? "" : ", ") + ('"' + tensor + "\": \"part-" + std::to_string(file) + ".safetensors\"");
    }
    for (std::size_t f = 0; f < files.size(); ++f)
      dt::write_safetensors(scratch.path() / ("part-" + std::to_string(f) + ".safetensors"), files[f]);
    scratch.write("model.safetensors.index.json", "{\"metadata\": {}, \"weight_map\": {" + map + "}}");
    dt::Checkpoint const sharded{scratch.path()};
    auto const whole = logits_of(file_of(tensors), "single", name);
    for (char const* layout : {"single", "tp4", "pp2 tp2"}) {
      INFO(name << ", layout " << layout);
      CHECK(logits_of(sharded, layout, name) == whole);
    }
  }
}

TEST_CASE("a weight that is no number is named with its place") {
  using Catch::Matchers::Contains;
  auto tensors = read_all("gpt2");
  tensors["transformer.h.1.mlp.c_fc.weight"].second[144 * 2 + 5] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(logits_of(file_of(tensors), "tp2", "gpt2"),
                    Contains("transformer.h.1.mlp.c_fc.weight") && Contains("[2,5] is NaN"));
  tensors = read_all();
  tensors["model.norm.weight"].second[7] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH(logits_of(file_of(tensors), "pp2"), Contains("model.norm.weight") && Contains("[7] is infinite"));
}
