// SPDX-License-Identifier: MIT
// Every rule broken by a small layout: the sentence names what a user needs, and its page exists.
#include <dovetail/dovetail.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <fstream>
#include <initializer_list>

#include "catch.hpp"
namespace dt = dovetail;
using dt::dims, dt::extent, dt::words;

namespace {

struct Dp : dt::Axis<"dp", 2> {};
struct Tp : dt::Axis<"tp", 3> {};
struct Other : dt::Axis<"other", 2> {};
struct Pp : dt::Axis<"pp", 5> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Attention
    : dt::Attention<dt::AttentionConfig{.embed_size = 8, .head_count = 9, .kv_head_count = 3, .head_size = 2}> {};

template <class Layout>
dt::Verdict verdict_on() {
  return dt::build([](dt::Builder& b, dt::Value x) { return dt::apply_layer<Layout>(b, x); }).verdict;
}
/// What is said of a layout that breaks `rule`; of another rule, only its id.
template <class Layout>
std::string said_of(dt::Rule rule) {
  dt::Verdict const v = verdict_on<Layout>();
  return v.rule == rule ? dt::sentence(v) : dt::id_of(v.rule);
}

bool has_all(std::string const& text, std::initializer_list<char const*> parts) {
  for (auto const* part : parts)
    if (text.find(part) == std::string::npos) return false;
  return true;
}

struct Twelve : dt::Axis<"tp", 12> {};
struct Six : dt::Axis<"tp", 6> {};
struct Unequal : dt::Axis<"tp", dt::Shares<30, 1>{}> {};
struct Blocks : dt::GatedMlp<dt::MlpConfig{8, 256, 128}> {};
template <class A>
using OnHeads = dt::TensorSharded<A, dt::Sequential<Embedding, dt::Repeat<4, Attention>>>;

inline constexpr dt::Op reorder{.name = "reorder"}, shift{.name = "shift", .elementwise = true};
struct Reorder {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    return b.apply(dt::Call(reorder).reads(x).maps<dt::batch, dt::sequence>().yields(b.dims(x)));
  }
};
struct Shift {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    return b.apply(dt::Call(shift).reads(x).contracts<dt::embed>().yields(b.dims(x)));
  }
};
template <dt::i64 Width>
struct Up
    : dt::Linear<dt::LinearConfig{dims(extent<dt::embed>(Width)), dims(extent<dt::ffn>(24)), false, dt::Name{"up"}}> {};
struct Half : dt::Repeat<2, Mlp> {};
struct Four : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};

template <dt::i64 Count>
struct Words : dt::TokenEmbedding<dt::EmbeddingConfig{Count, 8}> {};
template <dt::i64 Queries, dt::i64 Keys, dt::i64 Size>
struct Heads : dt::Attention<dt::AttentionConfig{
                   .embed_size = 8, .head_count = Queries, .kv_head_count = Keys, .head_size = Size}> {};
template <dt::i64 Lead, dt::i64 Unit>
struct In : dt::Linear<dt::LinearConfig{dims(extent<dt::embed>(8)), dims(extent<dt::ffn>(24, Lead, Unit))}> {};
template <class D>
inline constexpr dt::LinearConfig onto{dims(extent<dt::embed>(8)), dims(extent<D>(24))};
template <auto Size>
struct Sized : dt::Axis<"tp", Size> {};

struct YieldsNothing {
  static constexpr void apply(dt::Builder&, dt::Value) {}
};
/// A layer that makes one of the mistakes of layer/value.
template <int Mistake>
struct Forgets {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    if (Mistake == 0) return dt::Value{};
    if (Mistake == 1) b.output("mixed", dt::Value{});
    if (Mistake == 2) return dt::ops::add(b, x, dt::Value{1000});
    if (Mistake == 3) return dt::ops::add_parameter(b, x, dt::ParameterId{});
    if (Mistake == 4) return b.apply(dt::Call(shift).reads(x));
    return x;
  }
};
template <int Count>
struct Merge {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    dt::Call call(shift);
    for (int i = 0; i < Count; ++i) call.reads(x);
    return b.apply(call.yields(b.dims(x)));
  }
};
constexpr char tabbed_role[] = "a\tb";
constexpr char long_role[] =
    "the_projection_that_brings_what_the_attention_of_a_layer_has_mixed_back_to_the_full_width_of_a_model";
