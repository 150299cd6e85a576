// SPDX-License-Identifier: MIT
// Small language models as types, written out by hand so that the tests of plans depend on no model family: a Llama
// block with its variants, and SmolLM2-135M at full size.
#pragma once
#include <dovetail/layer/attention.hpp>
#include <dovetail/layer/embedding.hpp>
#include <dovetail/layer/mlp.hpp>
#include <dovetail/policy/pipelined.hpp>

namespace sample {

using namespace dovetail;

/// Layers of a Llama-like model of these sizes. `B`: biases everywhere; `Q`: norms of q and k.
template <i64 Embed, i64 Heads, i64 KvHeads, i64 HeadDim, i64 Ffn, i64 Vocab, bool B = false, QkNorm Q = QkNorm::none>
struct Llama {
  static constexpr AttentionConfig attention_config{.embed_size = Embed,
                                                    .head_count = Heads,
                                                    .kv_head_count = KvHeads,
                                                    .head_size = HeadDim,
                                                    .q_bias = B,
                                                    .k_bias = B,
                                                    .v_bias = B,
                                                    .o_bias = B,
                                                    .qk_norm = Q};
  static constexpr MlpConfig mlp_config{.embed_size = Embed, .ffn_size = Ffn, .bias = B};

  struct Embedding : TokenEmbedding<EmbeddingConfig{Vocab, Embed}> {};
  struct AttentionNorm : RmsNorm<RmsNormConfig{dims(extent<embed>(Embed)), 1e-5, Name{"attention_norm"}}> {};
  struct SelfAttention : Attention<attention_config> {};
  struct MlpNorm : RmsNorm<RmsNormConfig{dims(extent<embed>(Embed)), 1e-5, Name{"mlp_norm"}}> {};
  struct Mlp : GatedMlp<mlp_config> {};
  struct FinalNorm : RmsNorm<RmsNormConfig{dims(extent<embed>(Embed)), 1e-5, Name{"final_norm"}}> {};
  struct TiedHead : LmHead<LmHeadConfig{Vocab, Embed, false, Name{"embedding.weight"}}> {};
  struct OwnHead : LmHead<LmHeadConfig{Vocab, Embed}> {};

  struct Block : Sequential<Residual<AttentionNorm, SelfAttention>, Residual<MlpNorm, Mlp>> {};
  /// Attention and MLP side by side on one norm, as in Falcon.
  struct ParallelBlock : Residual<AttentionNorm, Parallel<SelfAttention, Mlp>> {};
  /// Norms work on parts of the sequence along A.
  template <class A>
  struct SequenceNorms : Sequential<Residual<SequenceSharded<A, AttentionNorm>, SelfAttention>,
                                    Residual<SequenceSharded<A, MlpNorm>, Mlp>> {};

  template <class Layers, class Head = TiedHead>
  struct Model : Sequential<Embedding, Layers, FinalNorm, Head> {};
};

/// 8 query heads on 4 KV heads.
using Tiny = Llama<16, 8, 4, 4, 24, 40>;
struct TinyModel : Tiny::Model<Repeat<3, Tiny::Block>> {};

/// 9 query heads on 3 KV heads: most splits of the heads share one.
using Odd = Llama<18, 9, 3, 2, 27, 41>;
struct OddModel : Odd::Model<Repeat<4, Odd::Block>> {};

using Smol = Llama<576, 9, 3, 64, 1536, 49152>;
struct SmolLM2 : Smol::Model<Repeat<30, Smol::Block>> {};

struct Dp2 : Axis<"dp", 2> {};
struct Pp2 : Axis<"pp", 2> {};
struct Pp3 : Axis<"pp", 3> {};
struct Pp4 : Axis<"pp", 4> {};
struct Tp2 : Axis<"tp", 2> {};
struct Tp3 : Axis<"tp", 3> {};
struct Tp4 : Axis<"tp", 4> {};
struct Tp5 : Axis<"tp", 5> {};
struct Tp8 : Axis<"tp", 8> {};
struct Cp2 : Axis<"cp", 2> {};

/// The plan of a type, made at compile time.
template <class Layout>
constexpr Plan const& plan = StaticPlan<Layout>::value;

/// The same, made at run time: for tests that need many plans, and no constant.
template <class Layout>
Plan planned() {
  static OwnedPlan const owned = build([](Builder& b, Value x) { return apply_layer<Layout>(b, x); });
  return owned.view();
}

}  // namespace sample
