// SPDX-License-Identifier: MIT
// Loops and what they may not disturb: global layer indices under cycles, nesting and pipeline cuts; values captured
// from outside, which are moved once before the loop; bodies that end Partial or split; values sent to a later stage.
#include <dovetail/plan/coverage.hpp>

#include "catch.hpp"
#include "sample_models.hpp"

using namespace dovetail;
using namespace sample;

namespace {

/// How often each numbered layer has a parameter of this role, over all stages.
constexpr List<i64> layers_with(Plan const& p, char const* role) {
  List<i64> times;
  for (auto const& q : p.parameters)
    if (same_text(q.name.chars, role))
      covering::each_layer(p, q.layer, [&](i64 layer) {
        while (times.size() <= layer) times.push(0);
        ++times[layer];
      });
  return times;
}
/// Is every layer of 0 .. count-1 there once where `wanted(layer)`, and not at all elsewhere?
constexpr bool once_each(Plan const& p, char const* role, i64 count, auto const& wanted) {
  List<i64> const times = layers_with(p, role);
  for (i64 i = 0; i < times.size(); ++i)
    if (times[i] != (i < count && wanted(i))) return false;
  for (i64 i = times.size(); i < count; ++i)
    if (wanted(i)) return false;
  return p.ok() && coverage(p).ok();
}
constexpr bool every(i64) { return true; }
constexpr bool none(i64) { return false; }

// ---- repeated layers and cycles
// ------------------------------------------------------------------------------------------

struct Local
    : Mapped<Tp2, Residual<GatedMlp<MlpConfig{.embed_size = 16, .ffn_size = 24, .role = Name{"local"}}>>, ffn> {};
struct Global
    : Mapped<Tp2, Residual<GatedMlp<MlpConfig{.embed_size = 16, .ffn_size = 32, .role = Name{"global"}}>>, ffn> {};
constexpr bool is_global(i64 layer) { return layer % 6 == 5; }
constexpr bool is_local(i64 layer) { return layer % 6 != 5; }

using FiveToOne = Cycle<26, Local, Local, Local, Local, Local, Global>;
struct Patterned : Tiny::Model<FiveToOne> {};
struct PatternedOnFour : Pipelined<Pp4, Patterned> {};
struct PatternedStated : Pipelined<Pp3, Cuts<1, 20, 5>, Patterned> {};

constexpr bool a_pattern_keeps_its_layers(Plan const& p) {
  return once_each(p, "layers.*.local.up.weight", 26, is_local) &&
         once_each(p, "layers.*.global.up.weight", 26, is_global);
}
static_assert(a_pattern_keeps_its_layers(plan<Patterned>) && a_pattern_keeps_its_layers(plan<PatternedOnFour>));
static_assert(a_pattern_keeps_its_layers(plan<PatternedStated>));

constexpr bool a_cut_inside_a_period_leaves_whole_periods_in_loops() {
  Plan const &whole = plan<Patterned>, &cut = plan<PatternedOnFour>;
  bool ok = whole.loops.size() == 1 && whole.loops[0].count == 4;
  i64 const dealt[] = {7, 7, 6, 6};
  i64 looped = 0;
  for (i32 s = 0; s < 4; ++s) ok = ok && cut.stage(s).layers == dealt[s];
  for (auto const& l : cut.loops) looped += 6 * l.count;
  return ok && cut.stages() == 4 && cut.edges.size() == 3 && looped == 24;  // 6+1, 6+1, 6, 6
}
static_assert(a_cut_inside_a_period_leaves_whole_periods_in_loops());

struct OddOnThree : Pipelined<Pp3, TensorSharded<Tp2, OddModel>> {};
struct None : Tiny::Model<Repeat<0, Tiny::Block>> {};
struct Single : Tiny::Model<Repeat<1, Tiny::Block>> {};
static_assert(once_each(plan<OddOnThree>, "layers.*.attention.k.weight", 4, every));
static_assert(once_each(plan<None>, "layers.*.attention.k.weight", 0, none) && plan<None>.loops.empty());
static_assert(once_each(plan<Single>, "layers.*.attention.k.weight", 1, every));

TEST_CASE("26 layers of a 5:1 pattern keep their numbers, whole and cut inside a period") {
  CHECK(a_pattern_keeps_its_layers(plan<Patterned>));
  CHECK(a_pattern_keeps_its_layers(plan<PatternedOnFour>));
  CHECK(a_pattern_keeps_its_layers(plan<PatternedStated>));
  CHECK(a_cut_inside_a_period_leaves_whole_periods_in_loops());
}
TEST_CASE("repeated layers are numbered over stages; none and one are legal") {
  CHECK(once_each(plan<OddOnThree>, "layers.*.attention.k.weight", 4, every));
  CHECK(once_each(plan<None>, "layers.*.attention.k.weight", 0, none));
  CHECK(once_each(plan<Single>, "layers.*.attention.k.weight", 1, every));
}

// ---- nesting
// -------------------------------------------------------------------------------------------------------------

struct Nested : TensorSharded<Tp2, Tiny::Model<Repeat<3, Repeat<2, Tiny::Block>>>> {};
struct NestedPattern : Tiny::Model<Repeat<2, Cycle<5, Local, Global>>> {};
struct TwoParts : Tiny::Model<Sequential<Repeat<2, Local>, Repeat<3, Global>>> {};

constexpr bool nested_loops_number_their_layers(Plan const& p) {
  // local, global, local, global in a loop, then one more local: twice
  return once_each(plan<Nested>, "layers.*.mlp.up.weight", 6, every) &&
         once_each(p, "layers.*.local.up.weight", 10, [](i64 i) { return i % 5 % 2 == 0; }) &&
         once_each(p, "layers.*.global.up.weight", 10, [](i64 i) { return i % 5 % 2 == 1; }) &&
         plan<Nested>.loops.size() == 2 && plan<Nested>.executed(step::all_reduce) == 2 + 2 * 6;
}
static_assert(nested_loops_number_their_layers(plan<NestedPattern>));
static_assert(once_each(plan<TwoParts>, "layers.*.global.up.weight", 5, [](i64 i) { return i >= 2; }));
TEST_CASE("layers in nested loops have numbers of their own, also after a loop was tried twice") {
  CHECK(nested_loops_number_their_layers(plan<NestedPattern>));
  CHECK(once_each(plan<TwoParts>, "layers.*.global.up.weight", 5, [](i64 i) { return i >= 2; }));
}

// ---- bodies that end otherwise than they began
// ----------------------------------------------------------------------------

/// A row split without a residual: what it yields is a sum.
struct EndsPartial {
  static constexpr Value apply(Builder& b, Value x) {
    return gated_mlp(b, x, MlpConfig{.embed_size = 16, .ffn_size = 24});
  }
};
struct PartialBody : TensorSharded<Tp2, Tiny::Model<Repeat<5, EndsPartial>>> {};
struct PartialNested : TensorSharded<Tp2, Tiny::Model<Repeat<2, Repeat<2, EndsPartial>>>> {};
struct SplitBody : TensorSharded<Tp2, Tiny::Model<Repeat<3, Tiny::SequenceNorms<Tp2>>>> {};

constexpr bool carried_values_are_settled_and_alike(Plan const& p) {
  for (auto const& l : p.loops)
    for (i32 a = 0; a < p.mesh(0).size(); ++a) {
      Place const carried = p.values[l.argument].places[a];
      if (carried.partial() || p.values[l.initial].places[a] != carried) return false;
      if (p.values[l.yielded].places[a] != carried || p.values[l.result].places[a] != carried) return false;
    }
  return p.ok() && !p.loops.empty();
}
constexpr bool a_sum_is_settled_inside_its_loop(Plan const& p) {
  // the embedding and the choice outside, one for each layer inside
  return carried_values_are_settled_and_alike(p) && p.executed(step::all_reduce) == 2 + 5 &&
         p.values[p.loops[0].yielded].loop == 0 && p.steps[p.values[p.loops[0].yielded].step].kind == step::all_reduce;
}
static_assert(a_sum_is_settled_inside_its_loop(plan<PartialBody>));
static_assert(carried_values_are_settled_and_alike(plan<PartialNested>));
static_assert(plan<PartialNested>.executed(step::all_reduce) == 2 + 4);
static_assert(once_each(plan<PartialNested>, "layers.*.mlp.up.weight", 4, every));
static_assert(carried_values_are_settled_and_alike(plan<SplitBody>));
static_assert(plan<SplitBody>.values[plan<SplitBody>.loops[0].argument].places[0] == split_on(dim_of<sequence>));
TEST_CASE("what a loop carries is settled and placed alike at its beginning, its end and after it") {
  CHECK(a_sum_is_settled_inside_its_loop(plan<PartialBody>));
  CHECK(carried_values_are_settled_and_alike(plan<PartialNested>));
  CHECK(plan<PartialNested>.executed(step::all_reduce) == 2 + 4);
  CHECK(carried_values_are_settled_and_alike(plan<SplitBody>));
}

// ---- captured values
// ------------------------------------------------------------------------------------------------------

/// Runs `count` layers that all read `captured`, a value from outside.
constexpr Value layers_reading(Builder& b, Value x, Value captured, i32 count) {
  return ops::repeat(b, x, count, [&](Builder& inner, Value v) {
    return ops::residual(inner, v, [&](Builder& layer, Value u) {
      Value const mixed = ops::multiply(layer, u, captured);  // not additive: needs the sum
      return rms_norm(layer, mixed, RmsNormConfig{dims(extent<embed>(16)), 1e-5, Name{"mix"}});
    });
  });
}
constexpr Value down_of(Builder& b, Value x, char const* role) {
  return gated_mlp(b, x, MlpConfig{.embed_size = 16, .ffn_size = 24, .role = name(role)});
}

/// The captured value is a sum when the loop begins.
struct CapturesSum {
  static constexpr Value apply(Builder& b, Value x) { return layers_reading(b, x, down_of(b, x, "side"), 7); }
};
struct CapturesSumModel : TensorSharded<Tp2, Tiny::Model<CapturesSum>> {};
/// The captured value is split by sequence when the loop begins, and the layers need it whole.
struct CapturesSplit {
  static constexpr Value apply(Builder& b, Value x) {
    Value const side = apply_layer<SequenceSharded<Tp2, Tiny::AttentionNorm>>(b, x);
    return ops::repeat(b, x, 7, [&](Builder& inner, Value v) {
      return ops::residual(inner, v, [&](Builder& layer, Value) { return down_of(layer, side, "mlp"); });
    });
  }
};
struct CapturesSplitModel : TensorSharded<Tp2, Tiny::Model<CapturesSplit>> {};
/// Read in an inner loop, defined outside both.
struct CapturesInNested {
  static constexpr Value apply(Builder& b, Value x) {
    Value const side = down_of(b, x, "side");
    return ops::repeat(b, x, 3, [&](Builder& inner, Value v) { return layers_reading(inner, v, side, 2); });
  }
};
struct CapturesInNestedModel : TensorSharded<Tp2, Tiny::Model<CapturesInNested>> {};

/// Steps of a kind that stand inside loops.
constexpr i64 inside_loops(Plan const& p, StepKind kind) {
  i64 n = 0;
  for (auto const& s : p.steps) n += s.kind == kind && s.loop >= 0;
  return n;
}
constexpr bool a_captured_sum_is_reduced_once(Plan const& p) {
  return p.ok() && inside_loops(p, step::all_reduce) == 0 && p.executed(step::all_reduce) == 3;
}
constexpr bool a_captured_split_is_gathered_once(Plan const& p) {
  // what the layers carry stays split by sequence, as the side left it: their sums are scattered
  return p.ok() && p.executed(step::all_gather) == 1 && inside_loops(p, step::all_gather) == 0 &&
         p.executed(step::reduce_scatter) == 1 + 7 && inside_loops(p, step::all_reduce) == 0;
}
/// After the loop nobody reads what was defined inside it, and inside nobody reads what is not yet there.
constexpr bool reads_are_in_scope(Plan const& p) {
  for (i32 i = 0; i < p.steps.size(); ++i)
    for (auto const& o : p.steps[i].operands) {
      Tensor const& t = p.values[o.value];
      bool visible = t.loop < 0;
      for (i32 l = p.steps[i].loop; l >= 0; l = p.loops[l].parent) visible = visible || l == t.loop;
      if (!visible || t.step >= i) return false;
    }
  return true;
}
static_assert(a_captured_sum_is_reduced_once(plan<CapturesSumModel>) && reads_are_in_scope(plan<CapturesSumModel>));
static_assert(a_captured_split_is_gathered_once(plan<CapturesSplitModel>));
static_assert(a_captured_sum_is_reduced_once(plan<CapturesInNestedModel>));
static_assert(once_each(plan<CapturesInNestedModel>, "layers.*.mix.weight", 6, every));
static_assert(reads_are_in_scope(plan<CapturesSplitModel>) && reads_are_in_scope(plan<CapturesInNestedModel>) &&
              reads_are_in_scope(plan<SplitBody>) && reads_are_in_scope(plan<PatternedOnFour>));
TEST_CASE("a value captured from outside a loop is moved once, before it") {
  CHECK(a_captured_sum_is_reduced_once(plan<CapturesSumModel>));
  CHECK(a_captured_split_is_gathered_once(plan<CapturesSplitModel>));
  CHECK(a_captured_sum_is_reduced_once(plan<CapturesInNestedModel>));
  CHECK(reads_are_in_scope(plan<CapturesInNestedModel>));
}

// ---- captured from another stage
// --------------------------------------------------------------------------------------------

/// The embedding is read by every layer, also by those of later stages.
struct SkipModel {
  static constexpr i32 depth = 6;
  static constexpr Value apply(Builder& b, Value ids) {
    Value const x = apply_layer<Tiny::Embedding>(b, ids);
    return apply_layer<Tiny::TiedHead>(b, layers_reading(b, x, x, 6));
  }
};
struct SkipOnThree : Pipelined<Pp3, TensorSharded<Tp2, SkipModel>> {};

constexpr bool a_skip_is_sent_once_to_each_stage_that_reads_it(Plan const& p) {
  i64 layer_inputs = 0, skips = 0;
  for (auto const& e : p.edges) {
    Step const& s = p.steps[e.step];
    if (s.kind != step::send || s.loop >= 0 || s.operands[0].value != e.sent || s.results[0] != e.received)
      return false;
    if (p.values[e.sent].stage != e.from_stage || p.values[e.received].stage != e.to_stage) return false;
    (p.values[e.sent].origin == p.steps[0].results[0] ? skips : layer_inputs) += 1;  // the first step is the lookup
    for (auto const& l : p.loops)                                                    // before the loop that reads it
      if (p.values[l.argument].stage == e.to_stage && e.step >= l.begin) return false;
  }
  return p.ok() && p.edges.size() == 4 && skips == 2 && layer_inputs == 2 && p.executed(step::send) == 4 &&
         reads_are_in_scope(p);
}
static_assert(a_skip_is_sent_once_to_each_stage_that_reads_it(plan<SkipOnThree>));
TEST_CASE("a value of an earlier stage that a loop reads is sent once, before the loop") {
  CHECK(a_skip_is_sent_once_to_each_stage_that_reads_it(plan<SkipOnThree>));
}

}  // namespace
