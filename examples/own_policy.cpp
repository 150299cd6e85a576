// SPDX-License-Identifier: MIT
// Policies of one's own: one that is a name for two others, one that decides by the stage it is in. Their cost is asked
// of the plans while this compiles; then each layout runs, and must give the unsplit model's logits bit for bit.
#include "finish_output.hpp"
#include "made_up_run.hpp"

#include <cstdio>
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

// ---- the policies

/// Replicas whose blocks are split, with the vocabulary whole on each rank: more memory, two exchanges fewer a token.
template <class Dp, class Tp, class L>
struct Serving : dt::Replicated<Dp, dt::Mapped<Tp, L, dt::heads, dt::ffn>> {};

/// Splits a layer's ffn over A in one stage alone; the others have no such axis.
template <class A, dt::i32 Stage, class L>
struct WideStage {
  static constexpr dt::i32 depth = dt::depth_of<L>(), children = dt::children_of<L>();
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    if (b.stage() != Stage) return dt::apply_layer<L>(b, x);
    dt::MappedDims mapped;
    mapped.push(dt::dim_of<dt::ffn>);
    return b.under({dt::axis_of<A>, mapped}, x, &dt::apply_layer<L>);
  }
};

// ---- a model, and the policies around it

constexpr dt::LlamaConfig small{18, 4, 9, 3, 2, 27, 41, true, dt::models::rope(1e4)};
struct Whole : dt::Llama<small> {};

template <class OwnMlp>
struct ModelWith
    : dt::Sequential<
          dt::TokenEmbedding<small.embedding()>,
          dt::Repeat<small.layers, dt::Sequential<dt::Residual<dt::RmsNorm<small.norm("attention_norm")>,
                                                               dt::Attention<small.attention()>>,
                                                  dt::Residual<dt::RmsNorm<small.norm("mlp_norm")>, OwnMlp>>>,
          dt::RmsNorm<small.norm("final_norm")>, dt::LmHead<small.head()>> {};

struct Dp : dt::Axis<"dp", 2> {};
struct Pp : dt::Axis<"pp", 2> {};
struct Tp : dt::Axis<"tp", 4> {};

struct Served : Serving<Dp, Tp, Whole> {};
struct Usual : dt::Replicated<Dp, dt::TensorSharded<Tp, Whole>> {};
struct Deep : dt::Pipelined<Pp, ModelWith<WideStage<Tp, 1, dt::GatedMlp<small.mlp()>>>> {};

static_assert(dt::plan_of<Served>.executed(dt::step::all_reduce) == 2 * small.layers);
static_assert(dt::plan_of<Usual>.executed(dt::step::all_reduce) == 2 * small.layers + 2);
static_assert(dt::plan_of<Served>.weight_bytes_per_rank() > dt::plan_of<Usual>.weight_bytes_per_rank());
static_assert(dt::plan_of<Deep>.ranks() == 1 + 4 && dt::coverage(dt::plan_of<Deep>).ok());

int main() {
  try {
    auto const whole = logit_bits(dt::plan_of<Whole>, small.vocab_size);
    bool all = !whole.empty();
    auto const check = [&](char const* name, dt::Plan const& plan) {
      bool const same = logit_bits(plan, small.vocab_size) == whole;
      std::printf("%-8s %2d ranks: %s\n", name, static_cast<int>(plan.ranks()), same ? "the same bits" : "OTHER bits");
      all = all && same;
    };
    check("Served", dt::plan_of<Served>);
    check("Usual", dt::plan_of<Usual>);
    check("Deep", dt::plan_of<Deep>);
    return finish_output("own_policy", all ? 0 : 1);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "own_policy: %s\n", error.what());
    return 1;
  }
}
