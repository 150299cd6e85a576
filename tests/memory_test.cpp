// SPDX-License-Identifier: MIT
// What ranks keep and compute, against numbers worked out by hand: parameters of SmolLM2-135M held and owned, KV cache,
// arithmetic; and the proof of coverage, with plans broken on purpose.
#include <dovetail/plan/coverage.hpp>
#include <dovetail/plan/flops.hpp>

#include "catch.hpp"
#include "sample_models.hpp"

using namespace dovetail;
using namespace sample;

namespace {

struct SmolTp2 : TensorSharded<Tp2, SmolLM2> {};
struct SmolTp3 : TensorSharded<Tp3, SmolLM2> {};
struct SmolOn12 : Replicated<Dp2, Pipelined<Pp2, TensorSharded<Tp3, SmolLM2>>> {};
struct TinyTp2 : TensorSharded<Tp2, TinyModel> {};
struct OddTp4 : TensorSharded<Tp4, OddModel> {};
struct TinyOn12 : Replicated<Dp2, Pipelined<Pp3, TensorSharded<Tp2, TinyModel>>> {};
using Biased = Llama<16, 8, 4, 4, 24, 40, true>;
struct BiasedTp2 : TensorSharded<Tp2, Biased::Model<Repeat<3, Biased::Block>>> {};

// ---- parameters
// ----------------------------------------------------------------------------------------------------------

constexpr i64 table = 49152 * 576, layer = 576 * 576 * 2 + 2 * 192 * 576 + 3 * 576 * 1536 + 2 * 576;
static_assert(table + 30 * layer + 576 == 134515008);  // published for SmolLM2-135M

constexpr i64 owned_by_all(Plan const& p) {
  i64 n = 0;
  for (i64 rank = 0; rank < p.ranks(); ++rank) n += owned_parameters(p, rank);
  return n;
}
constexpr bool smollm2_has_its_parameters_on_any_ranks() {
  return total_parameters(plan<SmolLM2>) == 134515008 && held_parameters(plan<SmolLM2>, 0) == 134515008 &&
         owned_by_all(plan<SmolLM2>) == 134515008 && total_parameters(plan<SmolTp3>) == 134515008 &&
         owned_by_all(plan<SmolTp3>) == 134515008 && total_parameters(plan<SmolTp2>) == 134515008 &&
         owned_by_all(plan<SmolTp2>) == 134515008 && total_parameters(plan<SmolOn12>) == 134515008 &&
         owned_by_all(plan<SmolOn12>) == 134515008;
}
static_assert(smollm2_has_its_parameters_on_any_ranks());

constexpr bool ranks_hold_their_part() {
  i64 const norms = 2 * 576, mlp = 3 * 576 * 512;  // a third of the columns
  i64 const third = table / 3 + 30 * (192 * 576 * 2 + 2 * 64 * 576 + mlp + norms) + 576;
  i64 const kv = 2 * 2 * 64 * 576;  // on 2 ranks both hold KV head 1
  i64 const five = table / 2 + 30 * (320 * 576 * 2 + kv + 3 * 576 * 768 + norms) + 576;
  i64 const four = table / 2 + 30 * (256 * 576 * 2 + kv + 3 * 576 * 768 + norms) + 576;
  bool ok = held_parameters(plan<SmolTp2>, 0) == five && held_parameters(plan<SmolTp2>, 1) == four;
  for (i64 rank = 0; rank < 3; ++rank) ok = ok && held_parameters(plan<SmolTp3>, rank) == third;
  // the embedding is held by the first stage and, for the tied head, by the last; the first owns it
  Plan const& p = plan<SmolOn12>;
  i64 const half = 15 * (192 * 576 * 2 + 2 * 64 * 576 + mlp + norms);
  for (i64 rank = 0; rank < 12; ++rank) {
    bool const last = p.place_of(rank).stage == 1, first_copy = p.place_of(rank).at[0] == 0;
    i64 const whole = 15 * norms + 576 * last;  // norms: on tp only the first rank owns them
    ok = ok && held_parameters(p, rank) == table / 3 + half + 576 * last;
    i64 const owns = (last ? 0 : table / 3) + half - 15 * norms + (p.place_of(rank).at[1] == 0 ? whole : 0);
    ok = ok && owned_parameters(p, rank) == (first_copy ? owns : 0);
  }
  return ok;
}
static_assert(ranks_hold_their_part());

/// A bias that joins a partial sum is stored by every rank of the axis, as value or zero, and owned by the first.
constexpr bool biases_of_sums_are_stored_by_all() {
  Plan const& p = plan<BiasedTp2>;
  i64 const joined = 2 * 16, norms = 2 * 16;
  i64 const split = 40 * 16 / 2 + 3 * ((32 + 16 + 16) * 17 + 32 * 16 + 2 * 24 * 17 + 24 * 16) / 2;
  return held_parameters(p, 0) == split + 3 * (joined + norms) + 16 && held_parameters(p, 1) == held_parameters(p, 0) &&
         owned_parameters(p, 1) == split && owned_parameters(p, 0) == held_parameters(p, 0);
}
static_assert(biases_of_sums_are_stored_by_all());

constexpr bool the_most_is_over_all_ranks(Plan const& p) {
  i64 most = 0;
  for (i64 rank = 0; rank < p.ranks(); ++rank) {
    i64 const n = weight_bytes(p, rank, f32_storage);
    if (n != 4 * held_parameters(p, rank)) return false;
    most = n > most ? n : most;
  }
  return weight_bytes_per_rank(p, f32_storage) == most && weight_bytes_per_rank(p, f64_storage) == 2 * most;
}
static_assert(the_most_is_over_all_ranks(plan<OddTp4>) && the_most_is_over_all_ranks(plan<TinyOn12>));
static_assert(weight_bytes_per_rank(plan<SmolOn12>, f32_storage) < 200 * MiB);

TEST_CASE("parameters held and owned are those of the model, counted by hand") {
  CHECK(smollm2_has_its_parameters_on_any_ranks());
  CHECK(ranks_hold_their_part());
  CHECK(biases_of_sums_are_stored_by_all());
}
TEST_CASE("the most weight bytes of any rank") {
  CHECK(the_most_is_over_all_ranks(plan<OddTp4>));
  CHECK(the_most_is_over_all_ranks(plan<SmolTp2>));
  CHECK(the_most_is_over_all_ranks(plan<TinyOn12>));
  CHECK(the_most_is_over_all_ranks(plan<BiasedTp2>));
}

// ---- cache and arithmetic
// --------------------------------------------------------------------------------------------------

constexpr SequenceRun sequences[] = {{10, 3, 1}, {0, 2, 2}};  // contexts of 13 and 2 tokens
constexpr RunShape run{sequences, 2};

constexpr bool caches_hold_what_heads_read() {
  bool ok = kv_bytes_per_token(plan<SmolLM2>, 0, f32_storage) == 30 * 2 * 3 * 64 * 4;
  for (i64 rank = 0; rank < 3; ++rank)
    ok = ok && kv_bytes_per_token(plan<SmolTp3>, rank, f32_storage) == 30 * 2 * 64 * 4;
  for (i64 rank = 0; rank < 2; ++rank)
    ok = ok && kv_bytes_per_token(plan<SmolTp2>, rank, f64_storage) == 30 * 2 * 2 * 64 * 8;
  for (i64 rank = 0; rank < 12; ++rank) {
    i64 const token = 15 * 2 * 64 * 4, context = plan<SmolOn12>.place_of(rank).at[0] == 0 ? 13 : 2;
    ok = ok && kv_bytes_per_token(plan<SmolOn12>, rank, f32_storage) == token;
    ok = ok && state_bytes(plan<SmolOn12>, rank, run, f32_storage) == token * context;  // a sequence each replica
  }
  return ok && state_bytes(plan<SmolTp3>, 2, run, f32_storage) == 15 * 30 * 2 * 64 * 4;
}
static_assert(caches_hold_what_heads_read());

constexpr i64 flops_of_all(Plan const& p) {
  i64 n = 0;
  for (i64 rank = 0; rank < p.ranks(); ++rank) n += flops(p, rank, run);
  return n;
}
constexpr bool arithmetic_is_two_operations_a_weight_and_token() {
  i64 const tokens = 5, rows = 3, pairs = 3 * 13 + 2 * 2;  // of a query and a key
  i64 const weights = 3 * (32 * 16 * 2 + 2 * 16 * 16 + 3 * 16 * 24);
  i64 const whole = 2 * weights * tokens + 3 * 4 * pairs * 32 + 2 * 40 * 16 * rows;
  return flops_of_all(plan<TinyModel>) == whole && flops_of_all(plan<TinyTp2>) == whole &&
         flops_of_all(plan<TinyOn12>) == whole && flops(plan<TinyTp2>, 0, run) == whole / 2;
}
/// 9 query heads on 4 ranks: four of the projections to KV heads are computed, not three.
constexpr bool shared_heads_are_computed_by_every_holder() {
  return flops_of_all(plan<OddTp4>) - flops_of_all(plan<OddModel>) == 4 * 2 * (2 * 18 * 2 * 5) * (5 - 3);
}
static_assert(arithmetic_is_two_operations_a_weight_and_token());
static_assert(shared_heads_are_computed_by_every_holder());
TEST_CASE("cache bytes and arithmetic follow from what ranks hold") {
  CHECK(caches_hold_what_heads_read());
  CHECK(arithmetic_is_two_operations_a_weight_and_token());
  CHECK(shared_heads_are_computed_by_every_holder());
}

// ---- coverage
// ----------------------------------------------------------------------------------------------------------------

static_assert(coverage(plan<TinyModel>).ok() && coverage(plan<OddTp4>).ok() && coverage(plan<TinyOn12>).ok());
static_assert(coverage(plan<BiasedTp2>).ok());

constexpr PlanDraft draft_of(Plan const& p) {
  PlanDraft d;
  for (auto const& x : p.steps) d.steps.push(x);
  for (auto const& x : p.values) d.values.push(x);
  for (auto const& x : p.parameters) d.parameters.push(x);
  for (auto const& x : p.states) d.states.push(x);
  for (auto const& x : p.stages_list) d.stages.push(x);
  for (auto const& x : p.loops) d.loops.push(x);
  for (auto const& x : p.scopes) d.scopes.push(x);
  for (auto const& x : p.ties) d.ties.push(x);
  d.result = p.result, d.above = p.above;
  return d;
}
constexpr Coverage broken(Plan const& p, auto const& change) {
  PlanDraft draft = draft_of(p);
  change(draft);
  OwnedPlan const owned(draft);
  return coverage(owned.view());
}
constexpr i32 index_of(Plan const& p, char const* name, i32 stage) {
  for (i32 i = 0; i < p.parameters.size(); ++i)
    if (same_text(p.parameters[i].name.chars, name) && p.parameters[i].stage == stage) return i;
  return -1;
}
constexpr bool gaps_are_found() {
  Plan const &tp = plan<TinyTp2>, &staged = plan<TinyOn12>;
  i32 const up = index_of(tp, "layers.*.mlp.up.weight", 0), table_of_head = index_of(staged, "embedding.weight", 2);
  Coverage const lacks =
      broken(tp, [&](PlanDraft& d) { d.values[d.parameters[up].value].places[0] = split_on(dim_of<heads>); });
  Coverage const diagonal = broken(tp, [&](PlanDraft& d) {
    d.values[d.parameters[up].value].places[0] = split_on(dim_of<heads>);
    d.values[d.parameters[up].value].dims = dims(extent<heads>(8), extent<kv_heads>(4, 8));
  });
  Coverage const untied = broken(staged, [](PlanDraft& d) { d.ties.cut(0); });
  Coverage const renamed = broken(tp, [&](PlanDraft& d) { d.parameters[up].name = name("layers.*.mlp.gate.weight"); });
  Coverage const numbered = broken(staged, [](PlanDraft& d) {  // the second stage's layers as the first's
    for (i32 i = 0; i < d.parameters.size(); ++i)
      if (d.parameters[i].stage == 1) d.parameters[i].layer.first = 0;
  });
  Coverage const cached = broken(staged, [](PlanDraft& d) { d.states[2].layer.first = d.states[0].layer.first; });
  Coverage const away = broken(staged, [&](PlanDraft& d) { d.parameters[table_of_head].stage = 0; });
  return lacks.gap == Gap::no_dim && lacks.parameter == up && diagonal.gap == Gap::two_dims &&
         untied.gap == Gap::owned_twice && untied.parameter == table_of_head && renamed.gap == Gap::owned_twice &&
         numbered.gap == Gap::owned_twice && staged.parameters[numbered.parameter].stage == 1 &&
         cached.gap == Gap::owned_twice && cached.state == 2 && away.gap == Gap::other_stage &&
         away.parameter == table_of_head && broken(staged, [](PlanDraft&) {}).ok();
}
static_assert(gaps_are_found());
TEST_CASE("every parameter and state is owned once and held where it is used; a plan in which one is not is found") {
  CHECK(gaps_are_found());
  CHECK(coverage(planned<SmolTp2>()).ok());
  CHECK(coverage(planned<SmolOn12>()).ok());
  CHECK(coverage(planned<Replicated<Dp2, Mapped<Cp2, OddTp4, heads>>>()).gap == Gap::none);
}

}  // namespace
