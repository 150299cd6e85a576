// SPDX-License-Identifier: MIT
// A model family of one's own: a configuration, a planning function of a few layers, names of its tensors. The rest
// (layouts, loading, generation) is there. It is run with weights made up from their names, in layouts given as text,
// and must say the same tokens in each. Returns 0 where it does.
#include "finish_output.hpp"

#include <cmath>
#include <cstdio>
#include <dovetail/comm/threads.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/dovetail.hpp>
#include <dovetail/run/generate.hpp>
namespace dt = dovetail;

// ---- the family: LayerNorm before rotary attention and a plain MLP, side by side

struct NeoConfig {
  dt::i64 embed_size = 0, head_count = 0, ffn_size = 0, vocab_size = 0;
  dt::i32 layers = 0;

  constexpr dt::LayerNormConfig norm(char const* role) const {
    return {dt::dims(dt::extent<dt::embed>(embed_size)), 1e-5, dt::name(role)};
  }
  constexpr dt::AttentionConfig attention() const {
    dt::AttentionConfig c;
    c.embed_size = embed_size, c.head_count = c.kv_head_count = head_count, c.head_size = embed_size / head_count;
    c.q_bias = c.k_bias = c.v_bias = c.o_bias = true;
    return c;
  }
  constexpr dt::MlpConfig mlp() const { return {embed_size, ffn_size, 1, &dt::gelu, true}; }
};

constexpr dt::Value neo_block(dt::Builder& b, dt::Value x, NeoConfig const& c) {
  return dt::ops::residual(b, x, [&](dt::Builder& inner, dt::Value v) {
    dt::Value const attended = dt::attention(inner, dt::layer_norm(inner, v, c.norm("attention_norm")), c.attention());
    return dt::ops::add(inner, attended, dt::mlp(inner, dt::layer_norm(inner, v, c.norm("mlp_norm")), c.mlp()));
  });
}

/// ids[batch,sequence] -> logits[batch,rows,vocab].
constexpr dt::Value neo(dt::Builder& b, dt::Value ids, NeoConfig const& c) {
  dt::Value x = dt::token_embedding(b, ids, {c.vocab_size, c.embed_size});
  x = dt::ops::repeat(b, x, c.layers, [&](dt::Builder& inner, dt::Value v) { return neo_block(inner, v, c); });
  return dt::lm_head(b, dt::layer_norm(b, x, c.norm("final_norm")), {c.vocab_size, c.embed_size});
}

/// The same as a type, so that layouts can be tried while the program is compiled.
template <NeoConfig C>
struct Neo {
  static constexpr dt::i32 depth = C.layers;
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) { return neo(b, x, C); }
};

constexpr NeoConfig small{24, 6, 40, 53, 4};
struct Tp : dt::Axis<"tp", 3> {};
struct Pp : dt::Axis<"pp", 2> {};
struct Layout : dt::Pipelined<Pp, dt::TensorSharded<Tp, Neo<small>>> {};
// Both halves of a block are partial sums; they meet in one all-reduce a layer.
static_assert(dt::plan_of<Layout>.executed(dt::step::all_reduce) == small.layers + 2);
static_assert(dt::plan_of<Layout>.ranks() == 6 && dt::coverage(dt::plan_of<Layout>).ok());

// ---- running it

/// A number for each element, from the parameter's name and the element's place in the whole.
void fill(std::string const& name, dt::WeightShape const& shape, std::span<double> room) {
  dt::i64 at[dt::max_dims]{};
  for (double& weight : room) {
    double phase = static_cast<double>(name.size());
    for (char c : name) phase = 0.7 * phase + c;
    for (dt::i32 k = 0; k < shape.dims.size(); ++k)
      phase = 1.3 * phase + static_cast<double>(k + 2) * static_cast<double>(shape.ranges[k].lo + at[k]);
    weight = (name.ends_with("norm.weight") ? 1 : 0) + 0.3 * std::sin(phase);
    for (dt::i32 k = shape.dims.size() - 1; k >= 0 && ++at[k] == shape.ranges[k].size(); --k) at[k] = 0;
  }
}

std::vector<dt::i32> tokens_of(char const* layout) {
  dt::Model model;
  model.family = "neo", model.layers = small.layers, model.vocab_size = small.vocab_size;
  model.plan = [](dt::Builder& b, dt::Value ids) { return neo(b, ids, small); };
  auto const planned = dt::plan_layout(dt::read_layout(layout), model);
  dt::GenerateRequest request;
  request.prompts = {{5, 17, 3, 44}}, request.max_new_tokens = 12;
  dt::ThreadWorld world(static_cast<int>(planned.view().ranks()));
  return dt::generate(
             world, planned.view(), model, request, [](int) { return dt::Reference(); }, &fill)
      .sequences[0]
      .tokens;
}

int main() {
  try {
    auto const whole = tokens_of("single");
    bool all = whole.size() == 12;
    for (char const* layout : {"tp3", "tp4", "pp2 tp3", "pp3=2,1,1", "tp2=2:1", "pp2[tp2|sp2]"}) {
      bool const same = tokens_of(layout) == whole;
      std::printf("%-14s %s\n", layout, same ? "the same tokens" : "OTHER tokens");
      all = all && same;
    }
    return finish_output("own_family", all ? 0 : 1);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "own_family: %s\n", error.what());
    return 1;
  }
}
