// SPDX-License-Identifier: MIT
// Llama-shaped models (Touvron et al., 2023): pre-norm blocks of rotary attention and a gated MLP. Mistral, Qwen2.5,
// Qwen3 and Phi-3 are such models with other options. One configuration serves the type and the run-time function;
// `names` maps role paths to the tensors of a Hugging Face checkpoint.
#pragma once
#include <dovetail/layer/attention.hpp>
#include <dovetail/layer/compose.hpp>
#include <dovetail/layer/embedding.hpp>
#include <dovetail/layer/mlp.hpp>
#include <dovetail/models/checkpoint_names.hpp>
#include <dovetail/models/layer_windows.hpp>

namespace dovetail {

/// Sizes and options of a Llama-shaped model.
struct LlamaConfig {
  i64 embed_size = 0;
  i32 layers = 0;
  i64 head_count = 0, kv_head_count = 0, head_size = 0, ffn_size = 0, vocab_size = 0;
  bool tied = false;  ///< the head reads the embedding's matrix
  RotaryConfig rope{};
  double epsilon = 1e-5;
  LayerWindows windows{};
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  QkNorm qk_norm = QkNorm::none;

  constexpr EmbeddingConfig embedding() const { return EmbeddingConfig{vocab_size, embed_size}; }
  constexpr RmsNormConfig norm(char const* role) const {
    return RmsNormConfig{dims(extent<embed>(embed_size)), epsilon, name(role)};
  }
  constexpr AttentionConfig attention(i64 window) const {
    AttentionConfig c;
    c.embed_size = embed_size, c.head_count = head_count, c.kv_head_count = kv_head_count, c.head_size = head_size;
    c.q_bias = c.k_bias = c.v_bias = qkv_bias, c.o_bias = o_bias;
    c.qk_norm = qk_norm, c.epsilon = epsilon, c.rope = rope, c.window = window;
    return c;
  }
  constexpr AttentionConfig attention() const { return attention(windows(0)); }  ///< of the first layer
  constexpr MlpConfig mlp() const {
    MlpConfig c;
    c.embed_size = embed_size, c.ffn_size = ffn_size, c.bias = mlp_bias;
    return c;
  }
  constexpr LmHeadConfig head() const {
    return LmHeadConfig{vocab_size, embed_size, false, name(tied ? "embedding.weight" : "head.weight")};
  }
};

/// One pre-norm block: x + attention(norm(x)), then x + mlp(norm(x)).
constexpr Value llama_block(Builder& b, Value x, LlamaConfig const& c, i64 window) {
  x = ops::residual(b, x, [&](Builder& inner, Value v) {
    return attention(inner, rms_norm(inner, v, c.norm("attention_norm")), c.attention(window));
  });
  return ops::residual(
      b, x, [&](Builder& inner, Value v) { return gated_mlp(inner, rms_norm(inner, v, c.norm("mlp_norm")), c.mlp()); });
}

/// ids[batch,sequence] -> logits[batch,rows,vocab]. @param window_of  layer index -> window of its attention
constexpr Value llama(Builder& b, Value ids, LlamaConfig const& c, auto const& window_of) {
  Value x = token_embedding(b, ids, c.embedding());
  x = ops::cycle(b, x, c.layers, period_of(c.layers, window_of),
                 [&](Builder& inner, Value v, i32 kind) { return llama_block(inner, v, c, window_of(kind)); });
  return lm_head(b, rms_norm(b, x, c.norm("final_norm")), c.head());
}
constexpr Value llama(Builder& b, Value ids, LlamaConfig const& c) { return llama(b, ids, c, c.windows); }

/// A layer of the model's pattern of windows: the one at `Layer`.
template <LlamaConfig C, i32 Layer = 0>
struct LlamaBlock : Sequential<Residual<RmsNorm<C.norm("attention_norm")>, Attention<C.attention(C.windows(Layer))>>,
                               Residual<RmsNorm<C.norm("mlp_norm")>, GatedMlp<C.mlp()>>> {};

/// The layers of one model by their index: what WindowedLayers deals.
template <LlamaConfig C>
struct LlamaKinds {
  template <i32 Layer>
  using Block = LlamaBlock<C, Layer>;
};

/// The model as a type; `struct SmolLM2 : Llama<smollm2_135m> {};` gives it a name of its own.
template <LlamaConfig C>
struct Llama
    : Sequential<TokenEmbedding<C.embedding()>, WindowedLayers<C.layers, C.windows, LlamaKinds<C>::template Block>,
                 RmsNorm<C.norm("final_norm")>, LmHead<C.head()>> {};

/// Tensors of a checkpoint.
inline constexpr CheckpointNames llama_names = checkpoint_names({
    {"embedding.weight", "model.embed_tokens.weight"},
    {"head.weight", "lm_head.weight"},
    {"final_norm.weight", "model.norm.weight"},
    {"layers.*.attention_norm.weight", "model.layers.*.input_layernorm.weight"},
    {"layers.*.mlp_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
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
/// Tensors that files carry and no model of the family reads: computed tables.
inline constexpr char const* llama_unread[] = {"model.layers.*.self_attn.rotary_emb.inv_freq"};

/// Configurations of published models.
namespace models {

/// Rotary positions of Llama 3.1 and 3.2.
constexpr RotaryConfig llama3_rope(double factor) {
  RotaryConfig r;
  r.theta = 5e5, r.factor = factor, r.low_frequency = 1, r.high_frequency = 4, r.original_context = 8192;
  return r;
}
/// Rotary positions without scaling.
constexpr RotaryConfig rope(double theta) {
  RotaryConfig r;
  r.theta = theta;
  return r;
}

inline constexpr LlamaConfig llama2_7b{4096, 32, 32, 32, 128, 11008, 32000, false, rope(1e4)};
inline constexpr LlamaConfig llama2_70b{8192, 80, 64, 8, 128, 28672, 32000, false, rope(1e4)};
inline constexpr LlamaConfig tinyllama_1b{2048, 22, 32, 4, 64, 5632, 32000, false, rope(1e4)};
inline constexpr LlamaConfig llama31_8b{4096, 32, 32, 8, 128, 14336, 128256, false, llama3_rope(8)};
inline constexpr LlamaConfig llama31_405b{16384, 126, 128, 8, 128, 53248, 128256, false, llama3_rope(8)};
inline constexpr LlamaConfig llama32_1b{2048, 16, 32, 8, 64, 8192, 128256, true, llama3_rope(32)};
inline constexpr LlamaConfig smollm2_135m{576, 30, 9, 3, 64, 1536, 49152, true, rope(1e5)};
inline constexpr LlamaConfig smollm2_360m{960, 32, 15, 5, 64, 2560, 49152, true, rope(1e5)};

}  // namespace models
}  // namespace dovetail
