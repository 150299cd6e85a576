// SPDX-License-Identifier: MIT
// Plans are the same by names and structure: made from types or at run time, of types with other names. Whatever
// changes what a plan does changes its hash, and the first difference says what it is.
#include <dovetail/plan/identity.hpp>

#include "catch.hpp"
#include "sample_models.hpp"

using namespace dovetail;
using namespace sample;

namespace {

struct Original : TensorSharded<Tp2, TinyModel> {};

// The same model and axes as types of other names.
struct Shards : Axis<"tp", 2> {};
using Again = Llama<16, 8, 4, 4, 24, 40>;
struct Layers : Sequential<Residual<Again::AttentionNorm, Again::SelfAttention>, Residual<Again::MlpNorm, Again::Mlp>> {
};
struct Renamed : Mapped<Shards, Again::Model<Repeat<3, Layers>>, heads, ffn, vocab> {};

static_assert(same_plan(plan<Original>, plan<Renamed>) && plan_hash(plan<Original>) == plan_hash(plan<Renamed>));
static_assert(first_difference(plan<Original>, plan<Original>).empty());

template <class Layout>
bool is_the_same_at_run_time() {
  OwnedPlan const made = build([](Builder& b, Value x) { return Layout::apply(b, x); });
  return same_plan(made.view(), plan<Layout>) && plan_hash(made.view()) == plan_hash(plan<Layout>);
}
struct Staged : Replicated<Dp2, Pipelined<Pp3, TensorSharded<Tp2, TinyModel>>> {};
struct BySequence : TensorSharded<Tp2, Odd::Model<Repeat<2, Odd::SequenceNorms<Tp2>>>> {};
TEST_CASE("a plan is the same whatever its types are called, and made at run time") {
  CHECK(same_plan(plan<Original>, plan<Renamed>));
  CHECK(is_the_same_at_run_time<Original>());
  CHECK(is_the_same_at_run_time<Staged>());
  CHECK(is_the_same_at_run_time<BySequence>());
}

/// `Changed` differs from Original, both ways round, in its hash and in words that begin so.
template <class Changed>
bool differs(char const* words) {
  Plan const a = planned<Original>(), b = planned<Changed>();
  Name const found = first_difference(a, b);
  std::string const text = found.chars;
  INFO(text);
  CHECK(text.starts_with(words));
  return plan_hash(a) != plan_hash(b) && !same_plan(a, b) && !same_plan(b, a) && text.starts_with(words);
}

struct Tq2 : Axis<"tq", 2> {};
struct OtherAxis : TensorSharded<Tq2, TinyModel> {};
struct MoreRanks : TensorSharded<Tp4, TinyModel> {};
struct Unequal : Axis<"tp", Shares<3, 1>{}> {};
struct OtherShares : TensorSharded<Unequal, TinyModel> {};
struct Deeper : TensorSharded<Tp2, Tiny::Model<Repeat<4, Tiny::Block>>> {};
struct Wider : TensorSharded<Tp2, Llama<16, 8, 4, 4, 26, 40>::Model<Repeat<3, Llama<16, 8, 4, 4, 26, 40>::Block>>> {};
struct OwnHead : TensorSharded<Tp2, Tiny::Model<Repeat<3, Tiny::Block>, Tiny::OwnHead>> {};
struct OtherMlp : GatedMlp<MlpConfig{.embed_size = 16, .ffn_size = 24, .role = Name{"feed_forward"}}> {};
struct OtherRole
    : TensorSharded<Tp2, Tiny::Model<Repeat<3, Sequential<Residual<Tiny::AttentionNorm, Tiny::SelfAttention>,
                                                          Residual<Tiny::MlpNorm, OtherMlp>>>>> {};
struct InUnits : GatedMlp<MlpConfig{.embed_size = 16, .ffn_size = 24, .ffn_unit = 4}> {};
struct OtherUnit
    : TensorSharded<Tp2, Tiny::Model<Repeat<3, Sequential<Residual<Tiny::AttentionNorm, Tiny::SelfAttention>,
                                                          Residual<Tiny::MlpNorm, InUnits>>>>> {};
struct Coarse : RmsNorm<RmsNormConfig{dims(extent<embed>(16)), 1e-6, Name{"mlp_norm"}}> {};
struct OtherConstant
    : TensorSharded<Tp2, Tiny::Model<Repeat<3, Sequential<Residual<Tiny::AttentionNorm, Tiny::SelfAttention>,
                                                          Residual<Coarse, Tiny::Mlp>>>>> {};
struct NoGate {
  static constexpr Value apply(Builder& b, Value x) {
    return gated_mlp(b, x, MlpConfig{.embed_size = 16, .ffn_size = 24, .activation = &rotate});
  }
};
struct OtherOp : TensorSharded<Tp2, Tiny::Model<Repeat<3, Sequential<Residual<Tiny::AttentionNorm, Tiny::SelfAttention>,
                                                                     Residual<Tiny::MlpNorm, NoGate>>>>> {};
struct OtherPolicy : Mapped<Tp2, TinyModel, heads, vocab> {};

TEST_CASE("what changes a plan changes its hash, and the first difference names it") {
  CHECK(differs<OtherAxis>("stage 0: axis tp, tq"));
  CHECK(differs<MoreRanks>("stage 0: ranks 2, 4"));
  CHECK(differs<OtherShares>("stage 0: share 1, 3"));
  CHECK(differs<Deeper>("stage 0: layers 3, 4"));
  CHECK(differs<Wider>("value "));
  CHECK(differs<OwnHead>("plan: values "));
  CHECK(differs<OtherRole>("parameter 7: name layers.*.mlp.gate.weight, layers.*.feed_forward"));
  CHECK(differs<OtherUnit>("value "));
  CHECK(differs<OtherConstant>("step "));
  CHECK(differs<OtherOp>("step "));
  CHECK(differs<OtherPolicy>("plan: values "));
  CHECK(first_difference(planned<Original>(), planned<OtherOp>()) == name("step 19: op silu, rotate"));
}

}  // namespace
