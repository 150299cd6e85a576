// SPDX-License-Identifier: MIT
// Laws of splits: whatever the extent, unit, ranks and shares, the parts tile the extent in order, cut no unit and are
// as even as units allow; followers hold what their leaders read and own it once; stacks of axes tile as one axis does.
#include <dovetail/mesh/overlap.hpp>

#include "at_run_time.hpp"
#include "catch.hpp"

using namespace dovetail;
using test::at_run_time;

namespace {

/// An axis of `ranks` with shares (nullptr: balanced), for tests that need many.
constexpr AxisInfo axis(i32 ranks, i64 const* shares = nullptr) { return AxisInfo{"t", ranks, shares}; }
constexpr i64 three_to_one[] = {3, 1}, all_to_one[] = {1, 0}, none_first[] = {0, 2, 1}, equal[] = {5, 5, 5, 5};
constexpr i64 mixed[] = {1, 7, 2, 0, 3};
constexpr AxisInfo shared_axes[] = {axis(2, three_to_one), axis(2, all_to_one), axis(3, none_first), axis(4, equal),
                                    axis(5, mixed)};

constexpr bool tiles(i64 extent, i64 unit, AxisInfo const& a) {
  i64 at = 0;
  for (i32 r = 0; r < a.size; ++r) {
    Range const mine = part(Range{0, extent}, unit, a, r), moved = part(Range{10, 10 + extent}, unit, a, r);
    if (mine.lo != at || mine.hi < mine.lo) return false;                    // in order, disjoint, no hole
    if (mine.lo % unit && mine.lo != extent) return false;                   // no unit is cut
    if (moved.lo != mine.lo + 10 || moved.hi != mine.hi + 10) return false;  // counted from the range's start
    if (mine.size() && !a.share(r)) return false;                            // no share, no part
    at = mine.hi;
  }
  return at == extent;
}

/// Every rank gets its exact quota of units, rounded down or up; those rounded up have the largest remainders.
constexpr bool deals_by_largest_remainder(i64 units, AxisInfo const& a) {
  i64 total = 0, dealt = 0;
  for (i32 r = 0; r < a.size; ++r) total += a.share(r), dealt += units_of(units, a, r);
  if (dealt != units) return false;
  for (i32 r = 0; r < a.size; ++r) {
    i64 const up = units_of(units, a, r) - units * a.share(r) / total, rest = units * a.share(r) % total;
    if (up < 0 || up > (rest > 0)) return false;
    for (i32 q = 0; q < a.size; ++q) {
      i64 const other_up = units_of(units, a, q) - units * a.share(q) / total, other = units * a.share(q) % total;
      if (other_up > up && (other < rest || (other == rest && q > r))) return false;
    }
  }
  return true;
}

constexpr bool balanced_splits(i64 most, i64 step) {
  for (i64 extent = 0; extent <= most; extent += step)
    for (i64 unit = 1; unit <= 8; unit += unit < 3 ? 1 : 5)
      for (i32 ranks = 1; ranks <= 9; ranks += 2) {
        AxisInfo const a = axis(ranks);
        if (!tiles(extent, unit, a)) return false;
        i64 const units = ceil_div(extent, unit);
        for (i32 r = 0; r < ranks; ++r)  // the first ones have one more
          if (units_of(units, a, r) != units / ranks + (r < units % ranks)) return false;
      }
  return true;
}
static_assert(balanced_splits(21, 7));
TEST_CASE("balanced splits tile every extent in whole units, the first ranks one more") {
  CHECK(balanced_splits(at_run_time(400), 1));
}

constexpr bool stated_shares(i64 most, i64 step) {
  for (auto const& a : shared_axes)
    for (i64 extent = 0; extent <= most; extent += step)
      for (i64 unit : {1, 3})
        if (!tiles(extent, unit, a) || !deals_by_largest_remainder(extent, a)) return false;
  return true;
}
static_assert(stated_shares(10, 5));
TEST_CASE("stated shares tile every extent and deal units by largest remainder, ties to the lower rank") {
  CHECK(stated_shares(at_run_time(300), 1));
}

constexpr bool shares_that_say_nothing_new() {
  for (i64 extent = 0; extent < 30; ++extent) {
    if (part(Range{0, extent}, 2, shared_axes[1], 0) != Range{0, extent}) return false;  // 1 to 0: unsplit
    for (i32 r = 0; r < 4; ++r)                                                          // equal shares: balanced
      if (part(Range{0, extent}, 2, shared_axes[3], r) != part(Range{0, extent}, 2, axis(4), r)) return false;
  }
  return true;
}
static_assert(shares_that_say_nothing_new());
TEST_CASE("a share of one and none is no split, and equal shares are a balanced one") {
  CHECK(shares_that_say_nothing_new());
}

constexpr bool sizes_are(i64 extent, i32 ranks, auto... sizes) {
  i64 const expected[] = {sizes...};
  for (i32 r = 0; r < ranks; ++r)
    if (block(extent, 1, ranks, r).size() != expected[r]) return false;
  return sizeof...(sizes) == static_cast<std::size_t>(ranks);
}
constexpr bool known_sizes() {
  bool ok = sizes_are(61, 8, 8, 8, 8, 8, 8, 7, 7, 7) && sizes_are(30, 4, 8, 8, 7, 7) && sizes_are(10, 3, 4, 3, 3);
  ok = ok && sizes_are(5, 8, 1, 1, 1, 1, 1, 0, 0, 0) && sizes_are(151851, 2, 75926, 75925);
  ok = ok && sizes_are(250682, 8, 31336, 31336, 31335, 31335, 31335, 31335, 31335, 31335);
  for (i32 r = 0; r < 16; ++r) ok = ok && block(49954, 1, 16, r).size() == (r < 2 ? 3123 : 3122);
  for (i32 r = 0; r < 24; ++r) ok = ok && block(129280, 1, 24, r).size() == (r < 16 ? 5387 : 5386);
  return ok && units_of(4, shared_axes[0], 0) == 3 && units_of(4, shared_axes[0], 1) == 1 &&
         units_of(2, shared_axes[0], 0) == 2 && units_of(2, shared_axes[0], 1) == 0;
}
static_assert(known_sizes());
TEST_CASE("splits of vocabularies and layers that real models need") { CHECK(known_sizes()); }

constexpr DimInfo const *heads_dim = dim_of<heads>, *kv_dim = dim_of<kv_heads>;

/// Followers of `lead` query heads under one axis: each rank holds what its heads read, nothing else where every
/// follower has as many leaders, and owns it once.
constexpr bool followers_hold_what_leaders_read(i64 size, i64 lead, AxisInfo const& a) {
  Extent const e = extent<kv_heads>(size, lead);
  Mesh mesh;
  mesh.push(&a);
  Places places;
  places[0] = split_on(heads_dim);
  i64 owned_so_far = 0;
  for (i32 r = 0; r < a.size; ++r) {
    Coordinate at;
    at.push(r);
    Range const leaders = part(Range{0, lead}, 1, a, r), holds = held(e, places, mesh, at),
                owns = owned(e, places, mesh, at);
    for (i64 h = leaders.lo; h < leaders.hi; ++h)
      if (!holds.contains(h * size / lead)) return false;
    for (i64 k = holds.lo; k < holds.hi && lead % size == 0; ++k) {
      bool read = false;
      for (i64 h = leaders.lo; h < leaders.hi; ++h) read = read || h * size / lead == k;
      if (!read) return false;
    }
    for (i64 k = owns.lo; k < owns.hi; ++k)
      if (!holds.contains(k) || k != owned_so_far++) return false;
  }
  return owned_so_far == size;
}
constexpr bool sharing_followers(i64 most) {
  for (i64 lead = 1; lead <= most; ++lead)
    for (i64 size = 1; size <= lead; ++size) {
      for (i32 ranks = 1; ranks <= lead; ++ranks)
        if (!followers_hold_what_leaders_read(size, lead, axis(ranks))) return false;
      for (auto const& a : shared_axes)
        if (!followers_hold_what_leaders_read(size, lead, a)) return false;
    }
  return true;
}
static_assert(sharing_followers(4));
static_assert(followers_hold_what_leaders_read(3, 9, axis(2)) && followers_hold_what_leaders_read(3, 9, axis(5)));
TEST_CASE("KV heads follow query heads: held is what is read, owned tiles, held contains owned") {
  CHECK(sharing_followers(at_run_time(12)));
}

/// Two axes on one dim: the inner one cuts what the outer one left.
constexpr bool stack_tiles(Extent const& e, DimInfo const* dim, AxisInfo const& outer, AxisInfo const& inner) {
  Mesh mesh;
  mesh.push(&outer), mesh.push(&inner);
  Places both, outer_only;
  both[0] = both[1] = outer_only[0] = split_on(dim);
  i64 all = 0;
  for (i32 i = 0; i < outer.size; ++i) {
    i64 brought = 0;  // by the inner axis' ranks to a gather: together what the outer axis' rank holds
    Coordinate at;
    at.push(i), at.push(0);
    Range const whole = held(e, outer_only, mesh, at);
    for (i32 k = 0; k < inner.size; ++k) {
      at[1] = k;
      Range const holds = held(e, both, mesh, at), owns = owned(e, both, mesh, at);
      Range const brings = brought_part(e, e.lead, both, mesh, at, 1);
      if (intersect(holds, whole) != holds && holds.size()) return false;
      if (owns.size() && (owns.lo != all || intersect(owns, holds) != owns)) return false;
      if (brings.size() && (brings.lo != whole.lo + brought || intersect(brings, holds) != brings)) return false;
      all += owns.size(), brought += brings.size();
    }
    if (brought != whole.size()) return false;
  }
  return all == e.size;
}
constexpr bool stacks(i64 most) {
  for (i64 n = 1; n <= most; n += 2)
    for (i32 outer = 1; outer <= 3; ++outer)
      for (i32 inner = 1; inner <= 3; ++inner) {
        if (!stack_tiles(extent<ffn>(n), dim_of<ffn>, axis(outer), axis(inner))) return false;
        if (!stack_tiles(extent<ffn>(4 * n, 0, 4), dim_of<ffn>, axis(outer), shared_axes[inner])) return false;
        for (i64 kv = 1; kv <= n; kv += 2)
          if (!stack_tiles(extent<kv_heads>(kv, n), heads_dim, axis(outer), axis(inner))) return false;
      }
  return true;
}
static_assert(stacks(3));
TEST_CASE("two axes on one dim tile it, and an inner gather restores what the outer axis left") {
  CHECK(stacks(at_run_time(24)));
}

/// Why a gather cannot take what ranks own: with 9 query heads on 3 KV heads, the second half of the outer axis holds
/// KV head 1, which the first half owns.
constexpr bool owning_is_not_bringing() {
  AxisInfo const two = axis(2);
  Mesh mesh;
  mesh.push(&two), mesh.push(&two);
  Places places;
  places[0] = places[1] = split_on(heads_dim);
  Coordinate at;
  at.push(1), at.push(0);
  Extent const e = extent<kv_heads>(3, 9);
  return owned(e, places, mesh, at) == Range{2, 3} && brought_part(e, 9, places, mesh, at, 1) == Range{1, 3};
}
static_assert(owning_is_not_bringing());
TEST_CASE("what a rank brings to a gather includes what others outside the group own") {
  CHECK(owning_is_not_bringing());
}

static_assert(kv_dim->shares(heads_dim) && !kv_dim->may_be_empty && dim_of<vocab>->may_be_empty);

}  // namespace
