// SPDX-License-Identifier: MIT
// The rule of placement, rule by rule on hand-made calls, then as a law with numbers: for every op and every way its
// operands may arrive, ranks that compute on what decide() gives them put together what one rank computes alone.
#include <dovetail/plan/builtin_ops.hpp>
#include <dovetail/plan/decide.hpp>

#include "at_run_time.hpp"
#include "catch.hpp"

using namespace dovetail;
using test::at_run_time;

namespace {

// ---- hand-made calls
// --------------------------------------------------------------------------------------------------

constexpr DimInfo const *seq = dim_of<sequence>, *in = dim_of<embed>, *wide = dim_of<ffn>, *head = dim_of<heads>;
constexpr Extent s3 = extent<sequence>(3), e2 = extent<embed>(2), f4 = extent<ffn>(4), h6 = extent<heads>(6),
                 k2 = extent<kv_heads>(2, 6), v5 = extent<vocab>(5);

/// A call with the dims of what it reads and holds: decide() sees nothing else of them.
struct Case {
  Call call;
  Vec<Dims, max_operands> operands{};
  Vec<Dims, max_parameters> parameters{};

  constexpr explicit Case(Op const& op) : call(op) {}
  constexpr Case& reads(Dims const& d) {
    call.reads(Value{operands.size()});
    operands.push(d);
    return *this;
  }
  constexpr Case& holds(Dims const& d) {
    call.holds(ParameterId{parameters.size()});
    parameters.push(d);
    return *this;
  }
  constexpr Case& yields(Dims const& d) { return call.yields(d), *this; }
  constexpr Case& contracts(Dims const& d) { return call.contracts(d), *this; }
  constexpr Case& maps(Dims const& d) { return call.maps(d), *this; }
  constexpr Case& needs_whole(Dims const& d) { return call.needs_whole(d), *this; }
};

using Arrivals = Vec<Place, max_operands>;
constexpr Arrivals arrivals(auto const&... places) {
  Arrivals a;
  (a.push(places), ...);
  return a;
}
constexpr MappedDims mapped(auto const*... dims) {
  MappedDims m;
  (m.push(dims), ...);
  return m;
}

constexpr Decision decided(Case const& c, Arrivals const& at, MappedDims const& m = {}) {
  Vec<Arrival, max_operands> operands;
  Vec<Arrival, max_parameters> parameters;
  for (i32 i = 0; i < c.operands.size(); ++i) operands.push(Arrival{&c.operands[i], at[i], true});
  for (auto const& p : c.parameters) parameters.push(Arrival{&p, whole_place, false});
  return decide(c.call, operands, parameters, m);
}
/// The same call when its one parameter already stands.
constexpr Decision decided_again(Case const& c, Arrivals const& at, Place parameter, MappedDims const& m = {}) {
  Vec<Arrival, max_operands> operands;
  Vec<Arrival, max_parameters> parameters;
  for (i32 i = 0; i < c.operands.size(); ++i) operands.push(Arrival{&c.operands[i], at[i], true});
  parameters.push(Arrival{&c.parameters[0], parameter, true});
  return decide(c.call, operands, parameters, m);
}

constexpr Op scale_each{.name = "scale_each", .lazy = 0};  // lazy in operand 0
constexpr Op fold{.name = "fold", .folds = true};          // leaders into their follower
constexpr Op dot_right{.name = "dot_right", .linear = 1};  // linear in operand 1

constexpr Case linear =
    Case(matmul).reads(dims(s3, e2)).holds(dims(f4, e2)).contracts(dims(e2)).maps(dims(s3, f4)).yields(dims(s3, f4));
constexpr Case down =
    Case(matmul).reads(dims(s3, f4)).holds(dims(e2, f4)).contracts(dims(f4)).maps(dims(s3, e2)).yields(dims(s3, e2));
constexpr Case sum = Case(add).reads(dims(s3, f4)).reads(dims(s3, f4)).yields(dims(s3, f4));
constexpr Case product = Case(multiply).reads(dims(s3, f4)).reads(dims(s3, f4)).yields(dims(s3, f4));
constexpr Case gate = Case(silu).reads(dims(s3, f4)).yields(dims(s3, f4));
constexpr Case bias = Case(add).reads(dims(s3, f4)).holds(dims(f4)).yields(dims(s3, f4));
constexpr Case squares = Case(square_sum).reads(dims(s3, f4)).contracts(dims(f4)).yields(dims(s3));
constexpr Case kv_squares = Case(square_sum).reads(dims(s3, k2)).contracts(dims(k2)).yields(dims(s3));
constexpr Case kv_out =
    Case(matmul).reads(dims(s3, k2)).holds(dims(e2, k2)).contracts(dims(k2)).maps(dims(s3, e2)).yields(dims(s3, e2));
constexpr Case kv_dot =
    Case(scale_each).reads(dims(s3, k2)).reads(dims(s3, k2)).contracts(dims(k2)).maps(dims(s3)).yields(dims(s3));
constexpr Case kv_sum = Case(add).reads(dims(s3, k2)).reads(dims(s3, k2)).yields(dims(s3, k2));
constexpr Case kv_wide =
    Case(matmul).reads(dims(k2, e2)).holds(dims(f4, e2)).contracts(dims(e2)).maps(dims(k2, f4)).yields(dims(k2, f4));
constexpr Case beside = Case(multiply).reads(dims(s3, h6)).reads(dims(s3, k2)).yields(dims(s3, h6));
constexpr Case added_beside = Case(add).reads(dims(s3, h6)).reads(dims(s3, k2)).yields(dims(s3, h6));
constexpr Case folded = Case(fold).reads(dims(s3, h6)).contracts(dims(h6)).maps(dims(s3, k2)).yields(dims(s3, k2));
constexpr Case best = Case(choose).reads(dims(s3, v5)).contracts(dims(v5)).maps(dims(s3)).yields(dims(s3));
constexpr Case scaled = Case(scale_each).reads(dims(s3, f4)).reads(dims(s3)).maps(dims(s3, f4)).yields(dims(s3, f4));

// ---- rule 1: parameters first
// -----------------------------------------------------------------------------------------

constexpr bool a_parameter_with_a_mapped_dim_decides() {
  Decision const column = decided(linear, arrivals(whole_place), mapped(head, wide));
  Decision const row = decided(down, arrivals(split_on(wide)), mapped(head, wide));
  Decision const none = decided(linear, arrivals(whole_place), mapped(head));
  Decision const wins = decided(linear, arrivals(split_on(seq)), mapped(wide));  // over a split that arrives
  return column.dim == wide && column.parameter[0] == split_on(wide) && column.operand[0].whole() &&
         column.result[0] == split_on(wide) && row.operand[0] == split_on(wide) && row.result[0] == partial_sum &&
         !none.dim && none.parameter[0].whole() && wins.operand[0].whole() && wins.result[0] == split_on(wide);
}
static_assert(a_parameter_with_a_mapped_dim_decides());

constexpr bool a_parameter_that_stands_decides_by_its_place() {
  Decision const split = decided_again(linear, arrivals(whole_place), split_on(wide));  // no policy in force
  Decision const whole = decided_again(down, arrivals(split_on(wide)), whole_place, mapped(wide));
  return split.result[0] == split_on(wide) && split.parameter[0] == split_on(wide) && !whole.dim &&
         whole.operand[0].whole() && whole.parameter[0].whole() && whole.result[0].whole();
}
static_assert(a_parameter_that_stands_decides_by_its_place());

constexpr bool two_candidates_are_an_error() {
  Case const both = Case(matmul)
                        .reads(dims(s3, e2))
                        .holds(dims(f4, h6, e2))
                        .contracts(dims(e2))
                        .maps(dims(s3, f4, h6))
                        .yields(dims(s3, f4, h6));
  Decision const d = decided(both, arrivals(whole_place), mapped(wide, head));
  Decision const one = decided(both, arrivals(whole_place), mapped(head));
  return d.rule == Rule::placement_ambiguous && d.dim == wide && d.other_dim == head && one.rule == Rule::ok;
}
static_assert(two_candidates_are_an_error());

// ---- rule 2: the first split that arrives
// -----------------------------------------------------------------------------

constexpr bool the_first_split_operand_decides() {
  Decision const left = decided(product, arrivals(split_on(seq), split_on(wide)));
  Decision const right = decided(product, arrivals(whole_place, split_on(wide)));
  Decision const biased = decided(bias, arrivals(split_on(wide)));  // a parameter follows what arrives
  return left.operand[0] == split_on(seq) && left.operand[1] == split_on(seq) && left.result[0] == split_on(seq) &&
         right.operand[0] == split_on(wide) && right.result[0] == split_on(wide) &&
         biased.parameter[0] == split_on(wide) && biased.result[0] == split_on(wide);
}
static_assert(the_first_split_operand_decides());

constexpr bool a_dim_that_is_needed_whole_is_gathered() {
  Case const needs = Case(silu).reads(dims(s3, f4)).needs_whole(dims(f4)).maps(dims(s3)).yields(dims(s3, f4));
  Decision const d = decided(needs, arrivals(split_on(wide))), other = decided(needs, arrivals(split_on(seq)));
  return d.operand[0].whole() && d.result[0].whole() && other.operand[0] == split_on(seq);
}
static_assert(a_dim_that_is_needed_whole_is_gathered());

constexpr bool silence_about_a_split_dim_is_an_error() {
  Case const silent = Case(matmul).reads(dims(s3, f4)).maps(dims(f4)).yields(dims(s3, f4));
  Decision const d = decided(silent, arrivals(split_on(seq)));
  return d.rule == Rule::op_undeclared && d.dim == seq && decided(silent, arrivals(whole_place)).rule == Rule::ok &&
         decided(silent, arrivals(split_on(wide))).rule == Rule::ok &&
         decided(gate, arrivals(split_on(seq))).rule == Rule::ok;  // elementwise ops map what they do not name
}
static_assert(silence_about_a_split_dim_is_an_error());

// ---- rule 3: sums stay sums
// -------------------------------------------------------------------------------------------

constexpr bool additive_ops_keep_sums() {
  Decision const both = decided(sum, arrivals(partial_sum, partial_sum));
  Decision const one = decided(sum, arrivals(partial_sum, whole_place));
  Decision const most = decided(sum, arrivals(partial_max, partial_max));
  Decision const not_additive = decided(product, arrivals(partial_sum, partial_sum));
  return both.operand[0] == partial_sum && both.operand[1] == partial_sum && both.result[0] == partial_sum &&
         one.operand[0].whole() && one.result[0].whole() && most.operand[0].whole() && most.result[0].whole() &&
         not_additive.operand[0].whole() && not_additive.result[0].whole();
}
static_assert(additive_ops_keep_sums());

constexpr bool a_bias_joins_a_sum_once() {
  Decision const d = decided(bias, arrivals(partial_sum));
  Decision const stands = decided_again(bias, arrivals(partial_sum), whole_place);  // elsewhere it is read as a whole
  return d.parameter[0] == partial_sum && d.operand[0] == partial_sum && d.result[0] == partial_sum &&
         stands.operand[0].whole() && stands.parameter[0].whole() && stands.result[0].whole();
}
static_assert(a_bias_joins_a_sum_once());

constexpr bool lazy_operands_stay_sums_beside_whole_ones() {
  Decision const stays = decided(scaled, arrivals(partial_sum, whole_place));
  Decision const split = decided(scaled, arrivals(partial_sum, split_on(seq)));
  Decision const wrong_side = decided(scaled, arrivals(whole_place, partial_sum));
  Decision const both = decided(scaled, arrivals(partial_sum, partial_sum));
  return stays.operand[0] == partial_sum && stays.operand[1].whole() && stays.result[0] == partial_sum &&
         split.operand[0] == split_on(seq) && split.result[0] == split_on(seq) && wrong_side.operand[1].whole() &&
         wrong_side.result[0].whole() && both.operand[1].whole() && both.result[0].whole();
}
static_assert(lazy_operands_stay_sums_beside_whole_ones());

// ---- rule 4: what happens to the rest
// ---------------------------------------------------------------------------------

constexpr bool sums_are_scattered_where_the_dim_is_theirs() {
  Decision const scatter = decided(sum, arrivals(split_on(seq), partial_sum));
  Decision const reduce = decided(linear, arrivals(partial_sum), mapped(wide));
  Decision const contracted = decided(squares, arrivals(split_on(wide)));
  Decision const survives = decided(squares, arrivals(split_on(seq)));
  Decision const most = decided(best, arrivals(split_on(dim_of<vocab>)));
  return scatter.operand[1] == split_on(seq) && scatter.result[0] == split_on(seq) && reduce.operand[0].whole() &&
         contracted.result[0] == partial_sum && survives.result[0] == split_on(seq) && most.result[0] == partial_max;
}
static_assert(sums_are_scattered_where_the_dim_is_theirs());

// ---- rule 5: sharing followers
// ----------------------------------------------------------------------------------------

constexpr bool contracting_a_follower_takes_it_as_shared() {
  Decision const d = decided(kv_squares, arrivals(split_on(head)));
  Decision const out = decided(kv_out, arrivals(split_on(head)), mapped(head));
  Decision const dot = decided(kv_dot, arrivals(split_on(head), split_on(head)));
  Case const right =
      Case(dot_right).reads(dims(s3, k2)).reads(dims(s3, k2)).contracts(dims(k2)).maps(dims(s3)).yields(dims(s3));
  Decision const second = decided(right, arrivals(split_on(head), split_on(head)));
  return d.operand[0] == shared_on(head) && d.result[0] == partial_sum && out.operand[0] == shared_on(head) &&
         out.parameter[0] == split_on(head) && dot.operand[0] == shared_on(head) && dot.operand[1] == split_on(head) &&
         second.operand[0] == split_on(head) &&
         second.operand[1] == shared_on(head);  // at most one operand of a product is Shared
}
static_assert(contracting_a_follower_takes_it_as_shared());

constexpr bool linear_ops_keep_shared() {
  Decision const kept = decided(kv_sum, arrivals(shared_on(head), split_on(head)));
  Decision const through = decided(kv_wide, arrivals(shared_on(head)));
  Case const bent = Case(silu).reads(dims(s3, k2)).yields(dims(s3, k2));
  Decision const reduced = decided(bent, arrivals(shared_on(head)));
  Decision const met = decided(beside, arrivals(split_on(head), shared_on(head)));  // beside its leader it is read
  Decision const added = decided(added_beside, arrivals(split_on(head), shared_on(head)));
  return kept.operand[0] == shared_on(head) && kept.operand[1] == shared_on(head) &&
         kept.result[0] == shared_on(head) && through.operand[0] == shared_on(head) &&
         through.result[0] == shared_on(head) && reduced.operand[0] == split_on(head) &&
         reduced.result[0] == split_on(head) && met.operand[1] == split_on(head) && met.result[0] == split_on(head) &&
         added.operand[1] == split_on(head) && added.result[0] == split_on(head);
}
static_assert(linear_ops_keep_shared());

constexpr bool folding_yields_shared() {
  Decision const d = decided(folded, arrivals(split_on(head)));
  return d.operand[0] == split_on(head) && d.result[0] == shared_on(head);
}
static_assert(folding_yields_shared());

TEST_CASE("rule 1: parameters decide") {
  CHECK(a_parameter_with_a_mapped_dim_decides());
  CHECK(a_parameter_that_stands_decides_by_its_place());
  CHECK(two_candidates_are_an_error());
}
TEST_CASE("rule 2: the first split that arrives is kept unless the op needs the dim whole or says nothing of it") {
  CHECK(the_first_split_operand_decides());
  CHECK(a_dim_that_is_needed_whole_is_gathered());
  CHECK(silence_about_a_split_dim_is_an_error());
}
TEST_CASE("rule 3: sums pass through what is additive, and parameters adopt them") {
  CHECK(additive_ops_keep_sums());
  CHECK(a_bias_joins_a_sum_once());
  CHECK(lazy_operands_stay_sums_beside_whole_ones());
}
TEST_CASE("rule 4: other sums are reduced, and a contracted split is a sum") {
  CHECK(sums_are_scattered_where_the_dim_is_theirs());
}
TEST_CASE("rule 5: sharing followers are counted once") {
  CHECK(contracting_a_follower_takes_it_as_shared());
  CHECK(linear_ops_keep_shared());
  CHECK(folding_yields_shared());
}

// ---- the same as a law with numbers
// -----------------------------------------------------------------------------------

constexpr int most_elements = 32, most_ranks = 4;
using Dense = Vec<i64, most_elements>;  ///< elements of a tensor, the last dim fastest

struct Point {
  Vec<Extent, max_dims> dims{};
  Vec<i64, max_dims> at{};

