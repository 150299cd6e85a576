// SPDX-License-Identifier: MIT
// GPT-2 (Radford et al., 2019): learned positions, LayerNorm before attention and MLP, biases everywhere, a tied head.
// Its checkpoints keep every matrix as inputs x outputs, and q, k and v in one.
#pragma once
#include <dovetail/layer/attention.hpp>
#include <dovetail/layer/compose.hpp>
#include <dovetail/layer/embedding.hpp>
#include <dovetail/layer/mlp.hpp>
#include <dovetail/models/checkpoint_names.hpp>

namespace dovetail {

/// Sizes and options of a GPT-2 model.
struct Gpt2Config {
  i64 embed_size = 0;
  i32 layers = 0;
  i64 head_count = 0, ffn_size = 0, vocab_size = 0, position_count = 0;
  double epsilon = 1e-5;
  bool tied = true;
  Op const* activation = &gelu_tanh;

  constexpr EmbeddingConfig embedding() const { return EmbeddingConfig{vocab_size, embed_size}; }
  constexpr AddedRowConfig positions() const {
    return AddedRowConfig{extent<dovetail::positions>(position_count), embed_size};
  }
  constexpr LayerNormConfig norm(char const* role) const {
    return LayerNormConfig{dims(extent<embed>(embed_size)), epsilon, name(role)};
  }
  constexpr AttentionConfig attention() const {
    AttentionConfig c;
    c.embed_size = embed_size, c.head_count = c.kv_head_count = head_count, c.head_size = embed_size / head_count;
    c.q_bias = c.k_bias = c.v_bias = c.o_bias = true, c.rotary = false;
    return c;
  }
  constexpr MlpConfig mlp() const { return MlpConfig{embed_size, ffn_size, 1, activation, true}; }
  constexpr LmHeadConfig head() const {
    return LmHeadConfig{vocab_size, embed_size, false, name(tied ? "embedding.weight" : "head.weight")};
  }
};

/// x + attention(norm(x)), then x + mlp(norm(x)).
constexpr Value gpt2_block(Builder& b, Value x, Gpt2Config const& c) {
  x = ops::residual(b, x, [&](Builder& inner, Value v) {
    return attention(inner, layer_norm(inner, v, c.norm("attention_norm")), c.attention());
  });
  return ops::residual(
      b, x, [&](Builder& inner, Value v) { return mlp(inner, layer_norm(inner, v, c.norm("mlp_norm")), c.mlp()); });
}

/// ids[batch,sequence] -> logits[batch,rows,vocab].
constexpr Value gpt2(Builder& b, Value ids, Gpt2Config const& c) {
  Value x = added_row(b, token_embedding(b, ids, c.embedding()), c.positions());
  x = ops::repeat(b, x, c.layers, [&](Builder& inner, Value v) { return gpt2_block(inner, v, c); });
  return lm_head(b, layer_norm(b, x, c.norm("final_norm")), c.head());
}

/// `gpt2_block` as a type.
template <Gpt2Config C>
struct Gpt2Block : Sequential<Residual<LayerNorm<C.norm("attention_norm")>, Attention<C.attention()>>,
                              Residual<LayerNorm<C.norm("mlp_norm")>, Mlp<C.mlp()>>> {};
/// The model as a type.
template <Gpt2Config C>
struct Gpt2 : Sequential<TokenEmbedding<C.embedding()>, AddedRow<C.positions()>, Repeat<C.layers, Gpt2Block<C>>,
                         LayerNorm<C.norm("final_norm")>, LmHead<C.head()>> {};

/// Tensors of a checkpoint.
constexpr CheckpointNames gpt2_names(Gpt2Config const& c) {
  i64 const n = c.embed_size;
  return checkpoint_names({
      {"embedding.weight", "transformer.wte.weight"},
      {"positions.weight", "transformer.wpe.weight"},
      {"head.weight", "lm_head.weight"},
      {"final_norm.*", "transformer.ln_f.*"},
      {"layers.*.attention_norm.*", "transformer.h.*.ln_1.*"},
      {"layers.*.mlp_norm.*", "transformer.h.*.ln_2.*"},
      {"layers.*.attention.q.*", "transformer.h.*.attn.c_attn.*", {.of = 3 * n, .transposed = true}},
      {"layers.*.attention.k.*", "transformer.h.*.attn.c_attn.*", {.of = 3 * n, .first = n, .transposed = true}},
      {"layers.*.attention.v.*", "transformer.h.*.attn.c_attn.*", {.of = 3 * n, .first = 2 * n, .transposed = true}},
      {"layers.*.attention.o.*", "transformer.h.*.attn.c_proj.*", {.transposed = true}},
      {"layers.*.mlp.up.*", "transformer.h.*.mlp.c_fc.*", {.transposed = true}},
      {"layers.*.mlp.down.*", "transformer.h.*.mlp.c_proj.*", {.transposed = true}},
  });
}
/// Masks that old files carry.
inline constexpr char const* gpt2_unread[] = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};

namespace models {

inline constexpr Gpt2Config gpt2_small{768, 12, 12, 3072, 50257, 1024};

}  // namespace models
}  // namespace dovetail
