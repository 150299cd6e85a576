// SPDX-License-Identifier: MIT
// What collectives a layout needs, as Megatron's reasoning and its later forms have it: counts over plans of Llama-like
// types, placements of what they hold, and that the number of steps depends on neither depth nor ranks.
#include "catch.hpp"
#include "sample_models.hpp"

using namespace dovetail;
using namespace sample;

namespace {

constexpr i64 moves(auto const& part) {
  return part.count(step::all_reduce) + part.count(step::reduce_scatter) + part.count(step::all_gather) +
         part.count(step::all_to_all) + part.count(step::share_reduce);
}
/// Place on the first axis of the first parameter whose name ends so.
constexpr Place place_of(Plan const& p, char const* ending) {
  for (auto const& q : p.parameters) {
    i32 const n = q.name.size(), m = name(ending).size();
    if (n >= m && same_text(q.name.chars + n - m, ending)) return p.values[q.value].places[0];
  }
  return partial_max;
}

// ---- tensor parallel: a column split, then a row split, then one sum
// ----------------------------------------------------

constexpr bool llama_block_needs_two_all_reduces(Plan const& p) {
  // the embedding's rows of the vocabulary are one more sum, the best token of each rank one maximum
  return p.ok() && p.count(step::all_reduce) == 4 && moves(p) == 4 && p.count(step::slice) == 0 &&
         p.count(step::own) == 0 && p.executed(step::all_reduce) == 2 * 3 + 2;
}
struct TinyTp2 : TensorSharded<Tp2, TinyModel> {};
struct TinyTp8 : TensorSharded<Tp8, TinyModel> {};  // twice as many ranks as KV heads
static_assert(llama_block_needs_two_all_reduces(plan<TinyTp2>) && llama_block_needs_two_all_reduces(plan<TinyTp8>));
static_assert(plan<TinyTp2>.within<Tiny::Block>().count(step::all_reduce) == 2);
static_assert(plan<TinyTp2>.within<Tiny::Mlp>().count(step::all_reduce) == 0);  // its sum leaves it Partial
static_assert(plan<TinyTp2>.within<Tiny::FinalNorm>().count(step::all_reduce) == 0);

constexpr bool parameters_are_split_as_megatron_does(Plan const& p) {
  Place const on_heads = split_on(dim_of<heads>), on_ffn = split_on(dim_of<ffn>);
  return place_of(p, "q.weight") == on_heads && place_of(p, "k.weight") == on_heads &&
         place_of(p, "v.weight") == on_heads && place_of(p, "o.weight") == on_heads &&
         place_of(p, "gate.weight") == on_ffn && place_of(p, "up.weight") == on_ffn &&
         place_of(p, "down.weight") == on_ffn && place_of(p, "embedding.weight") == split_on(dim_of<vocab>) &&
         place_of(p, "attention_norm.weight").whole() && place_of(p, "final_norm.weight").whole();
}
static_assert(parameters_are_split_as_megatron_does(plan<TinyTp2>));

/// Keys and values in the cache are split as their heads are, and what a run hands out is settled.
constexpr bool results_are_placed(Plan const& p) {
  for (auto const& s : p.states)
    if (p.values[s.value].places[0] != split_on(dim_of<heads>)) return false;
  return p.states.size() == 2 && p.values[p.result].places[0] == split_on(dim_of<vocab>) &&
         p.values[p.output("choice")].places[0].whole() && p.output("nothing") == -1;
}
static_assert(results_are_placed(plan<TinyTp2>));

TEST_CASE("a Llama block needs two all-reduces under tensor parallelism, whatever the ranks") {
  CHECK(llama_block_needs_two_all_reduces(plan<TinyTp2>));
  CHECK(llama_block_needs_two_all_reduces(plan<TinyTp8>));
  CHECK(parameters_are_split_as_megatron_does(plan<TinyTp2>));
  CHECK(results_are_placed(plan<TinyTp2>));
}

// ---- biases: those before a nonlinearity are split, those after a sum join it once
// ------------------------------------

using Biased = Llama<16, 8, 4, 4, 24, 40, true>;
struct BiasedModel : TensorSharded<Tp2, Biased::Model<Repeat<3, Biased::Block>>> {};
struct ParallelModel : TensorSharded<Tp2, Biased::Model<Repeat<3, Biased::ParallelBlock>>> {};

constexpr bool biases_join_once(Plan const& p, i64 all_reduces) {
  return p.ok() && p.within<Biased::SelfAttention>().count(step::all_reduce) == 0 &&
         p.count(step::all_reduce) == all_reduces + 2 && moves(p) == all_reduces + 2 &&
         place_of(p, "o.bias") == partial_sum && place_of(p, "down.bias") == partial_sum &&
         place_of(p, "q.bias") == split_on(dim_of<heads>) && place_of(p, "up.bias") == split_on(dim_of<ffn>);
}
static_assert(biases_join_once(plan<BiasedModel>, 2));
static_assert(biases_join_once(plan<ParallelModel>, 1));
static_assert(plan<ParallelModel>.within<Biased::ParallelBlock>().count(step::all_reduce) == 1);
TEST_CASE("biases after a row split join the sum once: two all-reduces a block, one where it is parallel") {
  CHECK(biases_join_once(plan<BiasedModel>, 2));
  CHECK(biases_join_once(plan<ParallelModel>, 1));
}

// ---- norms of q and k
// ---------------------------------------------------------------------------------------------------

using FullNorm = Llama<18, 9, 3, 2, 27, 41, false, QkNorm::full>;
using HeadNorm = Llama<18, 9, 3, 2, 27, 41, false, QkNorm::per_head>;
struct FullNormModel : TensorSharded<Tp2, FullNorm::Model<Repeat<3, FullNorm::Block>>> {};
struct HeadNormModel : TensorSharded<Tp2, HeadNorm::Model<Repeat<3, HeadNorm::Block>>> {};

/// A norm over all heads sums one number a token; over KV heads, what is owned and not what is held.
constexpr bool full_norms_add_a_small_sum_each(Plan const& p) {
  i64 small = 0;
  for (auto const& s : p.steps)
    if (s.kind == step::all_reduce && p.values[s.results[0]].dims.size() == 2) ++small;  // [batch,sequence]
  return p.ok() && p.within<FullNorm::Block>().count(step::all_reduce) == 4 &&
         p.within<FullNorm::Block>().count(step::own) == 1 && small == 3;  // the third is the choice
}
static_assert(full_norms_add_a_small_sum_each(plan<FullNormModel>));
static_assert(plan<HeadNormModel>.within<HeadNorm::Block>().count(step::all_reduce) == 2);
static_assert(plan<HeadNormModel>.count(step::own) == 0 && place_of(plan<HeadNormModel>, "q_norm.weight").whole());
TEST_CASE("a norm over all heads costs one small all-reduce for q and one for k, a norm of each head none") {
  CHECK(full_norms_add_a_small_sum_each(plan<FullNormModel>));
  CHECK(plan<HeadNormModel>.within<HeadNorm::Block>().count(step::all_reduce) == 2);
}

// ---- sequence parallel
// ----------------------------------------------------------------------------------------------------

struct SequenceModel : TensorSharded<Tp2, Tiny::Model<Repeat<3, Tiny::SequenceNorms<Tp2>>>> {};

constexpr bool all_reduces_become_scatters_and_gathers(Plan const& p) {
  auto const block = p.within<Tiny::SequenceNorms<Tp2>>();
  return p.ok() && block.count(step::reduce_scatter) == 2 && block.count(step::all_gather) == 2 &&
         block.count(step::all_reduce) == 0 && block.count(step::slice) == 0 && moves(block) == 4 &&
         p.executed(step::reduce_scatter) == 2 * 3 + 1 &&  // the embedding's sum is scattered before the loop
         p.count(step::slice) == 0 && p.values[p.loops[0].argument].places[0] == split_on(dim_of<sequence>);
}
static_assert(all_reduces_become_scatters_and_gathers(plan<SequenceModel>));
TEST_CASE("norms on parts of the sequence turn two all-reduces into two reduce-scatters and two all-gathers") {
  CHECK(all_reduces_become_scatters_and_gathers(plan<SequenceModel>));
}

// ---- replicas, depth, ranks
// ----------------------------------------------------------------------------------------------

struct TinyDp : Replicated<Dp2, TinyModel> {};
struct TinyDpTp : Replicated<Dp2, TensorSharded<Tp2, TinyModel>> {};
struct DeepModel : TensorSharded<Tp2, Tiny::Model<Repeat<300, Tiny::Block>>> {};
struct Untied : TensorSharded<Tp2, Tiny::Model<Repeat<3, Tiny::Block>, Tiny::OwnHead>> {};

constexpr bool replicas_talk_to_nobody() {
  Plan const& alone = plan<TinyDp>;
  Plan const& both = plan<TinyDpTp>;
  bool ok = alone.ok() && both.ok() && moves(alone) == 0 && both.count(step::all_reduce) == 4 && moves(both) == 4;
  for (auto const& s : both.steps)
    if (communicates(s.kind)) ok = ok && same_text(both.mesh(0)[s.axis]->name, "tp");
  for (i32 i : both.inputs) ok = ok && both.values[i].places[0] == split_on(dim_of<batch>);
  return ok && both.ranks() == 4 && both.inputs.size() == 1;
}
static_assert(replicas_talk_to_nobody());

constexpr bool a_plan_is_as_long_as_its_kinds_of_layers() {
  Plan const &shallow = plan<TinyTp2>, &deep = plan<DeepModel>, &wide = plan<TinyTp8>;
  return deep.steps.size() == shallow.steps.size() && deep.values.size() == shallow.values.size() &&
         wide.steps.size() == shallow.steps.size() && deep.executed(step::all_reduce) == 602 &&
         deep.loops.size() == 1 && deep.loops[0].count == 300;
}
static_assert(a_plan_is_as_long_as_its_kinds_of_layers());

constexpr bool a_tied_head_is_one_parameter() {
  return plan<Untied>.ok() && plan<Untied>.parameters.size() == plan<TinyTp2>.parameters.size() + 1 &&
         plan<TinyTp2>.ties.empty();  // ties are between stages
}
static_assert(a_tied_head_is_one_parameter());

TEST_CASE("replicas of serving exchange nothing, and ask for their part of the batch") {
  CHECK(replicas_talk_to_nobody());
}
TEST_CASE("steps and values depend on kinds of layers, not on depth or ranks") {
  CHECK(a_plan_is_as_long_as_its_kinds_of_layers());
  CHECK(a_tied_head_is_one_parameter());
}

// ---- a user's own dim, op and layer
// --------------------------------------------------------------------------------------

struct channels : Dim<"channels"> {};
struct Mixer {
  static constexpr Value apply(Builder& b, Value x) {
    Dims const out = dims(extent<channels>(12));
    return linear(b, linear(b, x, LinearConfig{dims(extent<embed>(16)), out, false, Name{"in"}}),
                  LinearConfig{out, dims(extent<embed>(16)), true, Name{"out"}});
  }
};
struct OwnLayers : Mapped<Tp3, Tiny::Model<Repeat<2, Residual<Mixer>>>, channels> {};
static_assert(plan<OwnLayers>.ok() && plan<OwnLayers>.within<Mixer>().count(step::all_reduce) == 0);
static_assert(plan<OwnLayers>.executed(step::all_reduce) == 2 && moves(plan<OwnLayers>) == 1);
static_assert(place_of(plan<OwnLayers>, "in.weight") == split_on(dim_of<channels>));

TEST_CASE("a user's dim is split like any other") { CHECK(plan<OwnLayers>.executed(step::all_reduce) == 2); }

}  // namespace
