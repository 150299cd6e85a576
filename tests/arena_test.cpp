// SPDX-License-Identifier: MIT
// The activation arena against a simulation that knows nothing of lifetimes: it walks the plan as an executor does,
// loops included, remembers which value lies in which bytes, and wants every read to find what was written.
#include <dovetail/plan/arena.hpp>

#include "catch.hpp"
#include "sample_models.hpp"

using namespace dovetail;
using namespace sample;

namespace {

constexpr SequenceRun few[] = {{0, 3, 1}, {9, 2, 2}};
constexpr SequenceRun many[] = {{0, 70, 1}, {4, 1, 1}, {0, 29, 9}};
constexpr SequenceRun nothing[] = {{7, 0, 0}};
constexpr RunShape few_tokens{few, 2}, many_tokens{many, 3}, no_tokens{nothing, 1};

/// One rank's walk through a plan. Every write makes a new token; bytes hold tokens.
class Simulation {
 public:
  constexpr Simulation(Plan const& plan, i64 rank, RunShape run, Arena const& arena)
      : plan_(plan), place_(plan.place_of(rank)), arena_(arena) {
    for (i32 v = 0; v < plan.values.size(); ++v) {
      Tensor const& t = plan.values[v];
      bool const here = t.stage == place_.stage && arena.offset[v] >= 0;
      size_.push(here ? local_elements(t.dims, t.places, plan.mesh(t.stage), place_.at, run) * f32_storage[t.storage]
                      : 0);
      token_.push(-1);
    }
    for (i32 v : plan.inputs) write(v);
    execute(-1);
    for (auto const& o : plan.outputs) read(o.value);
    read(plan.result);
  }
  constexpr bool ok() const { return ok_; }
  /// Most bytes that were written and would still be read, at any moment.
  constexpr i64 most_alive() const {
    i64 most = 0;
    for (i64 moment = 0; moment < now_; ++moment) {
      i64 sum = 0;
      for (auto const& w : writes_) sum += w.at <= moment && moment < w.last_read ? w.size : 0;
      most = sum > most ? sum : most;
    }
    return most;
  }

 private:
  struct Write {
    i64 offset = 0, size = 0, at = 0, last_read = -1;
    bool intact = true;
  };
  Plan const& plan_;
  RankPlace place_;
  Arena const& arena_;
  List<i64> size_{};
  List<i32> token_{};  ///< by value: the write that it is
  List<Write> writes_{};
  i64 now_ = 0;
  bool ok_ = true;

