// SPDX-License-Identifier: MIT
// Every rule broken by a small layout: the sentence names what a user needs, and its page exists.
#include <dovetail/dovetail.hpp>
#include <dovetail/plan/sentence.hpp>
#include <fstream>
#include <initializer_list>

#include "catch.hpp"
namespace dt = dovetail;
using dt::dims, dt::extent;

namespace {

struct Dp : dt::Axis<"dp", 2> {};
struct Tp : dt::Axis<"tp", 3> {};
struct Other : dt::Axis<"other", 2> {};
struct Pp : dt::Axis<"pp", 5> {};
struct Mlp : dt::GatedMlp<dt::GatedMlpConfig{8, 24}> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Attention
    : dt::Attention<dt::AttentionConfig{.embed_size = 8, .head_count = 9, .kv_head_count = 3, .head_size = 2}> {};

template <class Layout>
dt::Verdict verdict_on() {
  return dt::build([](dt::Builder& b, dt::Value x) { return dt::apply_layer<Layout>(b, x); }).verdict;
}
template <class Layout>
std::string said_of() {
  return dt::sentence(verdict_on<Layout>());
}

bool has_all(std::string const& text, std::initializer_list<char const*> parts) {
  for (auto const* part : parts)
    if (text.find(part) == std::string::npos) return false;
  return true;
}

struct Twelve : dt::Axis<"tp", 12> {};
struct Six : dt::Axis<"tp", 6> {};
struct Unequal : dt::Axis<"tp", dt::Shares<30, 1>{}> {};
struct Blocks : dt::GatedMlp<dt::GatedMlpConfig{8, 256, 128}> {};
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

}  // namespace

TEST_CASE("more ranks than units: dim, value, axis, size, legal sizes, and that a pipeline has no such limit") {
  CHECK(said_of<OnHeads<Twelve>>() ==
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
  CHECK(has_all(said_of<dt::TensorSharded<Tp, dt::Sequential<Embedding, Blocks>>>(),
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
  CHECK(has_all(said_of<Both>(), {"axis tp", "ffn", "embed", "docs/errors/placement-ambiguous.md"}));
  CHECK(has_all(said_of<dt::TensorSharded<Tp, dt::Sequential<Embedding, Up<8>, Reorder>>>(),
                {"ffn arrives split over axis tp at op reorder", "maps<ffn>()", "needs_whole<ffn>()"}));
  CHECK(has_all(said_of<dt::Sequential<Embedding, Shift>>(), {"op shift contradicts itself about embed"}));
  CHECK(has_all(said_of<dt::Sequential<Embedding, Up<16>>>(), {"up: op matmul meets embed", "16", "8"}));
}

TEST_CASE("meshes: branches, order, the same policy twice") {
  struct Branches
      : dt::Sequential<Embedding, dt::TensorSharded<Tp, Mlp>, dt::Repeat<1, dt::TensorSharded<Other, Mlp>>> {};
  CHECK(has_all(said_of<Branches>(), {"axis other of 2 ranks stands beside axis tp", "docs/errors/mesh-branches.md"}));
  struct First : dt::Replicated<Dp, dt::TensorSharded<Tp, Mlp>> {};
  struct Second : dt::TensorSharded<Tp, dt::Replicated<Dp, Mlp>> {};
  CHECK(has_all(said_of<dt::Sequential<Embedding, dt::Cycle<2, First, Second>>>(),
                {"axis dp stands in another order here, inside axis tp", "docs/errors/mesh-order.md"}));
  struct Twice : dt::TensorSharded<Tp, dt::Sequential<Embedding, dt::TensorSharded<Tp, Mlp>>> {};
  CHECK(has_all(said_of<Twice>(), {"maps axis tp to heads", "Remove one of the two", "docs/errors/policy-twice.md"}));
}

TEST_CASE("pipelines: nested, too many stages, cuts that do not add up, another number of stages") {
  struct Inner : dt::Axis<"inner", 2> {};
  struct Nested : dt::Pipelined<Dp, dt::PipelineStage<dt::Sequential<Embedding, Half>>,
                                dt::PipelineStage<dt::Pipelined<Inner, Half>>> {};
  CHECK(has_all(said_of<Nested>(), {"a pipeline (axis inner) stands inside another one"}));
  struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
  CHECK(has_all(said_of<dt::Pipelined<Pp, Model>>(),
                {"axis pp has 5 ranks, one a stage", "4 layers to deal", "Legal sizes of pp: 1 to 4"}));
  CHECK(has_all(said_of<dt::Pipelined<Dp, dt::Cuts<3, 2>, Model>>(),
                {"stages of axis dp are stated to run 5 layers in all", "the model has 4"}));
  CHECK(has_all(said_of<dt::Pipelined<Dp, dt::Cuts<2, 1, 1>, Model>>(),
                {"axis dp has 2 ranks", "another number of stages is stated"}));
}

TEST_CASE("parameters of one name") {
  struct Twice : dt::Sequential<Embedding, dt::Residual<Up<8>>> {
    static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
      x = Embedding::apply(b, x);
      Up<8>::apply(b, x);
      return Up<8>::apply(b, x);
    }
  };
  CHECK(has_all(said_of<Twice>(), {"up.weight: two parameters have this name", "docs/errors/parameter-name.md"}));
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
