// SPDX-License-Identifier: MIT
// Gemma 2 (Gemma team, 2024): norms before and after attention and MLP that scale by 1 + weight, a scaled embedding,
// caps on scores and logits, a stated query scale, and a sliding window in every other layer.
#pragma once
#include <dovetail/models/llama.hpp>

namespace dovetail {

/// Sizes and options of a Gemma 2 model.
struct Gemma2Config {
  i64 embed_size = 0;
  i32 layers = 0;
  i64 head_count = 0, kv_head_count = 0, head_size = 0, ffn_size = 0, vocab_size = 0;
  double embedding_scale = 1;  ///< sqrt(embed_size)
  double query_scale = 0;      ///< of the scores; 0: 1/sqrt(head_size)
  double score_cap = 0, logit_cap = 0;
  LayerWindows windows{};
  RotaryConfig rope{};
  double epsilon = 1e-6;
  bool tied = true, attention_bias = false;
  Op const* activation = &gelu_tanh;

  constexpr EmbeddingConfig embedding() const {
    return EmbeddingConfig{vocab_size, embed_size, Name{"embedding.weight"}, embedding_scale};
  }
  constexpr RmsNormConfig norm(char const* role) const {
    return RmsNormConfig{dims(extent<embed>(embed_size)), epsilon, name(role), true};
  }
  constexpr AttentionConfig attention(i64 window) const {
    AttentionConfig c;
    c.embed_size = embed_size, c.head_count = head_count, c.kv_head_count = kv_head_count, c.head_size = head_size;
    c.q_bias = c.k_bias = c.v_bias = c.o_bias = attention_bias;
    c.rope = rope, c.window = window, c.scale = query_scale, c.softcap = score_cap;
    return c;
  }
  constexpr MlpConfig mlp() const { return MlpConfig{embed_size, ffn_size, 1, activation}; }
  constexpr LmHeadConfig head() const {
    return LmHeadConfig{vocab_size, embed_size, false, name(tied ? "embedding.weight" : "head.weight"), logit_cap};
  }
};

/// x + norm(attention(norm(x))), then x + norm(mlp(norm(x))).
constexpr Value gemma2_block(Builder& b, Value x, Gemma2Config const& c, i64 window) {
  x = ops::residual(b, x, [&](Builder& i, Value v) {
    v = attention(i, rms_norm(i, v, c.norm("attention_norm")), c.attention(window));
    return rms_norm(i, v, c.norm("attention_post_norm"));
  });
  return ops::residual(b, x, [&](Builder& i, Value v) {
    v = gated_mlp(i, rms_norm(i, v, c.norm("mlp_norm")), c.mlp());
    return rms_norm(i, v, c.norm("mlp_post_norm"));
  });
}

/// ids[batch,sequence] -> logits[batch,rows,vocab]. @param window_of  layer index -> window of its attention
constexpr Value gemma2(Builder& b, Value ids, Gemma2Config const& c, auto const& window_of) {
  Value x = token_embedding(b, ids, c.embedding());
  x = ops::cycle(b, x, c.layers, period_of(c.layers, window_of),
                 [&](Builder& inner, Value v, i32 kind) { return gemma2_block(inner, v, c, window_of(kind)); });
  return lm_head(b, rms_norm(b, x, c.norm("final_norm")), c.head());
}
constexpr Value gemma2(Builder& b, Value ids, Gemma2Config const& c) { return gemma2(b, ids, c, c.windows); }

/// The layer of a model's pattern of windows that stands at `Layer`.
template <Gemma2Config C, i32 Layer>
struct Gemma2Block {
  static constexpr Value apply(Builder& b, Value x) { return gemma2_block(b, x, C, C.windows(Layer)); }
};
/// The layers of one model by their index: what WindowedLayers deals.
template <Gemma2Config C>
struct Gemma2Kinds {
  template <i32 Layer>
  using Block = Gemma2Block<C, Layer>;
};
/// The model as a type.
template <Gemma2Config C>
struct Gemma2
    : Sequential<TokenEmbedding<C.embedding()>, WindowedLayers<C.layers, C.windows, Gemma2Kinds<C>::template Block>,
                 RmsNorm<C.norm("final_norm")>, LmHead<C.head()>> {};

/// Tensors of a checkpoint.
inline constexpr CheckpointNames gemma2_names = checkpoint_names({
    {"embedding.weight", "model.embed_tokens.weight"},
    {"head.weight", "lm_head.weight"},
    {"final_norm.weight", "model.norm.weight"},
    {"layers.*.attention_norm.weight", "model.layers.*.input_layernorm.weight"},
    {"layers.*.attention_post_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    {"layers.*.mlp_norm.weight", "model.layers.*.pre_feedforward_layernorm.weight"},
    {"layers.*.mlp_post_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
    {"layers.*.attention.q.*", "model.layers.*.self_attn.q_proj.*"},
    {"layers.*.attention.k.*", "model.layers.*.self_attn.k_proj.*"},
    {"layers.*.attention.v.*", "model.layers.*.self_attn.v_proj.*"},
    {"layers.*.attention.o.*", "model.layers.*.self_attn.o_proj.*"},
    {"layers.*.mlp.gate.*", "model.layers.*.mlp.gate_proj.*"},
    {"layers.*.mlp.up.*", "model.layers.*.mlp.up_proj.*"},
    {"layers.*.mlp.down.*", "model.layers.*.mlp.down_proj.*"},
});

namespace models {

/// Gemma 2 2B.
constexpr Gemma2Config gemma2_2b_config() {
  Gemma2Config c;
  c.embed_size = 2304, c.layers = 26, c.head_count = 8, c.kv_head_count = 4, c.head_size = 256, c.ffn_size = 9216;
  c.vocab_size = 256000, c.embedding_scale = 48, c.query_scale = 1.0 / 16, c.score_cap = 50, c.logit_cap = 30;
  c.windows = LayerWindows{4096, 2};
  return c;
}
inline constexpr Gemma2Config gemma2_2b = gemma2_2b_config();

}  // namespace models
}  // namespace dovetail
