// SPDX-License-Identifier: MIT
// Predicted communication against closed forms worked out by hand, and against laws: parts that ranks bring to an
// exchange make up what each of them has afterwards, and every sum of a report adds up.
#include <dovetail/plan/traffic.hpp>

#include "catch.hpp"
#include "sample_models.hpp"

using namespace dovetail;
using namespace sample;

namespace {

constexpr SequenceRun few[] = {{0, 3, 1}, {9, 2, 2}};                // 5 tokens, 3 rows
constexpr SequenceRun many[] = {{0, 70, 1}, {4, 1, 1}, {0, 29, 9}};  // 100 tokens, 11 rows
constexpr SequenceRun nothing[] = {{7, 0, 0}};
constexpr RunShape few_tokens{few, 2}, many_tokens{many, 3}, no_tokens{nothing, 1}, first_only{many, 1},
    second_only{many + 1, 1}, third_only{many + 2, 1};

constexpr i64 width = 16;  // of the residual stream of Tiny

// ---- closed forms
// --------------------------------------------------------------------------------------------------------

struct TpModel : TensorSharded<Tp2, TinyModel> {};
struct Tp4Model : TensorSharded<Tp4, TinyModel> {};

/// One all-reduce of the residual stream for the embedding and two a layer; a choice of 16 bytes for each row.
constexpr bool tensor_parallel_costs_two_all_reduces_a_layer(Plan const& p, i64 n) {
  i64 const sums = 1 + 2 * 3;
  TrafficReport const brief = total_traffic(p, few_tokens, f32_storage),
                      full = total_traffic(p, many_tokens, f32_storage);
  // short: every rank reads every other's; long: it reads one block of each, then the others' blocks
  i64 const one_shot = n * (n - 1) * (sums * 5 * width * 4 + 3 * 16);
  i64 const two_shot = 2 * (n - 1) * sums * 100 * width * 4 + n * (n - 1) * 11 * 16;
  return brief.total == Cost{n * (n - 1) * (sums + 1), one_shot} &&
         full.total == Cost{n * (n - 1) * (2 * sums + 1), two_shot} && full.of(step::all_reduce) == full.total &&
         full.along("tp") == full.total && full.along("dp") == Cost{} &&
         total_traffic(p, many_tokens, f64_storage).total.bytes == 2 * two_shot - n * (n - 1) * 11 * 16;
}
static_assert(tensor_parallel_costs_two_all_reduces_a_layer(plan<TpModel>, 2));
static_assert(tensor_parallel_costs_two_all_reduces_a_layer(plan<Tp4Model>, 4));

struct SmolTp3 : TensorSharded<Tp3, SmolLM2> {};
constexpr bool a_decoded_token_of_smollm2() {
  constexpr SequenceRun token[] = {{100, 1, 1}};
  Cost const c = traffic(plan<SmolTp3>, 1, RunShape{token, 1}, f32_storage).total;
  return c == Cost{2 * 62, 2 * (61 * 576 * 4 + 16)};  // 61 sums of 2304 bytes, each read from two others
}
static_assert(a_decoded_token_of_smollm2());

struct Replicas : Replicated<Dp2, TinyModel> {};
struct Pipeline : Pipelined<Pp3, TinyModel> {};
struct AllThree : Replicated<Dp2, Pipelined<Pp3, TensorSharded<Tp2, TinyModel>>> {};

constexpr bool replicas_cost_nothing_and_stages_one_send_each() {
  TrafficReport const replicas = total_traffic(plan<Replicas>, many_tokens, f32_storage);
  TrafficReport const pipeline = total_traffic(plan<Pipeline>, many_tokens, f32_storage);
  TrafficReport const all = total_traffic(plan<AllThree>, many_tokens, f32_storage);
  // the first replica has the sequences of 70 and 1 tokens, the other that of 29; two ranks a stage receive
  return replicas.total == Cost{} && pipeline.total == Cost{2, 2 * 100 * width * 4} &&
         pipeline.of(step::send) == pipeline.total && pipeline.by_axis.empty() &&
         all.of(step::send) == Cost{2 * 2 * 2, 2 * 2 * (71 + 29) * width * 4} && all.along("dp") == Cost{} &&
         traffic(plan<AllThree>, 0, many_tokens, f32_storage).of(step::send) == Cost{} &&
         traffic(plan<AllThree>, 2, many_tokens, f32_storage).of(step::send) == Cost{1, 71 * width * 4};
}
static_assert(replicas_cost_nothing_and_stages_one_send_each());

struct SequenceModel : TensorSharded<Tp2, Tiny::Model<Repeat<3, Tiny::SequenceNorms<Tp2>>>> {};
constexpr bool scatters_and_gathers_cost_what_long_all_reduces_do() {
  TrafficReport const r = total_traffic(plan<SequenceModel>, many_tokens, f32_storage);
  i64 const stream = 100 * width * 4;
  return r.of(step::reduce_scatter).bytes == (1 + 2 * 3) * stream && r.of(step::all_gather).bytes == 2 * 3 * stream &&
         r.of(step::all_reduce).bytes == 2 * 11 * (width * 4 + 16);  // rows that get logits, and the choice
}
static_assert(scatters_and_gathers_cost_what_long_all_reduces_do());

TEST_CASE("traffic of tensor, data, pipeline and sequence parallelism is what it is on paper") {
  CHECK(tensor_parallel_costs_two_all_reduces_a_layer(plan<TpModel>, 2));
  CHECK(tensor_parallel_costs_two_all_reduces_a_layer(plan<Tp4Model>, 4));
  CHECK(a_decoded_token_of_smollm2());
  CHECK(replicas_cost_nothing_and_stages_one_send_each());
  CHECK(scatters_and_gathers_cost_what_long_all_reduces_do());
}

// ---- sums
// ------------------------------------------------------------------------------------------------------------------

constexpr bool reports_add_up(Plan const& p, RunShape run) {
  Cost ranks;
  TrafficReport const all = total_traffic(p, run, f32_storage);
  for (i64 rank = 0; rank < p.ranks(); ++rank) {
    TrafficReport const r = traffic(p, rank, run, f32_storage);
    Cost kinds, axes, steps;
    for (auto const& c : r.by_kind) kinds += c;
    for (auto const& a : r.by_axis) axes += a.cost;
    for (i32 i = 0; i < p.steps.size(); ++i) {
      Cost const once = step_traffic(p, i, rank, run, f32_storage);
      for (i64 n = p.executions(p.steps[i].loop); n > 0; --n) steps += once;
      if (p.steps[i].stage != p.place_of(rank).stage && once != Cost{}) return false;
    }
    if (kinds != r.total || steps != r.total || axes + r.of(step::send) != r.total) return false;
    for (auto const& a : r.by_axis)
      if (traffic_by_axis(p, a.axis, rank, run, f32_storage) != a.cost) return false;
    ranks += r.total;
  }
  return ranks == all.total && (all.total.bytes > 0) == (all.total.messages > 0);
}
static_assert(reports_add_up(plan<TpModel>, few_tokens) && reports_add_up(plan<Pipeline>, many_tokens));

/// Sequences are cut one by one, so what is cut by sequence costs the sum of what each costs alone.
constexpr bool ragged_sequences_add_up() {
  Plan const& p = plan<SequenceModel>;
  for (i64 rank = 0; rank < 2; ++rank)
    for (StepKind kind : {step::reduce_scatter, step::all_gather}) {
      auto const bytes = [&](RunShape run) { return traffic(p, rank, run, f32_storage).of(kind).bytes; };
      if (bytes(many_tokens) != bytes(first_only) + bytes(second_only) + bytes(third_only)) return false;
    }
  // a sequence of one token is with the first rank alone: the other receives it, and sends nothing
  return traffic(p, 0, second_only, f32_storage).of(step::all_gather) == Cost{} &&
         traffic(p, 1, second_only, f32_storage).of(step::all_gather) == Cost{6, 6 * width * 4};
}
static_assert(ragged_sequences_add_up());
static_assert(total_traffic(plan<AllThree>, no_tokens, f32_storage).total == Cost{});  // nothing is no message
TEST_CASE("reports add up over steps, kinds, axes, ranks and sequences") {
  CHECK(reports_add_up(plan<TpModel>, few_tokens));
  CHECK(reports_add_up(plan<Pipeline>, many_tokens));
  CHECK(reports_add_up(plan<AllThree>, many_tokens));
  CHECK(reports_add_up(plan<SequenceModel>, many_tokens));
  CHECK(ragged_sequences_add_up());
}

// ---- exchanges of sharing followers
// ----------------------------------------------------------------------------------------

inline constexpr Op pool{.name = "pool"};
inline constexpr Op fold{.name = "fold", .folds = true};
constexpr Extent const nine = extent<heads>(9), three = extent<kv_heads>(3, 9), deep = extent<head_dim>(2);
constexpr Dims token_dims(Extent const& e) {
  return dims(extent<batch>(Symbol::batch), extent<sequence>(Symbol::tokens), e, deep);
}
constexpr Value projected(Builder& b, Value x, Extent const& e, char const* role) {
  return linear(b, x, LinearConfig{dims(extent<embed>(18)), dims(e, deep), false, name(role)});
}

/// KV heads that an op needs whole: a gather of what overlaps.
struct Gathers {
  static constexpr Value apply(Builder& b, Value x) {
    Value const k = projected(b, x, three, "k");
    return b.apply(Call(pool).reads(k).needs_whole<kv_heads>().maps_rest().yields(b.dims(k)));
  }
};
/// KV heads split by heads beside the same split by sequence: an exchange.
struct Exchanges {
  struct BySequence {
    static constexpr Value apply(Builder& b, Value x) { return projected(b, x, three, "by_sequence"); }
  };
  static constexpr Value apply(Builder& b, Value x) {
    Value const k = projected(b, x, three, "by_heads"), y = apply_layer<SequenceSharded<Tp2, BySequence>>(b, x);
    return ops::multiply(b, y, k);
  }
};
/// Query heads folded into KV heads, then read by what needs the sum.
struct Folds {
  static constexpr Value apply(Builder& b, Value x) {
    Value const q = projected(b, x, nine, "q");
    Value const k = b.apply(Call(fold).reads(q).contracts<heads>().maps_rest().yields(token_dims(three)));
    return ops::silu(b, k);
  }
};
template <class A, class L>
struct On : TensorSharded<A, Sequential<Odd::Embedding, L>> {};
/// Heads cut by two axes: an outer one, and an inner one that is gathered first.
template <class L>
struct Stacked : TensorSharded<Tp2, Mapped<Cp2, Sequential<Odd::Embedding, L>, heads>> {};

/// Of every exchange: what members bring makes up what each has afterwards, and costs all but its own.
constexpr bool exchanges_are_complete(Plan const& p, StepKind kind, RunShape run) {
  i64 seen = 0;
  for (i32 i = 0; i < p.steps.size(); ++i) {
    Step const& s = p.steps[i];
    if (s.kind != kind) continue;
    Tensor const &before = p.values[s.operands[0].value], &after = p.values[s.results[0]];
    Mesh const& mesh = p.mesh(s.stage);
    for (i64 rank = 0; rank < p.ranks(); ++rank) {
      Coordinate const at = p.place_of(rank).at;
      i64 const wanted = local_elements(after.dims, after.places, mesh, at, run);
      i64 brought = 0, own = 0;
      for (i32 m = 0; m < mesh[s.axis]->size; ++m) {
        Coordinate const giver = p.place_of(rank_along(p, rank, s.axis, m)).at;
        i64 const n = kind == step::all_gather ? brought_elements(before, mesh, s.axis, giver, run)
                                               : exchanged_elements(before, after, mesh, s.axis, giver, at, run);
        brought += n;
        if (m == at[s.axis]) own = n;
      }
      if (brought != wanted || step_traffic(p, i, rank, run, f32_storage).bytes != 4 * (wanted - own)) return false;
      ++seen;
    }
  }
  return p.ok() && seen > 0;
}
static_assert(exchanges_are_complete(plan<On<Tp2, Gathers>>, step::all_gather, few_tokens));
static_assert(exchanges_are_complete(plan<Stacked<Gathers>>, step::all_gather, few_tokens));
static_assert(exchanges_are_complete(plan<On<Tp2, Exchanges>>, step::all_to_all, many_tokens));

/// 9 query heads on 2, 4 and 5 ranks: pairs of ranks with a KV head in common, and how many elements it has.
constexpr bool sharers_exchange_what_they_share() {
  i64 const size = 5 * 2 * 4;  // bytes of one KV head of the short run
  auto const shared = [&](Plan const& p) { return total_traffic(p, few_tokens, f32_storage).of(step::share_reduce); };
  // 5+4 query heads: KV heads {0,1},{1,2}. 3+2+2+2: {0},{1},{1,2},{2}. 2+2+2+2+1: {0},{0,1},{1},{2},{2}
  return shared(plan<On<Tp2, Folds>>) == Cost{2, 2 * size} && shared(plan<On<Tp3, Folds>>) == Cost{} &&
         shared(plan<On<Tp4, Folds>>) == Cost{4, 4 * size} && shared(plan<On<Tp5, Folds>>) == Cost{6, 6 * size};
}
static_assert(sharers_exchange_what_they_share());

struct FullNorm : TensorSharded<Tp2, Llama<18, 9, 3, 2, 27, 41, false, QkNorm::full>::Block> {};
constexpr bool masks_and_slices_are_local(Plan const& p, RunShape run) {
  i64 local = 0;
  for (i32 i = 0; i < p.steps.size(); ++i) {
    if (p.steps[i].kind != step::own && p.steps[i].kind != step::slice) continue;
    ++local;
    for (i64 rank = 0; rank < p.ranks(); ++rank)
      if (step_traffic(p, i, rank, run, f32_storage) != Cost{}) return false;
  }
  return local > 0;
}
struct FullNormModel : Sequential<Odd::Embedding, FullNorm> {};
static_assert(masks_and_slices_are_local(plan<FullNormModel>, few_tokens));

TEST_CASE("ranks bring together what each has after an exchange, also where held ranges overlap") {
  CHECK(exchanges_are_complete(plan<On<Tp2, Gathers>>, step::all_gather, few_tokens));
  CHECK(exchanges_are_complete(plan<On<Tp4, Gathers>>, step::all_gather, few_tokens));
  CHECK(exchanges_are_complete(plan<On<Tp5, Gathers>>, step::all_gather, many_tokens));
  CHECK(exchanges_are_complete(plan<Stacked<Gathers>>, step::all_gather, few_tokens));
  CHECK(exchanges_are_complete(plan<On<Tp2, Exchanges>>, step::all_to_all, many_tokens));
  CHECK(sharers_exchange_what_they_share());
  CHECK(masks_and_slices_are_local(plan<FullNormModel>, few_tokens));
}

}  // namespace
