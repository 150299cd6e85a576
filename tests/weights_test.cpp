// SPDX-License-Identifier: MIT
// Weights from files into ranks: half types, tied heads with and without a stored head on one stage and on two, and one
// clear error for names and shapes that do not fit the model. Layouts that cut inside stored dims read exactly their
// slices.
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

std::filesystem::path tiny() { return std::filesystem::path(DOVETAIL_TESTS_DIR) / "fixtures" / "tiny" / "llama-9-3"; }

Tensors read_all() {
  Tensors all;
  dt::Checkpoint const file{tiny()};
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

std::vector<std::vector<double>> logits_of(std::vector<std::byte> const& file, std::string const& layout) {
  dt::Model const model = dt::read_model(tiny());
  dt::Checkpoint const checkpoint(dt::SafetensorsFile::from_memory(file, "memory"));
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

std::string refusal(Tensors const& tensors) {
  try {
    logits_of(file_of(tensors), "tp2");
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