  /// Index along `e`: a follower beside its leader is the one that the leader reads.
  constexpr i64 along(Extent const& e) const {
    for (i32 k = 0; k < dims.size(); ++k)
      if (dims[k].dim == e.dim) return at[k];
    for (i32 k = 0; k < dims.size(); ++k)
      if (e.dim->leader == dims[k].dim) return at[k] * e.size / dims[k].size;
    return 0;
  }
  constexpr i64 index(Dims const& d) const {
    i64 n = 0;
    for (auto const& e : d) n = n * e.size + along(e);
    return n;
  }
  constexpr bool next() {
    for (i32 k = dims.size() - 1; k >= 0; --k) {
      if (++at[k] < dims[k].size) return true;
      at[k] = 0;
    }
    return false;
  }
};
constexpr Point points(Dims const& d) {
  Point p;
  for (auto const& e : d) p.dims.push(e), p.at.push(0);
  return p;
}
constexpr i64 elements(Dims const& d) {
  i64 n = 1;
  for (auto const& e : d) n *= e.size;
  return n;
}
constexpr Dense zeros(Dims const& d) {
  Dense x;
  for (i64 i = 0; i < elements(d); ++i) x.push(0);
  return x;
}

/// Does a rank hold the point, where the axis has this place?
constexpr bool holds(Point const& p, Dims const& d, Place place, AxisInfo const& axis, i32 rank, bool owns = false) {
  if (!place.cut()) return true;
  Mesh mesh;
  mesh.push(&axis);
  Places places;
  places[0] = place;
  Coordinate at;
  at.push(rank);
  for (auto const& e : d) {
    Range const mine = owns ? owned(e, places, mesh, at) : held(e, places, mesh, at);
    if (!mine.contains(p.along(e))) return false;
  }
  return true;
}

/// What each rank has of `x`. A sum is split arbitrarily where it `arrives`; one that is made here is a mask: the owner
/// has the value, others nothing.
constexpr void place_on_ranks(Dense* local, Dense const& x, Dims const& d, Place place, AxisInfo const& axis,
                              bool arrives) {
  for (i32 r = 0; r < axis.size; ++r) local[r] = zeros(d);
  Point p = points(d);
  do {
    i64 const i = p.index(d);
    i64 rest = x[i];
    i32 last = 0;
    for (i32 r = 0; r < axis.size; ++r)
      if (holds(p, d, place, axis, r)) last = r;
    for (i32 r = 0; r < axis.size; ++r) {
      if (!holds(p, d, place, axis, r)) continue;
      if (place.kind == Kind::partial_max) {
        local[r][i] = r == i % axis.size ? x[i] : x[i] - r - 1;
      } else if (place.partial() || place.kind == Kind::shared) {
        bool const mine = place.partial() ? r == 0 : holds(p, d, place, axis, r, true);
        i64 const given = arrives ? (r == last ? rest : 3 * r + i - 4) : (mine ? x[i] : 0);
        local[r][i] = given, rest -= given;
      } else {
        local[r][i] = x[i];
      }
    }
  } while (p.next());
}
/// The value that ranks have together. @return false where copies differ.
constexpr bool put_together(Dense& x, Dense const* local, Dims const& d, Place place, AxisInfo const& axis) {
  x = zeros(d);
  Point p = points(d);
  do {
    i64 const i = p.index(d);
    bool first = true;
    for (i32 r = 0; r < axis.size; ++r) {
      if (!holds(p, d, place, axis, r)) continue;
      if (place.kind == Kind::partial_max) x[i] = first || local[r][i] > x[i] ? local[r][i] : x[i];
      else if (place.partial() || place.kind == Kind::shared) x[i] += local[r][i];
      else if (first) x[i] = local[r][i];
      else if (x[i] != local[r][i]) return false;
      first = false;
    }
  } while (p.next());
  return true;
}

/// One op on what a rank has: every point whose operands, parameter and result it holds.
constexpr Dense computed(Case const& c, Dense const* operands, Dense const* parameters, Decision const& d,
                         AxisInfo const& axis, i32 rank) {
  Dims const& out = c.call.results[0].dims;
  bool const most = c.call.op->maximum;
  Dense y = zeros(out);
  for (auto& e : y) e = most ? -1000 : 0;
  Dims all = out;
  auto const join = [&](Dims const& more) {
    for (auto const& e : more) {
      bool beside = false;
      for (auto const& a : all) beside = beside || a.dim == e.dim || (e.dim->leader && e.dim->leader == a.dim);
      if (!beside) all.push(e);
    }
  };
  for (auto const& o : c.operands) join(o);
  for (auto const& p : c.parameters) join(p);
  Dims kept;  // a leader that came after its follower stands for both
  for (auto const& e : all) {
    bool beside = false;
    for (auto const& a : all) beside = beside || (e.dim->leader && e.dim->leader == a.dim);
    if (!beside) kept.push(e);
  }
  Point p = points(kept);
  do {
    bool mine = holds(p, out, d.result[0], axis, rank);
    for (i32 i = 0; i < c.operands.size(); ++i) mine = mine && holds(p, c.operands[i], d.operand[i], axis, rank);
    for (i32 i = 0; i < c.parameters.size(); ++i) mine = mine && holds(p, c.parameters[i], d.parameter[i], axis, rank);
    if (!mine) continue;
    bool const adds = c.call.op == &add;
    i64 v = adds ? 0 : 1;
    auto const take = [&](i64 x) { v = adds ? v + x : v * x; };
    for (i32 i = 0; i < c.operands.size(); ++i) take(operands[i][p.index(c.operands[i])]);
    for (i32 i = 0; i < c.parameters.size(); ++i) take(parameters[i][p.index(c.parameters[i])]);
    if (c.call.op == &square_sum || c.call.op == &silu) v = v * v + (c.call.op == &silu);
    i64& to = y[p.index(out)];
    to = most ? (v > to ? v : to) : to + v;
  } while (p.next());
  return y;
}

/// Split and unsplit agree for one way in which the operands arrive.
constexpr bool agrees(Case const& c, Arrivals const& at, MappedDims const& m, AxisInfo const& axis) {
  Decision const d = decided(c, at, m);
  if (d.rule != Rule::ok) return false;
  Dense whole[max_operands + max_parameters], local[max_operands + max_parameters][most_ranks], result[most_ranks];
  i32 const operands = c.operands.size();
  for (i32 i = 0; i < operands + c.parameters.size(); ++i) {
    Dims const& of = i < operands ? c.operands[i] : c.parameters[i - operands];
    Place const to = i < operands ? d.operand[i] : d.parameter[i - operands];
    bool const stays = i < operands && at[i] == to;
    if (i < operands && to.partial() && !stays) return false;  // no redistribution makes a sum
    whole[i] = zeros(of);
    for (i32 k = 0; k < whole[i].size(); ++k) whole[i][k] = (7 * k + 3 * i) % 11 - 5;
    place_on_ranks(local[i], whole[i], of, to, axis, stays);
  }
  for (i32 r = 0; r < axis.size; ++r) {
    Dense o[max_operands], p[max_parameters];
    for (i32 i = 0; i < operands; ++i) o[i] = local[i][r];
    for (i32 i = 0; i < c.parameters.size(); ++i) p[i] = local[operands + i][r];
    result[r] = computed(c, o, p, d, axis, r);
  }
  AxisInfo const one{"t", 1, nullptr};
  Dense const expected = computed(c, whole, whole + operands, Decision{}, one, 0);
  Dense got;
  return put_together(got, result, c.call.results[0].dims, d.result[0], axis) && got == expected;
}

/// Every way in which an operand of these dims may arrive.
constexpr Arrivals ways(Dims const& d, bool shared) {
  Arrivals w;
  w.push(whole_place), w.push(partial_sum), w.push(partial_max);
  if (shared && relation(d, head) == Relation::follower) w.push(shared_on(head));
  return w;
}
constexpr bool agrees_however_it_arrives(Case const& c, MappedDims const& m, AxisInfo const& axis, bool shared) {
  Vec<Vec<Place, 12>, max_operands> all;
  i64 combinations = 1;
  for (auto const& d : c.operands) {
    Vec<Place, 12> w;
    for (auto const& p : ways(d, shared)) w.push(p);
    for (auto const& e : d) w.push(split_on(e.dim->leader ? e.dim->leader : e.dim));
    all.push(w);
    combinations *= w.size();
  }
  for (i64 n = 0; n < combinations; ++n) {
    Arrivals at;
    i64 rest = n;
    for (auto const& w : all) at.push(w[rest % w.size()]), rest /= w.size();
    if (!agrees(c, at, m, axis)) return false;
  }
  return true;
}

constexpr i64 uneven[] = {1, 2, 1};
constexpr AxisInfo axes[] = {AxisInfo{"t", 2, nullptr}, AxisInfo{"t", 3, uneven}, AxisInfo{"t", 4, nullptr}};
constexpr bool every_policy(Case const& c, i32 axis, bool shared) {
  return agrees_however_it_arrives(c, MappedDims{}, axes[axis], shared) &&
         agrees_however_it_arrives(c, mapped(head, wide, dim_of<vocab>), axes[axis], shared) &&
         agrees_however_it_arrives(c, mapped(in), axes[axis], shared);
}
constexpr bool forward_ops(i32 axis) {
  return every_policy(linear, axis, false) && every_policy(down, axis, false) && every_policy(sum, axis, false) &&
         every_policy(product, axis, false) && every_policy(gate, axis, false) && every_policy(bias, axis, false) &&
         every_policy(squares, axis, false) && every_policy(best, axis, false) && every_policy(scaled, axis, false);
}
constexpr bool ops_on_followers(i32 axis) {
  return every_policy(kv_squares, axis, false) && every_policy(kv_out, axis, true) &&
         every_policy(kv_dot, axis, true) && every_policy(kv_sum, axis, true) && every_policy(kv_wide, axis, true) &&
         every_policy(beside, axis, true) && every_policy(added_beside, axis, true) &&
         every_policy(folded, axis, false);
}
static_assert(agrees(sum, arrivals(partial_sum, whole_place), MappedDims{}, axes[0]));
static_assert(agrees(kv_squares, arrivals(split_on(head)), MappedDims{}, axes[2]));
TEST_CASE("ranks that compute on what decide() gives them put together what one rank computes") {
  for (i32 axis = 0; axis < 3; ++axis) {
    CHECK(forward_ops(at_run_time(axis)));
    CHECK(ops_on_followers(at_run_time(axis)));
  }
}

/// Deciding again with everything where the decision put it changes nothing.
constexpr bool is_settled(Case const& c, Arrivals const& at, MappedDims const& m) {
  Decision const d = decided(c, at, m);
  Arrivals moved;
  for (i32 i = 0; i < c.operands.size(); ++i) moved.push(d.operand[i]);
  Decision const again = c.parameters.empty() ? decided(c, moved, m) : decided_again(c, moved, d.parameter[0], m);
  bool same = again.result[0] == d.result[0];
  for (i32 i = 0; i < c.operands.size(); ++i) same = same && again.operand[i] == d.operand[i];
  for (i32 i = 0; i < c.parameters.size(); ++i) same = same && again.parameter[i] == d.parameter[i];
  return same;
}
constexpr bool decisions_are_settled() {
  Place const arrive[] = {whole_place, split_on(seq), split_on(wide), partial_sum, partial_max};
  MappedDims const policies[] = {MappedDims{}, mapped(wide), mapped(in)};
  for (auto const& m : policies)
    for (auto const& a : arrive) {
      if (!is_settled(down, arrivals(a), m)) return false;
      if (!is_settled(bias, arrivals(a), m) || !is_settled(gate, arrivals(a), m)) return false;
      for (auto const& b : arrive)
        if (!is_settled(sum, arrivals(a, b), m) || !is_settled(product, arrivals(a, b), m)) return false;
    }
  return true;
}
static_assert(decisions_are_settled());
TEST_CASE("a decision stands: decided again in its own places it is the same") { CHECK(decisions_are_settled()); }

}  // namespace
