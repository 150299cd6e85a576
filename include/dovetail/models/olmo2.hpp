// SPDX-License-Identifier: MIT
// OLMo 2 (OLMo team, 2024): norms behind attention and MLP instead of before, and of the queries and keys of all heads
// at once.
#pragma once
#include <dovetail/models/llama.hpp>

namespace dovetail {

/// x + norm(attention(x)), then x + norm(mlp(x)). The configuration is Llama's; its norms stand elsewhere.
constexpr Value olmo2_block(Builder& b, Value x, LlamaConfig const& c) {
  x = ops::residual(b, x, [&](Builder& inner, Value v) {
    return rms_norm(inner, attention(inner, v, c.attention(0)), c.norm("attention_norm"));
  });
  return ops::residual(
      b, x, [&](Builder& inner, Value v) { return rms_norm(inner, gated_mlp(inner, v, c.mlp()), c.norm("mlp_norm")); });
}

/// ids[batch,sequence] -> logits[batch,rows,vocab].
constexpr Value olmo2(Builder& b, Value ids, LlamaConfig const& c) {
  Value x = token_embedding(b, ids, c.embedding());
  x = ops::repeat(b, x, c.layers, [&](Builder& inner, Value v) { return olmo2_block(inner, v, c); });
  return lm_head(b, rms_norm(b, x, c.norm("final_norm")), c.head());
}

/// `olmo2_block` as a type.
template <LlamaConfig C>
struct Olmo2Block : Sequential<Residual<Attention<C.attention(0)>, RmsNorm<C.norm("attention_norm")>>,
                               Residual<GatedMlp<C.mlp()>, RmsNorm<C.norm("mlp_norm")>>> {};
/// The model as a type.
template <LlamaConfig C>
struct Olmo2 : Sequential<TokenEmbedding<C.embedding()>, Repeat<C.layers, Olmo2Block<C>>, RmsNorm<C.norm("final_norm")>,
                          LmHead<C.head()>> {};

/// Tensors of a checkpoint.
inline constexpr CheckpointNames olmo2_names = checkpoint_names({
    {"embedding.weight", "model.embed_tokens.weight"},
    {"head.weight", "lm_head.weight"},
    {"final_norm.weight", "model.norm.weight"},
    {"layers.*.attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    {"layers.*.mlp_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
    {"layers.*.attention.q.*", "model.layers.*.self_attn.q_proj.*"},
    {"layers.*.attention.k.*", "model.layers.*.self_attn.k_proj.*"},
    {"layers.*.attention.v.*", "model.layers.*.self_attn.v_proj.*"},
    {"layers.*.attention.o.*", "model.layers.*.self_attn.o_proj.*"},
    {"layers.*.attention.q_norm.weight", "model.layers.*.self_attn.q_norm.weight"},
    {"layers.*.attention.k_norm.weight", "model.layers.*.self_attn.k_norm.weight"},
    {"layers.*.mlp.gate.*", "model.layers.*.mlp.gate_proj.*"},
    {"layers.*.mlp.up.*", "model.layers.*.mlp.up_proj.*"},
    {"layers.*.mlp.down.*", "model.layers.*.mlp.down_proj.*"},
});

namespace models {

inline constexpr LlamaConfig olmo2_7b{4096,      32,   32, 32,    128,   11008, 100352,      false,
                                      rope(5e5), 1e-6, {}, false, false, false, QkNorm::full};

}  // namespace models
}  // namespace dovetail
