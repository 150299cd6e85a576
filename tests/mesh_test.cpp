// SPDX-License-Identifier: MIT
// The mesh read off the nesting: how ranks are counted and numbered, which axes a stage has and in which order, who
// exchanges with whom, and the layouts that are refused.
#include <dovetail/plan/peers.hpp>

#include "catch.hpp"
#include "sample_models.hpp"

using namespace dovetail;
using namespace sample;

namespace {

// ---- numbering
// ---------------------------------------------------------------------------------------------------------

/// Every rank has its own place, numbered as the doc has it: replicas, stages, then the stage's axes.
constexpr bool ranks_and_places_agree(Plan const& p) {
  for (i64 rank = 0; rank < p.ranks(); ++rank) {
    RankPlace const here = p.place_of(rank);
    if (p.rank_of(here) != rank || here.at.size() != p.mesh(here.stage).size()) return false;
    for (i32 a = 0; a < here.at.size(); ++a)
      if (here.at[a] < 0 || here.at[a] >= p.mesh(here.stage)[a]->size) return false;
    for (i32 a = 0; a < here.at.size(); ++a)
      for (i32 c = 0; c < p.mesh(here.stage)[a]->size; ++c) {
        RankPlace const other = p.place_of(rank_along(p, rank, a, c));
        if (other.stage != here.stage || other.at[a] != c) return false;
        for (i32 b = 0; b < here.at.size(); ++b)
          if (b != a && other.at[b] != here.at[b]) return false;
      }
  }
  return p.ok();
}

struct TpModel : TensorSharded<Tp4, TinyModel> {};
struct PipelineOfTp : Replicated<Dp2, Pipelined<Pp3, TensorSharded<Tp2, TinyModel>>> {};
struct TpOfReplicas : TensorSharded<Tp2, Replicated<Dp2, TinyModel>> {};

struct A1 : Axis<"ep", 3> {};
/// Stages with sizes of their own: 4 ranks, then 2, then 2 times 3.
struct Front : Sequential<Tiny::Embedding, Repeat<1, Tiny::Block>> {};
struct Back : Sequential<Repeat<1, Tiny::Block>, Tiny::FinalNorm, Tiny::TiedHead> {};
struct OwnSizes : Replicated<Dp2, Pipelined<Pp3, PipelineStage<TensorSharded<Tp4, Front>>,
                                            PipelineStage<TensorSharded<Tp2, Repeat<2, Tiny::Block>>>,
                                            PipelineStage<TensorSharded<Tp2, SequenceSharded<A1, Back>>>>> {};

static_assert(ranks_and_places_agree(plan<TpModel>) && ranks_and_places_agree(plan<PipelineOfTp>));
static_assert(ranks_and_places_agree(plan<TpOfReplicas>) && ranks_and_places_agree(plan<OwnSizes>));

constexpr bool ranks_multiply_and_add() {
  Plan const &tp = plan<TpModel>, &pipeline = plan<PipelineOfTp>, &own = plan<OwnSizes>;
  RankPlace place;
  place.stage = 1, place.at.push(1), place.at.push(1);
  return tp.ranks() == 4 && tp.replicas() == 1 && plan<TinyModel>.ranks() == 1 && pipeline.ranks() == 12 &&
         pipeline.replicas() == 2 && pipeline.ranks_per_replica() == 6 && pipeline.rank_of(place) == 6 + 2 + 1 &&
         own.ranks_per_replica() == 4 + 2 + 6 && own.ranks() == 24 && own.stage(1).base == 4 &&
         own.stage(2).base == 6 && own.stage(2).ranks == 6 && own.place_of(12 + 6 + 4).at[2] == 1 &&
         own.place_of(12 + 6 + 4).at[1] == 1 && own.place_of(12 + 6 + 4).at[0] == 1;
}
static_assert(ranks_multiply_and_add());
TEST_CASE("policies multiply ranks, stages add them, and every rank has a place of its own") {
  CHECK(ranks_and_places_agree(plan<TpModel>));
  CHECK(ranks_and_places_agree(plan<PipelineOfTp>));
  CHECK(ranks_and_places_agree(plan<TpOfReplicas>));
  CHECK(ranks_and_places_agree(plan<OwnSizes>));
  CHECK(ranks_multiply_and_add());
}

// ---- axes of a stage
// ---------------------------------------------------------------------------------------------------

/// Its first layer is under tp alone; the second path, dp then tp, is the longest.
struct Siblings : Sequential<Tiny::Embedding, TensorSharded<Tp2, Residual<Tiny::Mlp>>,
                             Replicated<Dp2, TensorSharded<Tp2, Repeat<1, Tiny::Block>>>> {};
/// Naming an axis again folds it: the MLPs are split over the replicas.
struct Folded
    : Replicated<Dp2, Tiny::Model<Repeat<2, Sequential<Residual<Tiny::AttentionNorm, Tiny::SelfAttention>,
                                                       Residual<Tiny::MlpNorm, Mapped<Dp2, Tiny::Mlp, ffn>>>>>> {};
/// Inside the pipeline, over what is outside it.
struct FoldedOverReplicas
    : Replicated<Dp2, Pipelined<Pp2, Tiny::Model<Repeat<2, Residual<Mapped<Dp2, Tiny::Mlp, ffn>>>>>> {};
/// The innermost policy of an axis replaces the outer ones; one that maps nothing switches the axis off.
struct SwitchedOff : TensorSharded<Tp2, Tiny::Model<Repeat<2, Residual<Mapped<Tp2, Tiny::Mlp>>>>> {};

constexpr bool axes_stand_as_on_the_longest_path() {
  Mesh const& mesh = plan<Siblings>.mesh(0);
  return plan<Siblings>.ok() && mesh.size() == 2 && mesh[0] == axis_of<Dp2> && mesh[1] == axis_of<Tp2> &&
         plan<Siblings>.ranks() == 4;
}
constexpr Parameter const& parameter(Plan const& p, char const* name) {
  for (auto const& q : p.parameters)
    if (same_text(q.name.chars, name)) return q;
  capacity_exceeded("no such parameter");
  return p.parameters[0];
}
constexpr bool an_axis_named_again_folds() {
  Plan const& p = plan<Folded>;
  i64 moved = 0;
  for (auto const& s : p.steps) moved += communicates(s.kind);
  return p.ok() && p.ranks() == 2 && p.mesh(0).size() == 1 &&
         p.values[parameter(p, "layers.*.mlp.up.weight").value].places[0] == split_on(dim_of<ffn>) &&
         p.values[parameter(p, "layers.*.attention.q.weight").value].places[0].whole() &&
         p.count(step::all_gather) >= 1 && moved >= 2 && plan<FoldedOverReplicas>.ok() &&
         plan<FoldedOverReplicas>.ranks() == 4 && plan<FoldedOverReplicas>.mesh(1).size() == 1;
}
constexpr bool an_axis_can_be_switched_off() {
  Plan const& p = plan<SwitchedOff>;
  return p.ok() && p.values[parameter(p, "layers.*.mlp.up.weight").value].places[0].whole() &&
         p.values[parameter(p, "embedding.weight").value].places[0] == split_on(dim_of<vocab>);
}
static_assert(axes_stand_as_on_the_longest_path());
static_assert(an_axis_named_again_folds());
static_assert(an_axis_can_be_switched_off());
TEST_CASE("a stage's axes stand as on the longest path; the same axis folds or is switched off") {
  CHECK(axes_stand_as_on_the_longest_path());
  CHECK(an_axis_named_again_folds());
  CHECK(an_axis_can_be_switched_off());
}

// ---- peers of a send
// -----------------------------------------------------------------------------------------------------

/// Who sends to a rank knows it, every receiver has one sender in its own replica, and the load is even.
constexpr bool senders_and_receivers_agree(Plan const& p) {
  for (i32 i = 0; i < p.steps.size(); ++i) {
    Step const& s = p.steps[i];
    if (s.kind != step::send) continue;
    i32 const from_stage = p.values[s.operands[0].value].stage;
    i64 received = 0, least = p.ranks(), most = 0;
    for (i64 rank = 0; rank < p.ranks(); ++rank) {
      i64 const sender = receives_from(p, i, rank);
      if ((sender >= 0) != (p.place_of(rank).stage == s.stage)) return false;
      if (sender >= 0) {
        RankPlace const from = p.place_of(sender), to = p.place_of(rank);
        if (from.stage != from_stage) return false;
        for (i32 a = 0; a < p.mesh(from_stage).size(); ++a)
          for (i32 b = 0; b < p.mesh(s.stage).size(); ++b)
            if (p.mesh(from_stage)[a] == p.mesh(s.stage)[b] && from.at[a] != to.at[b]) return false;
      }
      List<i64> const receivers = receivers_of(p, i, rank);
      if (p.place_of(rank).stage != from_stage && !receivers.empty()) return false;
      for (i64 r : receivers)
        if (receives_from(p, i, r) != rank) return false;
      received += receivers.size();
      if (p.place_of(rank).stage != from_stage) continue;
      least = receivers.size() < least ? receivers.size() : least;
      most = receivers.size() > most ? receivers.size() : most;
    }
    if (received != p.replicas() * p.stage(s.stage).ranks || most > least + 1) return false;
  }
  return p.ok() && p.count(step::send) > 0;
}
struct TwoWide : Pipelined<Pp2, PipelineStage<TensorSharded<Tp2, Front>>,
                           PipelineStage<TensorSharded<Tp5, Repeat<2, Residual<Tiny::Mlp>>>>> {};

constexpr bool receiver_j_takes_from_the_nearest_sender() {
  Plan const& p = plan<OwnSizes>;  // 4 ranks, 2, 6, in the second replica
  i32 const first = p.edges[0].step, second = p.edges[1].step;
  bool ok = true;
  for (i64 j = 0; j < 2; ++j) ok = ok && receives_from(p, first, 12 + 4 + j) == 12 + j * 4 / 2;
  for (i64 t = 0; t < 2; ++t)  // tp is on both stages: coordinates stay; ep only on the last
    for (i64 e = 0; e < 3; ++e) ok = ok && receives_from(p, second, 12 + 6 + 3 * t + e) == 12 + 4 + t;
  for (i64 j = 0; j < 5; ++j) ok = ok && receives_from(plan<TwoWide>, plan<TwoWide>.edges[0].step, 2 + j) == j * 2 / 5;
  return ok;
}
static_assert(senders_and_receivers_agree(plan<PipelineOfTp>) && senders_and_receivers_agree(plan<TwoWide>));
static_assert(senders_and_receivers_agree(plan<OwnSizes>));
static_assert(receiver_j_takes_from_the_nearest_sender());
TEST_CASE("a value goes to the next stage from equal coordinates, and evenly where the stages differ") {
  CHECK(senders_and_receivers_agree(plan<PipelineOfTp>));
  CHECK(senders_and_receivers_agree(plan<OwnSizes>));
  CHECK(senders_and_receivers_agree(plan<TwoWide>));
  CHECK(receiver_j_takes_from_the_nearest_sender());
}

// ---- refused
// -------------------------------------------------------------------------------------------------------------

struct Ep2 : Axis<"ep", 2> {};
struct Branches
    : Sequential<Tiny::Embedding, TensorSharded<Tp2, Residual<Tiny::Mlp>>, TensorSharded<Ep2, Repeat<1, Tiny::Block>>> {
};
struct Order : Sequential<Tiny::Embedding, Mapped<Ep2, TensorSharded<Tp2, Residual<Tiny::Mlp>>, batch>,
                          TensorSharded<Tp2, Mapped<Ep2, Repeat<1, Tiny::Block>, batch>>> {};
struct Twice : TensorSharded<Tp2, Tiny::Model<Repeat<2, Residual<TensorSharded<Tp2, Tiny::Mlp>>>>> {};
struct InsidePipeline : Pipelined<Pp2, Sequential<Tiny::Embedding, Pipelined<Pp2, Repeat<4, Tiny::Block>>>> {};
struct InsideRepeat : Tiny::Model<Repeat<2, Pipelined<Pp2, Repeat<2, Tiny::Block>>>> {};
struct TooManyStages : Pipelined<Pp4, TinyModel> {};  // three layers
struct WrongCut : Pipelined<Pp2, Cuts<1, 1>, TinyModel> {};
struct WrongStages : Pipelined<Pp3, PipelineStage<Front>, PipelineStage<Back>> {};
struct Tp9 : Axis<"tp", 9> {};
struct MoreRanksThanHeads : TensorSharded<Tp9, TinyModel> {};
struct MoreRanksThanSequences : Replicated<Tp9, TinyModel> {};

template <class Layout>
constexpr bool refused_by(Rule rule, AxisInfo const* axis) {
  Verdict const& v = plan<Layout>.verdict;
  return v.rule == rule && !plan<Layout>.ok() && v.axis == axis;
}
static_assert(refused_by<Branches>(Rule::mesh_branches, axis_of<Ep2>));
static_assert(refused_by<Order>(Rule::mesh_order, axis_of<Ep2>));
static_assert(refused_by<Twice>(Rule::policy_twice, axis_of<Tp2>));
static_assert(refused_by<InsidePipeline>(Rule::pipeline_nested, axis_of<Pp2>));
static_assert(refused_by<InsideRepeat>(Rule::pipeline_nested, axis_of<Pp2>));
static_assert(refused_by<TooManyStages>(Rule::pipeline_units, axis_of<Pp4>));
static_assert(refused_by<WrongCut>(Rule::pipeline_units, axis_of<Pp2>));
static_assert(refused_by<WrongStages>(Rule::pipeline_units, axis_of<Pp3>));
static_assert(refused_by<MoreRanksThanHeads>(Rule::placement_split, axis_of<Tp9>));
static_assert(plan<MoreRanksThanHeads>.verdict.dim == dim_of<heads> && plan<MoreRanksThanHeads>.verdict.units == 8);
static_assert(plan<MoreRanksThanSequences>.ok());  // a batch may leave ranks empty
TEST_CASE("layouts that break a rule of the mesh are refused with the axis that breaks it") {
  CHECK(refused_by<Branches>(Rule::mesh_branches, axis_of<Ep2>));
  CHECK(refused_by<Order>(Rule::mesh_order, axis_of<Ep2>));
  CHECK(refused_by<Twice>(Rule::policy_twice, axis_of<Tp2>));
  CHECK(refused_by<InsidePipeline>(Rule::pipeline_nested, axis_of<Pp2>));
  CHECK(refused_by<InsideRepeat>(Rule::pipeline_nested, axis_of<Pp2>));
  CHECK(refused_by<TooManyStages>(Rule::pipeline_units, axis_of<Pp4>));
  CHECK(refused_by<MoreRanksThanHeads>(Rule::placement_split, axis_of<Tp9>));
}

}  // namespace
