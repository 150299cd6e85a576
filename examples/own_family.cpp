// SPDX-License-Identifier: MIT
// A model family of one's own: a configuration, a planning function of a few layers, names of its tensors. The rest
// (layouts, loading, generation) is there. It runs with made-up weights, in layouts given as text, and must give the
// unsplit model's logits bit for bit.
#include "finish_output.hpp"
#include "made_up_run.hpp"

#include <algorithm>
#include <cstdio>
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

/// LayerNorm before rotary attention and a plain MLP, which stand side by side.
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
    dt::Value const thought = dt::mlp(inner, dt::layer_norm(inner, v, c.norm("mlp_norm")), c.mlp());
    return dt::ops::add(inner, attended, thought);
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
static_assert(dt::runs_on<Layout, dt::Reference>);

/// Its tensors in a checkpoint: q, k and v are rows of one.
constexpr dt::CheckpointNames neo_names(NeoConfig const& c) {
  dt::i64 const n = c.embed_size;
  return dt::checkpoint_names({
      {"embedding.weight", "wte.weight"},
      {"head.weight", "lm_head.weight"},
      {"final_norm.*", "ln_f.*"},
      {"layers.*.attention_norm.*", "h.*.ln_1.*"},
      {"layers.*.mlp_norm.*", "h.*.ln_2.*"},
      {"layers.*.attention.q.*", "h.*.attn.qkv.*", {.of = 3 * n}},
      {"layers.*.attention.k.*", "h.*.attn.qkv.*", {.of = 3 * n, .first = n}},
      {"layers.*.attention.v.*", "h.*.attn.qkv.*", {.of = 3 * n, .first = 2 * n}},
      {"layers.*.attention.o.*", "h.*.attn.out.*"},
      {"layers.*.mlp.*.*", "h.*.mlp.*.*"},
  });
}
static_assert(std::ranges::none_of(dt::plan_of<Layout>.parameters, [](dt::Parameter const& p) {
  return dt::stored_place(neo_names(small), p.name.chars).name.empty();
}));

int main() {
  try {
    dt::Model model;
    model.family = "neo", model.layers = small.layers, model.vocab_size = small.vocab_size;
    model.plan = [](dt::Builder& b, dt::Value ids) { return neo(b, ids, small); };
    model.names = neo_names(small);
    std::vector<std::uint64_t> whole;
    bool all = true;
    for (char const* text : {"single", "tp3", "tp4", "pp2 tp3", "pp3=2,1,1", "tp2=2:1", "pp2[tp2|sp2]"}) {
      auto const planned = dt::plan_layout(dt::read_layout(text), model);
      auto const bits = logit_bits(planned.view(), small.vocab_size);
      if (whole.empty()) whole = bits;
      std::printf("%-14s %s\n", text, bits == whole ? "the same bits" : "OTHER bits");
      all = all && bits == whole && !bits.empty();
    }
    return finish_output("own_family", all ? 0 : 1);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "own_family: %s\n", error.what());
    return 1;
  }
}