  constexpr bool placed(i32 v) const { return plan_.values[v].stage == place_.stage && arena_.offset[v] >= 0; }
  constexpr void read(i32 v) {
    ++now_;
    if (!placed(v)) return;
    ok_ = ok_ && token_[v] >= 0;
    if (!ok_) return;
    Write& w = writes_[token_[v]];
    ok_ = w.intact && w.offset == arena_.offset[v] && w.size == size_[v];
    w.last_read = now_;
  }
  constexpr void write(i32 v) {
    ++now_;
    if (!placed(v)) return;
    i64 const lo = arena_.offset[v], hi = lo + size_[v];
    ok_ = ok_ && lo % 64 == 0 && hi <= arena_.bytes;
    for (auto& w : writes_)
      if (w.offset < hi && lo < w.offset + w.size) w.intact = false;
    token_[v] = writes_.size();
    writes_.push(Write{lo, size_[v], now_, -1, true});
  }
  /// What a loop hands on; nothing is copied where both share a buffer.
  constexpr void hand_on(i32 from, i32 to) {
    read(from);
    if (arena_.shares_buffer(from, to)) token_[to] = token_[from];
    else write(to);
  }
  constexpr void execute(i32 loop) {
    for (i32 i = 0; i < plan_.steps.size(); ++i) {
      Step const& s = plan_.steps[i];
      bool const sends = s.kind == step::send && plan_.values[s.operands[0].value].stage == place_.stage;
      if (s.loop != loop || (s.stage != place_.stage && !sends)) continue;
      if (s.kind == step::loop) {
        repeat(plan_.loops[s.body], s.body);
        continue;
      }
      for (auto const& o : s.operands)
        if (!o.witness) read(o.value), meets_no_result(s, o.value);
      for (auto const& p : s.parameters) read(p.value);
      for (i32 r : s.results)
        if (s.stage == place_.stage) write(r);
    }
  }
  /// A result may lie on an operand only where the op is elementwise, element on element.
  constexpr void meets_no_result(Step const& s, i32 operand) {
    for (i32 r : s.results) {
      if (!placed(operand) || !placed(r) || !size_[operand] || !size_[r]) continue;
      i64 const a = arena_.offset[operand], b = arena_.offset[r];
      bool const apart = a + size_[operand] <= b || b + size_[r] <= a;
      bool const alike = s.op && s.op->elementwise && a == b && size_[operand] == size_[r] && r == s.results[0];
      ok_ = ok_ && (apart || alike);
    }
  }
  constexpr void repeat(Loop const& l, i32 id) {
    hand_on(l.initial, l.argument);
    for (i32 n = 0; n < l.count; ++n) {
      execute(id);
      hand_on(l.yielded, l.argument);
    }
    ok_ = ok_ && arena_.shares_buffer(l.argument, l.result);
    token_[l.result] = token_[l.argument];
  }
};

constexpr bool nothing_is_overwritten(Plan const& p, RunShape run) {
  for (i64 rank = 0; rank < p.ranks(); ++rank) {
    Arena const arena = arena_of(p, rank, run, f32_storage);
    Simulation const simulation(p, rank, run, arena);
    if (!simulation.ok() || arena.bytes < arena.peak || arena.bytes < simulation.most_alive()) return false;
    for (i32 v = 0; v < p.values.size(); ++v) {  // exactly what lives between steps of this stage has room
      Tensor const& t = p.values[v];
      bool wanted = t.stage == p.place_of(rank).stage && t.value_class == ValueClass::temporary;
      if (t.step >= 0 && p.steps[t.step].state >= 0) wanted = false;
      for (i32 i : p.inputs) wanted = wanted || (i == v && t.stage == p.place_of(rank).stage);
      if ((arena.offset[v] >= 0) != wanted || (arena.buffer[v] >= 0) != wanted) return false;
    }
  }
  return p.ok();
}

// ---- layouts
// ---------------------------------------------------------------------------------------------------------------

struct TpModel : TensorSharded<Tp2, TinyModel> {};
struct Uneven : TensorSharded<Tp4, OddModel> {};
struct AllThree : Replicated<Dp2, Pipelined<Pp3, TensorSharded<Tp2, TinyModel>>> {};
struct SequenceModel : TensorSharded<Tp2, Tiny::Model<Repeat<3, Tiny::SequenceNorms<Tp2>>>> {};
struct Nested : TensorSharded<Tp2, Tiny::Model<Repeat<3, Repeat<2, Tiny::Block>>>> {};

struct Small : TensorSharded<Tp2, Repeat<2, Residual<Tiny::Mlp>>> {};
struct SmallModel : Sequential<Tiny::Embedding, Small> {};
static_assert(nothing_is_overwritten(plan<SmallModel>, few_tokens));

/// The simulation itself: it finds an arena in which everything lies at the beginning to be wrong.
constexpr bool a_wrong_arena_is_noticed(Plan const& p) {
  Arena arena = arena_of(p, 0, few_tokens, f32_storage);
  bool const right = Simulation(p, 0, few_tokens, arena).ok();
  for (i64& offset : arena.offset)
    if (offset > 0) offset = 0;
  return right && !Simulation(p, 0, few_tokens, arena).ok();
}
static_assert(a_wrong_arena_is_noticed(plan<SmallModel>));

TEST_CASE("values that are alive together never overlap, in any layout and run") {
  CHECK(a_wrong_arena_is_noticed(plan<SmallModel>));
  for (auto const& run : {few_tokens, many_tokens, no_tokens}) {
    CHECK(nothing_is_overwritten(planned<TinyModel>(), run));
    CHECK(nothing_is_overwritten(planned<TpModel>(), run));
    CHECK(nothing_is_overwritten(planned<Uneven>(), run));
    CHECK(nothing_is_overwritten(planned<AllThree>(), run));
    CHECK(nothing_is_overwritten(planned<SequenceModel>(), run));
    CHECK(nothing_is_overwritten(planned<Nested>(), run));
  }
}

// ---- loops of all shapes
// -----------------------------------------------------------------------------------------------------

constexpr Value mixed(Builder& b, Value x, char const* role) {  // not elementwise: no operand may lend its buffer
  return gated_mlp(b, x, MlpConfig{.embed_size = 16, .ffn_size = 24, .role = name(role)});
}
struct Identity {
  static constexpr Value apply(Builder&, Value x) { return x; }
};
struct YieldsCaptured {
  static constexpr Value apply(Builder& b, Value x) {
    Value const side = mixed(b, x, "side");
    return ops::repeat(b, x, 3, [&](Builder&, Value) { return side; });
  }
};
struct ReadsInitialInside {
  static constexpr Value apply(Builder& b, Value x) {
    return ops::repeat(b, x, 3, [&](Builder& inner, Value v) { return ops::add(inner, mixed(inner, v, "mlp"), x); });
  }
};
struct ReadsInitialAfter {
  static constexpr Value apply(Builder& b, Value x) {
    return ops::residual(b, x, [&](Builder& inner, Value v) {
      return ops::repeat(inner, v, 3, [&](Builder& body, Value u) { return mixed(body, u, "mlp"); });
    });
  }
};
/// The argument is read after what is yielded was made; one result is read by nobody.
struct ReadsArgumentLate {
  static constexpr Value apply(Builder& b, Value x) {
    Value const y = ops::silu(b, x);
    ops::multiply(b, y, x);
    return y;
  }
};
/// After an inner loop, something that may not lie on what it reads.
struct MixesAfterInner : Sequential<Repeat<2, Residual<Tiny::Mlp>>, Tiny::SelfAttention> {};
struct Elementwise {
  static constexpr Value apply(Builder& b, Value x) { return ops::silu(b, ops::add(b, x, ops::silu(b, x))); }
};
/// One op that keeps the dims and yet may not lie on what it reads.
inline constexpr Op shuffle{.name = "shuffle"};
struct Shuffles {
  static constexpr Value apply(Builder& b, Value x) {
    return b.apply(Call(shuffle).reads(x).needs_whole<embed>().maps_rest().yields(b.dims(x)));
  }
};
/// Captured, and read before anything else happens in the body.
struct ReadsCapturedEarly {
  static constexpr Value apply(Builder& b, Value x) {
    Value const side = mixed(b, x, "side");
    return ops::repeat(b, x, 3, [&](Builder& inner, Value v) {
      return ops::residual(inner, v,
                           [&](Builder& body, Value u) { return mixed(body, ops::multiply(body, u, side), "mlp"); });
    });
  }
};
/// What the loop begins with is made long before it.
struct InitialWaits {
  static constexpr Value apply(Builder& b, Value x) {
    Value const first = apply_layer<Shuffles>(b, x), side = mixed(b, mixed(b, x, "one"), "two");
    return ops::repeat(b, first, 2,
                       [&](Builder& inner, Value v) { return ops::add(inner, mixed(inner, v, "mlp"), side); });
  }
};
struct EarlyOutput {
  static constexpr Value apply(Builder& b, Value x) {
    b.output("early", apply_layer<Shuffles>(b, x));
    return mixed(b, mixed(b, x, "one"), "two");
  }
};
/// A bias that joins a sum and is then read whole, twice: the parameter itself is moved.
struct BiasedTwice {
  static constexpr Value apply(Builder& b, Value x) {
    ParameterId const bias = b.shared_parameter(dims(extent<embed>(16)), "bias");
    Value const once = ops::add_parameter(b, mixed(b, x, "one"), bias);
    Value const twice = mixed(b, ops::add_parameter(b, ops::silu(b, once), bias), "two");
    return ops::add_parameter(b, ops::silu(b, twice), bias);
  }
};
template <Layer... L>
struct On : TensorSharded<Tp2, Tiny::Model<Sequential<L...>>> {};

/// Ids that change before they are looked up.
struct NextIds {
  static constexpr Value apply(Builder& b, Value ids) {
    return b.apply(Call(silu).reads(ids).yields(b.dims(ids), Storage::token));
  }
};
struct TokensInLoop : Sequential<Repeat<3, NextIds>, Tiny::Embedding> {};

TEST_CASE("loops that carry, capture, ignore or keep their values overwrite nothing") {
  for (auto const& run : {few_tokens, many_tokens}) {
    CHECK(nothing_is_overwritten(planned<On<Repeat<3, Identity>>>(), run));
    CHECK(nothing_is_overwritten(planned<On<YieldsCaptured>>(), run));
    CHECK(nothing_is_overwritten(planned<On<ReadsInitialInside>>(), run));
    CHECK(nothing_is_overwritten(planned<On<ReadsInitialAfter>>(), run));
    CHECK(nothing_is_overwritten(planned<On<Repeat<3, ReadsArgumentLate>>>(), run));
    CHECK(nothing_is_overwritten(planned<On<Repeat<3, MixesAfterInner>>>(), run));
    CHECK(nothing_is_overwritten(planned<On<Repeat<3, Elementwise>>>(), run));
    CHECK(nothing_is_overwritten(planned<On<Repeat<2, Repeat<2, Repeat<2, Elementwise>>>>>(), run));
    CHECK(nothing_is_overwritten(planned<On<Repeat<3, Shuffles>>>(), run));
    CHECK(nothing_is_overwritten(planned<On<ReadsCapturedEarly>>(), run));
    CHECK(nothing_is_overwritten(planned<On<InitialWaits>>(), run));
    CHECK(nothing_is_overwritten(planned<On<EarlyOutput>>(), run));
    CHECK(nothing_is_overwritten(planned<On<BiasedTwice>>(), run));
    CHECK(nothing_is_overwritten(planned<TokensInLoop>(), run));
    CHECK(nothing_is_overwritten(planned<On<Repeat<0, Tiny::Block>, Repeat<1, Tiny::Block>>>(), run));
  }
}

// ---- what need not be copied
// -------------------------------------------------------------------------------------------------

/// Does the loop `l` of a plan copy nothing: neither at its beginning nor from iteration to iteration?
constexpr bool copies_nothing(Plan const& p, i32 l, i64 rank) {
  Arena const a = arena_of(p, rank, few_tokens, f32_storage);
  Loop const& loop = p.loops[l];
  return a.shares_buffer(loop.initial, loop.argument) && a.shares_buffer(loop.yielded, loop.argument);
}
constexpr bool a_residual_stream_stays_where_it_is() {
  return copies_nothing(plan<TpModel>, 0, 0) && copies_nothing(plan<SequenceModel>, 0, 1) &&
         copies_nothing(plan<Nested>, 0, 0) && copies_nothing(plan<Nested>, 1, 0) &&
         copies_nothing(plan<On<Repeat<3, Elementwise>>>, 0, 0);
}
constexpr bool what_is_still_read_is_copied() {
  Plan const &inside = plan<On<ReadsInitialInside>>, &late = plan<On<Repeat<3, ReadsArgumentLate>>>;
  Arena const a = arena_of(inside, 0, few_tokens, f32_storage), b = arena_of(late, 0, few_tokens, f32_storage);
  Plan const& ids = plan<TokensInLoop>;  // a run gives the input, and it stays as given
  Arena const c = arena_of(ids, 0, few_tokens, f32_storage);
  return !c.shares_buffer(ids.inputs[0], ids.loops[0].argument) && ids.inputs.size() == 1 &&
         c.shares_buffer(ids.loops[0].yielded, ids.loops[0].argument) &&
         !a.shares_buffer(inside.loops[0].initial, inside.loops[0].argument) &&
         !b.shares_buffer(late.loops[0].yielded, late.loops[0].argument);
}
static_assert(a_residual_stream_stays_where_it_is());
static_assert(what_is_still_read_is_copied());
TEST_CASE("a residual stream is never copied; what somebody still reads is") {
  CHECK(a_residual_stream_stays_where_it_is());
  CHECK(what_is_still_read_is_copied());
}

// ---- planning again
// --------------------------------------------------------------------------------------------------------

bool same_offsets(Arena const& a, Arena const& b) {
  for (i32 v = 0; v < a.offset.size(); ++v)
    if (a.offset[v] != b.offset[v]) return false;
  return a.bytes == b.bytes && a.peak == b.peak && a.offset.size() == b.offset.size();
}
TEST_CASE("planning again gives the same arena as planning anew, in the same place") {
  Plan const& p = plan<Uneven>;
  ArenaPlanner planner(p, 2, f32_storage);
  Arena const small = planner.fit(few_tokens);
  CHECK(same_offsets(small, arena_of(p, 2, few_tokens, f32_storage)));
  i64 const* const first = &planner.arena().offset[0];
  planner.fit(many_tokens), planner.fit(no_tokens), planner.fit(many_tokens);
  CHECK(&planner.arena().offset[0] == first);
  CHECK(same_offsets(planner.arena(), arena_of(p, 2, many_tokens, f32_storage)));
  CHECK(planner.fit(no_tokens).bytes == 0);
  CHECK(same_offsets(planner.fit(few_tokens), small));
}

/// The room is what the widest moment of a layer needs, whatever the depth.
constexpr bool an_arena_is_as_deep_as_one_layer() {
  struct Deep : TensorSharded<Tp2, Tiny::Model<Repeat<100, Tiny::Block>>> {};
  return arena_of(plan<TpModel>, 0, many_tokens, f32_storage).bytes ==
         arena_of(plan<Deep>, 0, many_tokens, f32_storage).bytes;
}
static_assert(an_arena_is_as_deep_as_one_layer());
TEST_CASE("an arena does not grow with depth") { CHECK(an_arena_is_as_deep_as_one_layer()); }

}  // namespace