template <auto* Role>
struct InRole {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) { return b.in_layer(nullptr, *Role, x, &Mlp::apply); }
};
constexpr char const* seven_names[] = {"a", "b", "c", "d", "e", "f", "g"};
template <int N>
struct Numbered {
  static constexpr dt::AxisInfo describe_axis() { return {seven_names[N - 1], 1, nullptr}; }
};
template <int Count>
struct InAxes : dt::Mapped<Numbered<Count>, InAxes<Count - 1>, dt::ffn> {};
template <>
struct InAxes<0> : Four {};

/// What is said of a layout text for the model of four layers; nothing where it is accepted.
std::string said_of_text(char const* text) {
  auto const four = [](dt::Builder& b, dt::Value x) { return dt::apply_layer<Four>(b, x); };
  try {
    dt::plan_layout(dt::read_layout(text), 4, four);
    return "";
  } catch (dt::LayoutError const& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("more ranks than units: dim, value, axis, size, legal sizes, and that a pipeline has no such limit") {
  CHECK(said_of<OnHeads<Twelve>>(dt::Rule::placement_split) ==
        "layers.*.attention.q splits heads (9) over axis tp of 12 ranks: at most 9, for every rank must hold a unit. "
        "Legal sizes of tp: 1 to 9, even or not. A pipeline (pp) has no such limit. See "
        "docs/errors/placement-split.md.");
  CHECK(verdict_on<OnHeads<Tp>>().ok());
}

TEST_CASE("what is legal is legal, and one more is not") {
  struct Nine : dt::Axis<"tp", 9> {};
  struct Ten : dt::Axis<"tp", 10> {};
  CHECK(verdict_on<OnHeads<Nine>>().ok());
  CHECK(verdict_on<OnHeads<Ten>>().rule == dt::Rule::placement_split);
}

TEST_CASE("units of several columns are counted as units") {
  CHECK(has_all(said_of<dt::TensorSharded<Tp, dt::Sequential<Embedding, Blocks>>>(dt::Rule::placement_split),
                {"mlp.gate", "ffn (256 in 2 units)", "tp of 3 ranks", "at most 2", "1 to 2"}));
}

TEST_CASE("axes on one dim count together, and the sentence says what is left for the inner one") {
  struct Stack : dt::Mapped<Dp, OnHeads<Six>, dt::heads> {};
  dt::Verdict const v = verdict_on<Stack>();
  REQUIRE(v.rule == dt::Rule::placement_split);
  CHECK(dt::most_ranks(v) == 4);
  CHECK(has_all(dt::sentence(v), {"heads (9)", "tp of 6 ranks", "split it over 2 already", "1 to 4"}));
  struct Four : dt::Axis<"tp", 4> {};
  struct Legal : dt::Mapped<Dp, OnHeads<Four>, dt::heads> {};
  CHECK(verdict_on<Legal>().ok());
}

TEST_CASE("a stated share that gives a rank nothing") {
  dt::Verdict const v = verdict_on<OnHeads<Unequal>>();
  CHECK(dt::share_too_small(v));
  CHECK(has_all(dt::sentence(v), {"heads (9)", "tp of 2 ranks", "Shares of tp: 30, 1", "or 0 for a rank"}));
}

TEST_CASE("ops: ambiguous, undeclared, contradicting, two extents") {
  struct Both : dt::Mapped<Tp, dt::Sequential<Embedding, Mlp>, dt::ffn, dt::embed> {};
  CHECK(has_all(said_of<Both>(dt::Rule::placement_ambiguous),
                {"axis tp", "ffn", "embed", "docs/errors/placement-ambiguous.md"}));
  CHECK(has_all(said_of<dt::TensorSharded<Tp, dt::Sequential<Embedding, Up<8>, Reorder>>>(dt::Rule::op_undeclared),
                {"ffn arrives split over axis tp at op reorder", "maps<ffn>()", "needs_whole<ffn>()"}));
  CHECK(has_all(said_of<dt::Sequential<Embedding, Shift>>(dt::Rule::op_roles),
                {"op shift contradicts itself about embed"}));
  CHECK(has_all(said_of<dt::Sequential<Embedding, Up<16>>>(dt::Rule::op_extents),
                {"up: op matmul meets embed", "16", "8"}));
}

TEST_CASE("meshes: branches, order, the same policy twice") {
  struct Branches
      : dt::Sequential<Embedding, dt::TensorSharded<Tp, Mlp>, dt::Repeat<1, dt::TensorSharded<Other, Mlp>>> {};
  CHECK(has_all(said_of<Branches>(dt::Rule::mesh_branches),
                {"axis other of 2 ranks stands beside axis tp", "docs/errors/mesh-branches.md"}));
  struct First : dt::Replicated<Dp, dt::TensorSharded<Tp, Mlp>> {};
  struct Second : dt::TensorSharded<Tp, dt::Replicated<Dp, Mlp>> {};
  CHECK(has_all(said_of<dt::Sequential<Embedding, dt::Cycle<2, First, Second>>>(dt::Rule::mesh_order),
                {"axis dp stands in another order here, inside axis tp", "docs/errors/mesh-order.md"}));
  struct Twice : dt::TensorSharded<Tp, dt::Sequential<Embedding, dt::TensorSharded<Tp, Mlp>>> {};
  CHECK(has_all(said_of<Twice>(dt::Rule::policy_twice),
                {"maps axis tp to heads", "Remove one of the two", "docs/errors/policy-twice.md"}));
}

TEST_CASE("pipelines: nested, too many stages, cuts that do not add up, another number of stages") {
  struct Inner : dt::Axis<"inner", 2> {};
  struct Nested : dt::Pipelined<Dp, dt::PipelineStage<dt::Sequential<Embedding, Half>>,
                                dt::PipelineStage<dt::Pipelined<Inner, Half>>> {};
  CHECK(has_all(said_of<Nested>(dt::Rule::pipeline_nested), {"a pipeline (axis inner) stands inside another one"}));
  struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
  CHECK(has_all(said_of<dt::Pipelined<Pp, Model>>(dt::Rule::pipeline_units),
                {"axis pp has 5 ranks, one a stage", "4 layers to deal", "Legal sizes of pp: 1 to 4"}));
  CHECK(has_all(said_of<dt::Pipelined<Dp, dt::Cuts<3, 2>, Model>>(dt::Rule::pipeline_units),
                {"stages of axis dp are stated to run 5 layers in all", "the model has 4"}));
  CHECK(has_all(said_of<dt::Pipelined<Dp, dt::Cuts<2, 1, 1>, Model>>(dt::Rule::pipeline_units),
                {"axis dp has 2 ranks", "another number of stages is stated"}));
  CHECK(has_all(said_of<dt::Pipelined<Dp, dt::Cuts<-1, 5>, Model>>(dt::Rule::pipeline_units),
                {"a stage of axis dp is stated to run -1 layers"}));
  CHECK(dt::plan_of<dt::Sequential<>>.ok());
}

TEST_CASE("a loop whose rounds do not fit on each other") {
  CHECK(
      said_of<dt::Sequential<Embedding, dt::Repeat<3, Up<8>>>>(dt::Rule::loop_dims) ==
      "layers.*: a repeated layer yields ffn of 24 where it takes embed of 8. A layer that repeats must yield the dims "
      "that it takes. See docs/errors/loop-dims.md.");
}

TEST_CASE("parameters of one name") {
  struct Twice : dt::Sequential<Embedding, dt::Residual<Up<8>>> {
    static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
      x = Embedding::apply(b, x);
      Up<8>::apply(b, x);
      return Up<8>::apply(b, x);
    }
  };
  CHECK(has_all(said_of<Twice>(dt::Rule::parameter_name),
                {"up.weight: two parameters have this name", "docs/errors/parameter-name.md"}));
}

TEST_CASE("sizes: extents, heads of keys and values, rotated pairs, counts of layers") {
  auto const said = [](auto layout) { return said_of<decltype(layout)>(dt::Rule::size_range); };
  std::string const page = " See docs/errors/size-range.md.";
  CHECK(said(Words<0>{}) == "the model: vocab of op lookup has an extent of 0. Legal extents: 1 and up." + page);
  CHECK(said(Words<-5>{}) == "the model: vocab of op lookup has an extent of -5. Legal extents: 1 and up." + page);
  CHECK(
      said(Words<dt::i64{1} << 62>{}) ==
      "the model: vocab of op lookup has an extent of 4611686018427387904, which makes a tensor of more elements than "
      "the 9007199254740992 that it may have." +
          page);
  CHECK(
      said(dt::Sequential<Embedding, Heads<9, 10, 2>>{}) ==
      "attention.k: kv_heads of op matmul has an extent of 10, but heads, which it follows, has 9. Legal extents: 1 to "
      "9." +
          page);
  CHECK(said(dt::Sequential<Embedding, Heads<1, 2, 2>>{}) ==
        "attention.k: kv_heads of op matmul has an extent of 2, but heads, which it follows, has 1. Legal extents: 1." +
            page);
  CHECK(said(dt::Sequential<Embedding, Heads<9, 3, 5>>{}) ==
        "attention: head_dim of op rotate has an extent of 5, of which 5 are to be rotated, in pairs. Legal are even "
        "numbers up to 5." +
            page);
  CHECK(said(dt::Sequential<Embedding, In<0, -1>>{}) ==
        "linear: ffn of op matmul has a unit of -1. Legal units: 1 and up." + page);
  CHECK(said(dt::Sequential<Embedding, In<-1, 1>>{}) ==
        "linear: ffn of op matmul has an extent of 24, but is to be split as one of -1. Legal extents: 1 and up, "
        "for both." +
            page);
  CHECK(said(dt::Sequential<Embedding, dt::Repeat<-1, Mlp>>{}) ==
        "the model: a layer repeats -1 times. Legal counts: 0 and up." + page);
  CHECK(verdict_on<dt::Sequential<Embedding, Heads<9, 9, 2>, dt::Repeat<0, Mlp>>>().ok());
}

TEST_CASE("sizes: axes without ranks and shares that deal nothing, in a policy and in a pipeline") {
  auto const said = [](auto layout) { return said_of<decltype(layout)>(dt::Rule::size_range); };
  std::string const page = " See docs/errors/size-range.md.";
  std::string const no_ranks = "the model: axis tp has 0 ranks. Legal sizes: 1 and up." + page;
  CHECK(said(dt::TensorSharded<Sized<0>, Four>{}) == no_ranks);
  CHECK(said(dt::Pipelined<Sized<0>, Four>{}) == no_ranks);
  CHECK(said(dt::TensorSharded<Sized<dt::Shares<>{}>, Four>{}) == no_ranks);
  CHECK(said(dt::TensorSharded<Sized<-2>, Four>{}) == "the model: axis tp has -2 ranks. Legal sizes: 1 and up." + page);
  std::string const nothing =
      "the model: the shares of axis tp of 2 ranks are all 0. One of them at least must be 1 or more." + page;
  CHECK(said(dt::TensorSharded<Sized<dt::Shares<0, 0>{}>, Four>{}) == nothing);
  CHECK(said(dt::Pipelined<Sized<dt::Shares<0, 0>{}>, Four>{}) == nothing);
  CHECK(said(dt::TensorSharded<Sized<dt::Shares<3, -1>{}>, Four>{}) ==
        "the model: axis tp of 2 ranks has a share of -1. Legal shares: 0 to 1048576, not all of them 0." + page);
  CHECK(said(dt::TensorSharded<Sized<dt::Shares<3, 1 << 21>{}>, Four>{}) ==
        "the model: axis tp of 2 ranks has a share of 2097152. Legal shares: 0 to 1048576, not all of them 0." + page);
}

TEST_CASE("layers: a type that is none, values that no builder made, calls without a result") {
  struct Nothing {};
  std::string const none =
      "layers.*: a type stands here that is no layer: it lacks `static constexpr Value "
      "apply(Builder&, Value)`. See docs/errors/layer-apply.md.";
  CHECK(said_of<dt::Sequential<Embedding, dt::Repeat<2, Nothing>>>(dt::Rule::layer_apply) == none);
  CHECK(said_of<dt::Sequential<Embedding, dt::Repeat<2, dt::Residual<YieldsNothing>>>>(dt::Rule::layer_apply) == none);
  CHECK(said_of<int>(dt::Rule::layer_apply).starts_with("the model: a type stands here that is no layer"));
  std::string const made =
      " Use what the builder gave, and say of every result what the call yields. See "
      "docs/errors/layer-value.md.";
  CHECK(said_of<dt::Sequential<Embedding, dt::Repeat<2, Forgets<0>>>>(dt::Rule::layer_value) ==
        "layers.*: a layer returns or hands out a value that the plan does not have." + made);
  CHECK(said_of<dt::Sequential<Embedding, Forgets<1>>>(dt::Rule::layer_value) ==
        "the model: a layer returns or hands out a value that the plan does not have." + made);
  auto const of_op = [&](char const* op) {
    return words(
        "the model: op ", op,
        " reads a value or holds a parameter or state that the plan does not have, or says of no result what it "
        "yields.",
        made);
  };
  CHECK(said_of<dt::Sequential<Embedding, Forgets<2>>>(dt::Rule::layer_value) == of_op("add"));
  CHECK(said_of<dt::Sequential<Embedding, Forgets<3>>>(dt::Rule::layer_value) == of_op("add"));
  CHECK(said_of<dt::Sequential<Embedding, Forgets<4>>>(dt::Rule::layer_value) == of_op("shift"));
}

TEST_CASE("policies: other arguments, and dims that nothing inside has") {
  struct Cut : dt::Pipelined<Dp, Four, dt::Cuts<3, 1>> {};
  for (auto const& said :
       {said_of<dt::TensorSharded<Four, Tp>>(dt::Rule::policy_arguments),
        said_of<dt::Mapped<Tp, Four, int>>(dt::Rule::policy_arguments), said_of<Cut>(dt::Rule::policy_arguments)})
    CHECK(said ==
          "the model: a policy has other arguments than an axis, a layer and dims, in this order. Write "
          "TensorSharded<Tp, Model>, Mapped<Tp, Model, heads> or Pipelined<Pp, Cuts<3, 1>, Model>. See "
          "docs/errors/policy-arguments.md.");
  std::string const unused =
      "the model: a policy maps axis tp of 3 ranks to heads (and what it maps besides), which no tensor inside has, so "
      "all of its ranks would do the same. Put it around a layer with such a dim, or map one that is there. See "
      "docs/errors/policy-unused.md.";
  CHECK(said_of<dt::Mapped<Tp, Four, dt::heads>>(dt::Rule::policy_unused) == unused);
  CHECK(said_of_text("tp3(heads)") == "dovetail: policy/unused: " + unused);
  CHECK(said_of_text("tp1(heads)") == "");  // one rank has nothing to share
  CHECK(said_of_text("tp3(heads,ffn)") == "");
}

TEST_CASE("pipelines: a stage that computes nothing") {
  std::string const empty =
      "stage 1 (counted from 0) of the 3 of axis pp computes nothing. Give it a layer, or take a "
      "stage less. See docs/errors/pipeline-empty.md.";
  struct Stages : dt::Axis<"pp", 3> {};
  CHECK(said_of<dt::Pipelined<Stages, dt::Cuts<2, 0, 2>, Four>>(dt::Rule::pipeline_empty) == "the model: " + empty);
  CHECK(said_of_text("pp3=2,0,2") == "dovetail: pipeline/empty: the model: " + empty);
  CHECK(said_of_text("pp2=0,4") == "");  // the embedding is on the first stage
  CHECK(said_of<dt::Pipelined<Dp, dt::PipelineStage<Four>, dt::PipelineStage<dt::Repeat<0, Mlp>>>>(
            dt::Rule::pipeline_empty) ==
        "the model: stage 1 (counted from 0) of the 2 of axis dp computes nothing. Give it a layer, or take a stage "
        "less. See docs/errors/pipeline-empty.md.");
}

TEST_CASE("names: two axes of one name, and names with characters that are not printable") {
  struct Replicas : dt::Axis<"tp", 2> {};
  struct Tabbed : dt::Axis<"t\tp", 3> {};
  std::string const legal =
      " A name is one or more printable characters of ASCII; rename it. See docs/errors/name-legal.md.";
  CHECK(said_of<dt::Replicated<Replicas, dt::TensorSharded<Tp, Four>>>(dt::Rule::name_legal) ==
        "the model: two axes of one stage, of 3 ranks and of 2, have the name tp. Rename one of them. See "
        "docs/errors/name-legal.md.");
  CHECK(said_of<dt::TensorSharded<Tabbed, Four>>(dt::Rule::name_legal) ==
        "the model: an axis of 3 ranks has the name \"t\\x09p\"." + legal);
  struct nameless : dt::Dim<""> {};
  CHECK(said_of<dt::Sequential<Embedding, dt::Linear<onto<nameless>>>>(dt::Rule::name_legal) ==
        "linear: a dim of op matmul has the name \"\"." + legal);
  CHECK(said_of<dt::Sequential<Embedding, InRole<&tabbed_role>>>(dt::Rule::name_legal) ==
        "a\\x09b: a role in this path has characters that no name has." + legal);
}

TEST_CASE("rooms: operands, mapped dims, nested loops, axes, characters of a name") {
  auto const said = [](auto layout) { return said_of<decltype(layout)>(dt::Rule::plan_room); };
  auto const more = [](char const* where, int most, char const* of_what, char const* bound) {
    return words(where, ": there are more than ", most, " ", of_what, ". Use fewer, or raise ", bound,
                 ". See docs/errors/plan-room.md.");
  };
  CHECK(said(dt::Sequential<Embedding, Merge<5>>{}) == more("the model", 4, "operands", "max_operands"));
  CHECK(verdict_on<dt::Sequential<Embedding, Merge<4>>>().ok());
  CHECK(said(dt::Mapped<Tp, Four, dt::batch, dt::sequence, dt::keys, dt::rows, dt::embed, dt::heads, dt::head_dim,
                        dt::ffn, dt::vocab>{}) == more("the model", 8, "dims mapped by a policy", "max_mapped"));
  CHECK(said(dt::Sequential<Embedding, dt::Repeat<1, dt::Repeat<1, dt::Repeat<1, dt::Repeat<1, Mlp>>>>>{}) ==
        more("layers.*", 3, "loops inside each other", "max_nesting"));
  CHECK(said(InAxes<7>{}) == more("the model", 6, "axes", "max_axes"));
  CHECK(verdict_on<InAxes<6>>().ok());
  CHECK(has_all(said(dt::Sequential<Embedding, InRole<&long_role>>{}),
                {": there are more than 79 characters in a name. Use fewer, or raise max_name."}));
}

TEST_CASE("an exception carries the rule and the sentence") {
  dt::Verdict const v = verdict_on<OnHeads<Twelve>>();
  dt::LayoutError const error(v);
  CHECK(error.rule() == dt::Rule::placement_split);
  CHECK(std::string(error.what()) == "dovetail: placement/split: " + dt::sentence(v));
  CHECK(dt::sentence(dt::Verdict{}) == "the model: the layout is legal.");
}

TEST_CASE("every rule has its page, which begins with its id") {
  for (int r = 1; r < dt::rule_count; ++r) {
    auto const rule = static_cast<dt::Rule>(r);
    INFO(dt::page_of(rule));
    std::ifstream page(std::string(DOVETAIL_TESTS_DIR) + "/../" + dt::page_of(rule));
    std::string first;
    REQUIRE(std::getline(page, first));
    CHECK(first.rfind(std::string("# ") + dt::id_of(rule) + ": ", 0) == 0);
  }
}
