// SPDX-License-Identifier: MIT
// Falcon (Almazrouei et al., 2023): attention and MLP side by side on one norm (7B) or on a norm each (40B), queries
// that share one KV head or groups of them. Its checkpoints keep q, k and v in one tensor.
#pragma once
#include <dovetail/layer/attention.hpp>
#include <dovetail/layer/compose.hpp>
#include <dovetail/layer/embedding.hpp>
#include <dovetail/layer/mlp.hpp>
#include <dovetail/models/checkpoint_names.hpp>
#include <type_traits>

namespace dovetail {

/// How the sublayers of a Falcon block stand to each other.
enum class FalconBlockKind : std::uint8_t {
  one_norm,    ///< x + attention(norm(x)) + mlp(norm(x))
  two_norms,   ///< x + attention(norm_1(x)) + mlp(norm_2(x))
  sequential,  ///< one after the other, each with its norm
};
/// Rows of the fused q, k and v.
enum class FalconRows : std::uint8_t {
  whole,     ///< all of q, then the one head of k and of v
  by_head,   ///< q, k and v of each head
  by_group,  ///< the queries of a group, its key head, its value head
};

/// Sizes and options of a Falcon model.
struct FalconConfig {
  i64 embed_size = 0;
  i32 layers = 0;
  i64 head_count = 0, kv_head_count = 1, ffn_size = 0, vocab_size = 0;
  double epsilon = 1e-5;
  RotaryConfig rope{};
  bool tied = true, bias = false;
  FalconBlockKind kind = FalconBlockKind::one_norm;
  FalconRows rows = FalconRows::whole;
  Op const* activation = &gelu;

  constexpr i64 head_size() const { return embed_size / head_count; }
  constexpr EmbeddingConfig embedding() const { return EmbeddingConfig{vocab_size, embed_size}; }
  constexpr LayerNormConfig norm(char const* role) const {
    return LayerNormConfig{dims(extent<embed>(embed_size)), epsilon, name(role)};
  }
  constexpr AttentionConfig attention() const {
    AttentionConfig c;
    c.embed_size = embed_size, c.head_count = head_count, c.kv_head_count = kv_head_count, c.head_size = head_size();
    c.q_bias = c.k_bias = c.v_bias = c.o_bias = bias, c.rope = rope;
    return c;
  }
  constexpr MlpConfig mlp() const { return MlpConfig{embed_size, ffn_size, 1, activation, bias}; }
  constexpr LmHeadConfig head() const {
    return LmHeadConfig{vocab_size, embed_size, false, name(tied ? "embedding.weight" : "head.weight")};
  }
};

/// One block; see FalconBlockKind.
constexpr Value falcon_block(Builder& b, Value x, FalconConfig const& c) {
  auto const attended = [&](Builder& inner, Value v) { return attention(inner, v, c.attention()); };
  auto const normed = [&](Builder& inner, Value v, char const* role) { return layer_norm(inner, v, c.norm(role)); };
  if (c.kind == FalconBlockKind::sequential) {
    x = ops::residual(b, x, [&](Builder& i, Value v) { return attended(i, normed(i, v, "attention_norm")); });
    return ops::residual(b, x, [&](Builder& i, Value v) { return mlp(i, normed(i, v, "mlp_norm"), c.mlp()); });
  }
  return ops::residual(b, x, [&](Builder& i, Value v) {
    Value const first = normed(i, v, "attention_norm");
    Value const second = c.kind == FalconBlockKind::two_norms ? normed(i, v, "mlp_norm") : first;
    Value const mixed = attended(i, first);
    return ops::add(i, mixed, mlp(i, second, c.mlp()));
  });
}

/// ids[batch,sequence] -> logits[batch,rows,vocab].
constexpr Value falcon(Builder& b, Value ids, FalconConfig const& c) {
  Value x = token_embedding(b, ids, c.embedding());
  x = ops::repeat(b, x, c.layers, [&](Builder& inner, Value v) { return falcon_block(inner, v, c); });
  return lm_head(b, layer_norm(b, x, c.norm("final_norm")), c.head());
}

/// `falcon_block` as a type.
template <FalconConfig C>
struct FalconBlock {
  static constexpr Value apply(Builder& b, Value x) { return falcon_block(b, x, C); }
};
/// The model as a type.
template <FalconConfig C>
struct Falcon : Sequential<TokenEmbedding<C.embedding()>, Repeat<C.layers, FalconBlock<C>>,
                           LayerNorm<C.norm("final_norm")>, LmHead<C.head()>> {};

/// Tensors of a checkpoint.
constexpr CheckpointNames falcon_names(FalconConfig const& c) {
  i64 const size = c.head_size(), q = c.head_count * size, kv = c.kv_head_count * size;
  i64 const group = c.kv_head_count ? c.head_count / c.kv_head_count : 1;
  i64 const all = q + 2 * kv;
  StoredSlice q_rows{.of = all}, k_rows{.of = all, .first = q}, v_rows{.of = all, .first = q + kv};
  if (c.rows == FalconRows::by_head) {
    i64 const stride = 3 * size;
    q_rows = {all, 0, size, stride}, k_rows = {all, size, size, stride}, v_rows = {all, 2 * size, size, stride};
  }
  if (c.rows == FalconRows::by_group) {
    i64 const stride = (group + 2) * size;
    q_rows = {all, 0, group * size, stride}, k_rows = {all, group * size, size, stride};
    v_rows = {all, (group + 1) * size, size, stride};
  }
  bool const two = c.kind == FalconBlockKind::two_norms;
  return checkpoint_names({
      {"embedding.weight", "transformer.word_embeddings.weight"},
      {"head.weight", "lm_head.weight"},
      {"final_norm.*", "transformer.ln_f.*"},
      {"layers.*.attention_norm.*", two ? "transformer.h.*.ln_attn.*" : "transformer.h.*.input_layernorm.*"},
      {"layers.*.mlp_norm.*", two ? "transformer.h.*.ln_mlp.*" : "transformer.h.*.post_attention_layernorm.*"},
      {"layers.*.attention.q.*", "transformer.h.*.self_attention.query_key_value.*", q_rows},
      {"layers.*.attention.k.*", "transformer.h.*.self_attention.query_key_value.*", k_rows},
      {"layers.*.attention.v.*", "transformer.h.*.self_attention.query_key_value.*", v_rows},
      {"layers.*.attention.o.*", "transformer.h.*.self_attention.dense.*"},
      {"layers.*.mlp.up.*", "transformer.h.*.mlp.dense_h_to_4h.*"},
      {"layers.*.mlp.down.*", "transformer.h.*.mlp.dense_4h_to_h.*"},
  });
}
/// Computed tables that files carry.
inline constexpr char const* falcon_unread[] = {"transformer.h.*.self_attention.rotary_emb.inv_freq"};

namespace models {

/// Falcon-7B with a tied head or one of its own; its file stores both.
constexpr FalconConfig falcon_7b_of(bool tied) {
  FalconConfig c;
  c.embed_size = 4544, c.layers = 32, c.head_count = 71, c.ffn_size = 18176, c.vocab_size = 65024, c.tied = tied;
  return c;
}
inline constexpr FalconConfig falcon_7b = falcon_7b_of(true);

}  // namespace models
}  // namespace dovetail
