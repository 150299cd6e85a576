// SPDX-License-Identifier: MIT
// BERT (Devlin et al., 2018) as a sentence encoder (Reimers and Gurevych, 2019): attention over the whole sequence,
// LayerNorm behind each sublayer, learned positions and token types, then the mean of the rows at unit length.
// all-MiniLM-L6-v2 is one. Sequences of a batch have their own lengths, so there is no padding to mask.
#pragma once
#include <dovetail/layer/attention.hpp>
#include <dovetail/layer/compose.hpp>
#include <dovetail/layer/embedding.hpp>
#include <dovetail/layer/mlp.hpp>
#include <dovetail/layer/pooling.hpp>
#include <dovetail/models/checkpoint_names.hpp>

namespace dovetail {

/// Sizes of a BERT encoder.
struct BertConfig {
  i64 embed_size = 0;
  i32 layers = 0;
  i64 head_count = 0, ffn_size = 0, vocab_size = 0, position_count = 0, type_count = 0;
  double epsilon = 1e-12;
  Op const* activation = &gelu;

  constexpr Dims outer() const { return dims(extent<embed>(embed_size)); }
  constexpr EmbeddingConfig embedding() const { return EmbeddingConfig{vocab_size, embed_size}; }
  constexpr AddedRowConfig positions() const {
    return AddedRowConfig{extent<dovetail::positions>(position_count), embed_size};
  }
  constexpr AddedRowConfig types() const {
    return AddedRowConfig{extent<kinds>(type_count), embed_size, Name{"token_types"}, 0};
  }
  constexpr LayerNormConfig norm(char const* role) const { return LayerNormConfig{outer(), epsilon, name(role)}; }
  constexpr AttentionConfig attention() const {
    AttentionConfig c;
    c.embed_size = embed_size, c.head_count = c.kv_head_count = head_count, c.head_size = embed_size / head_count;
    c.q_bias = c.k_bias = c.v_bias = c.o_bias = true, c.rotary = false, c.causal = false;
    return c;
  }
  constexpr MlpConfig mlp() const { return MlpConfig{embed_size, ffn_size, 1, activation, true}; }
  constexpr UnitLengthConfig length() const { return UnitLengthConfig{outer()}; }
};

/// norm(x + attention(x)), then norm(x + mlp(x)).
constexpr Value bert_block(Builder& b, Value x, BertConfig const& c) {
  x = ops::residual(b, x, [&](Builder& inner, Value v) { return attention(inner, v, c.attention()); });
  x = layer_norm(b, x, c.norm("attention_norm"));
  x = ops::residual(b, x, [&](Builder& inner, Value v) { return mlp(inner, v, c.mlp()); });
  return layer_norm(b, x, c.norm("mlp_norm"));
}

/// ids[batch,sequence] -> embeddings[batch,embed] of unit length. A sequence runs whole, in one pass.
constexpr Value bert(Builder& b, Value ids, BertConfig const& c) {
  Value x = added_row(b, token_embedding(b, ids, c.embedding()), c.positions());
  x = layer_norm(b, added_row(b, x, c.types()), c.norm("embedding_norm"));
  x = ops::repeat(b, x, c.layers, [&](Builder& inner, Value v) { return bert_block(inner, v, c); });
  return unit_length(b, mean_pool(b, x), c.length());
}

/// `bert_block` as a type.
template <BertConfig C>
struct BertBlock : Sequential<Residual<Attention<C.attention()>>, LayerNorm<C.norm("attention_norm")>,
                              Residual<Mlp<C.mlp()>>, LayerNorm<C.norm("mlp_norm")>> {};
/// The model as a type.
template <BertConfig C>
struct Bert : Sequential<TokenEmbedding<C.embedding()>, AddedRow<C.positions()>, AddedRow<C.types()>,
                         LayerNorm<C.norm("embedding_norm")>, Repeat<C.layers, BertBlock<C>>, MeanPool,
                         UnitLength<C.length()>> {};

/// Tensors of a checkpoint.
inline constexpr CheckpointNames bert_names = checkpoint_names({
    {"embedding.weight", "bert.embeddings.word_embeddings.weight"},
    {"positions.weight", "bert.embeddings.position_embeddings.weight"},
    {"token_types.weight", "bert.embeddings.token_type_embeddings.weight"},
    {"embedding_norm.*", "bert.embeddings.LayerNorm.*"},
    {"layers.*.attention.q.*", "bert.encoder.layer.*.attention.self.query.*"},
    {"layers.*.attention.k.*", "bert.encoder.layer.*.attention.self.key.*"},
    {"layers.*.attention.v.*", "bert.encoder.layer.*.attention.self.value.*"},
    {"layers.*.attention.o.*", "bert.encoder.layer.*.attention.output.dense.*"},
    {"layers.*.attention_norm.*", "bert.encoder.layer.*.attention.output.LayerNorm.*"},
    {"layers.*.mlp.up.*", "bert.encoder.layer.*.intermediate.dense.*"},
    {"layers.*.mlp.down.*", "bert.encoder.layer.*.output.dense.*"},
    {"layers.*.mlp_norm.*", "bert.encoder.layer.*.output.LayerNorm.*"},
});
/// The numbers of the positions, and a pooler that sentence encoders do without.
inline constexpr char const* bert_unread[] = {"bert.embeddings.position_ids", "bert.pooler.dense.weight",
                                              "bert.pooler.dense.bias"};

namespace models {

/// Without its pooler, which goes unused: 147,840 of the 22,713,216 parameters that are counted elsewhere.
inline constexpr BertConfig minilm_l6_v2{384, 6, 12, 1536, 30522, 512, 2};

}  // namespace models
}  // namespace dovetail
