// SPDX-License-Identifier: MIT
// The policies of docs/add-a-policy.md: one that maps dims, one made of two, one that switches an axis off around a
// layer, and one that decides by what it is given. What they come to is asked of the plans.
#include <dovetail/models/llama.hpp>
#include <dovetail/plan/coverage.hpp>
#include <dovetail/plan/identity.hpp>
#include <dovetail/plan/refuse.hpp>
#include <dovetail/policy/layout_text.hpp>

#include "catch.hpp"

namespace dt = dovetail;

namespace {

// ---- the policies

/// Maps the wide dims of the MLP and of the vocabulary, and leaves attention whole.
template <class A, class L>
struct ColumnSharded : dt::Mapped<A, L, dt::ffn, dt::vocab> {};

/// Heads over a grid of two axes, everything else over the outer one alone.
template <class Outer, class Inner, class L>
struct HeadGrid : dt::Mapped<Outer, dt::Mapped<Inner, L, dt::heads>, dt::heads, dt::ffn, dt::vocab> {};

/// Switches an axis off around a layer: its ranks all compute it.
template <class A, class L>
struct Whole : dt::Mapped<A, L> {};

/// Maps the sequence around a layer whose input is at least `Width` wide, and leaves others alone.
template <class A, dt::i64 Width, class L>
struct SequenceWhereWide {
  static constexpr dt::i32 depth = dt::depth_of<L>(), children = dt::children_of<L>();
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    dt::Extent const* width = dt::find(b.dims(x), dt::dim_of<dt::embed>);
    if (!width || width->size < Width) return dt::apply_layer<L>(b, x);
    dt::MappedDims mapped;
    mapped.push(dt::dim_of<dt::sequence>);
    return b.under(dt::Policy{dt::axis_of<A>, mapped}, x, &dt::apply_layer<L>);
  }
};

// ---- a model to use them on

constexpr dt::LlamaConfig smol = dt::models::smollm2_135m;
struct Smol : dt::Llama<smol> {};
using AttentionNorm = dt::RmsNorm<smol.norm("attention_norm")>;
using MlpNorm = dt::RmsNorm<smol.norm("mlp_norm")>;
using SelfAttention = dt::Attention<smol.attention()>;
using Mlp = dt::GatedMlp<smol.mlp()>;
template <dt::Layer MlpNormed, dt::Layer OwnMlp>
struct Model
    : dt::Sequential<
          dt::TokenEmbedding<smol.embedding()>,
          dt::Repeat<30, dt::Sequential<dt::Residual<AttentionNorm, SelfAttention>, dt::Residual<MlpNormed, OwnMlp>>>,
          dt::RmsNorm<smol.norm("final_norm")>, dt::LmHead<smol.head()>> {};

struct Tp2 : dt::Axis<"tp", 2> {};
struct Tp3 : dt::Axis<"tp", 3> {};
struct Hp3 : dt::Axis<"hp", 3> {};
struct Pp2 : dt::Axis<"pp", 2> {};

// ---- what they come to

struct Columns : ColumnSharded<Tp2, Smol> {};
static_assert(dt::plan_of<Columns>.executed(dt::step::all_reduce) == 30 + 2);  // one a layer, embedding and choice

struct Grid : HeadGrid<Tp3, Hp3, Smol> {};
static_assert(dt::plan_of<Grid>.ranks() == 9 && dt::coverage(dt::plan_of<Grid>).ok());

struct WholeMlp : dt::TensorSharded<Tp3, Model<MlpNorm, Whole<Tp3, Mlp>>> {};
static_assert(dt::plan_of<WholeMlp>.within<Mlp>().count(dt::step::all_reduce) == 0);

struct Wide : dt::TensorSharded<Tp3, Model<SequenceWhereWide<Tp3, 512, MlpNorm>, Mlp>> {};
struct Narrow : dt::TensorSharded<Tp3, Model<SequenceWhereWide<Tp3, 1024, MlpNorm>, Mlp>> {};
static_assert(dt::plan_of<Wide>.count(dt::step::reduce_scatter) > 0);
static_assert(dt::plan_of<Narrow>.count(dt::step::reduce_scatter) == 0);

// A policy nests like any other: around stages, inside replicas, over a layer.
struct Staged : dt::Pipelined<Pp2, ColumnSharded<Tp2, Smol>> {};
static_assert(dt::plan_of<Staged>.ranks() == 4 && dt::plan_of<Staged>.stage(0).layers == 15);

std::string difference(dt::Plan const& plan, char const* text) {
  dt::LayoutPlan const planned = dt::plan_layout(dt::read_layout(text), smol.layers,
                                                 [](dt::Builder& b, dt::Value ids) { return dt::llama(b, ids, smol); });
  return dt::first_difference(plan, planned.view()).chars;
}

TEST_CASE("a layout text says the same as a policy of one's own") {
  CHECK(difference(dt::plan_of<Columns>, "tp2(ffn,vocab)") == "");
  CHECK(difference(dt::plan_of<Grid>, "tp3 hp3(heads)") == "");
  CHECK(difference(dt::plan_of<WholeMlp>, "tp3 tp()@mlp") == "");
  CHECK(difference(dt::plan_of<Wide>, "tp3 tp(sequence)@mlp_norm") == "");
  CHECK(difference(dt::plan_of<Narrow>, "tp3") == "");
  CHECK(difference(dt::plan_of<Staged>, "pp2 tp2(ffn,vocab)") == "");
}

TEST_CASE("policies of one's own cover the model") {
  for (dt::Plan const* plan : {&dt::plan_of<Columns>, &dt::plan_of<Grid>, &dt::plan_of<WholeMlp>, &dt::plan_of<Wide>,
                               &dt::plan_of<Narrow>, &dt::plan_of<Staged>}) {
    CHECK(dt::coverage(*plan).ok());
    CHECK(dt::total_parameters(*plan) == 134'515'008);
  }
}

}  // namespace
