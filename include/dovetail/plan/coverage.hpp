// SPDX-License-Identifier: MIT
// The proof that a plan stores its model: the parts that ranks own tile every parameter and state, each rank holds what
// it owns, no two parameters are the same one, and a step uses what its own stage stores. Ranks that differ along axes
// which do not cut a parameter hold the same of it; coordinate 0 owns it, so it is enough to look at the axes that cut.
#pragma once
#include <dovetail/mesh/overlap.hpp>
#include <dovetail/plan/memory.hpp>

namespace dovetail {

/// How a plan can fail to store its model.
enum class Gap : std::uint8_t {
  none,
  no_dim,       ///< an axis splits it on a dim that it lacks
  two_dims,     ///< one axis cuts two of its dims: the ranks hold a diagonal of blocks
  not_tiled,    ///< owned parts leave something out, or overlap
  not_held,     ///< a rank owns what it does not hold
  owned_twice,  ///< another parameter has its name and layer, and is no tied copy
  other_stage,  ///< a step uses a parameter that its stage does not store
};

/// The first parameter or state that a plan does not cover.
struct Coverage {
  Gap gap = Gap::none;
  i32 parameter = -1;
  i32 state = -1;
  constexpr bool ok() const { return gap == Gap::none; }
};

namespace covering {

/// Do the owned parts of one dim tile it, over all coordinates of the axes that cut it?
constexpr Gap dim_gap(Extent const& e, Places const& places, Mesh const& mesh) {
  Coordinate at;
  i64 ranks = 1;
  bool cuts[max_axes]{};
  for (i32 a = 0; a < mesh.size(); ++a) {
    at.push(0);
    cuts[a] = places[a].cut() && e.dim->follows_or_is(places[a].dim);
    if (cuts[a]) ranks *= mesh[a]->size;
  }
  bool const symbolic = e.symbol != Symbol::fixed;
  i64 const leaders = symbolic ? 2 * ranks + 1 : e.lead, size = symbolic ? leaders : e.size;
  i64 covered = 0;
  for (i64 n = 0; n < ranks; ++n) {
    Range const lead = leading_range(e, leaders, places, mesh, at);
    Range const own = e.lead == e.size ? lead : owned_of(lead, e.size, e.lead);
    Range const held = held_part(e, leaders, places, mesh, at);
    if (own.size() && own.lo != covered) return Gap::not_tiled;
    covered += own.size();
    if (!(intersect(own, held) == own) && own.size()) return Gap::not_held;
    if (held.lo < 0 || held.hi > size) return Gap::not_held;
    for (i32 a = mesh.size() - 1; a >= 0; --a) {  // the next coordinate, the innermost axis fastest
      if (cuts[a] && ++at[a] < mesh[a]->size) break;
      at[a] = 0;
    }
  }
  return covered == size ? Gap::none : Gap::not_tiled;
}

constexpr Gap tensor_gap(Tensor const& t, Mesh const& mesh) {
  for (i32 a = 0; a < mesh.size(); ++a) {
    i32 cut = 0;
    for (auto const& e : t.dims) cut += t.places[a].cut() && e.dim->follows_or_is(t.places[a].dim);
    if (t.places[a].cut() && cut != 1) return cut ? Gap::two_dims : Gap::no_dim;
  }
  for (auto const& e : t.dims)
    if (Gap const gap = dim_gap(e, t.places, mesh); gap != Gap::none) return gap;
  return Gap::none;
}

/// Calls `see(layer)` for the global layer index of every iteration.
constexpr void each_layer(Plan const& plan, LayerIndex const& l, auto const& see) {
  i64 iterations = 1;
  for (auto const& t : l.terms) iterations *= plan.loops[t.loop].count;
  for (i64 n = 0; n < iterations; ++n) {
    i64 layer = l.first, rest = n;
    for (auto const& t : l.terms) {
      layer += t.stride * (rest % plan.loops[t.loop].count);
      rest /= plan.loops[t.loop].count;
    }
    see(layer);
  }
}

/// Index of the first of `leaves` that has name and layer in common with one before it, or -1.
/// @param skip leaves that may: later copies of tied parameters
constexpr i32 first_twin(Plan const& plan, auto const& leaves, auto const& skip) {
  List<std::uint64_t> names;
  List<char> done;
  for (auto const& leaf : leaves) {
    Hash h;
    h.add(leaf.name.chars);
    names.push(h.state), done.push(0);
  }
  for (i32 i = 0; i < leaves.size(); ++i) {
    if (done[i] || skip(i)) continue;
    List<char> seen;
    for (i32 k = i; k < leaves.size(); ++k) {
      if (names[k] != names[i] || !(leaves[k].name == leaves[i].name) || skip(k)) continue;
      done[k] = 1;
      bool twice = false;
      each_layer(plan, leaves[k].layer, [&](i64 layer) {
        while (seen.size() <= layer + 1) seen.push(0);
        twice = twice || seen[layer + 1];
        seen[layer + 1] = 1;
      });
      if (twice) return k;
    }
  }
  return -1;
}

}  // namespace covering

/// Checks every parameter and state. @post ok() where each element is owned once and held by all that own it.
constexpr Coverage coverage(Plan const& plan) {
  for (i32 i = 0; i < plan.parameters.size(); ++i) {
    Parameter const& p = plan.parameters[i];
    Gap const gap = covering::tensor_gap(plan.values[p.value], plan.mesh(p.stage));
    if (gap != Gap::none) return Coverage{gap, i, -1};
  }
  for (i32 i = 0; i < plan.states.size(); ++i) {
    State const& s = plan.states[i];
    Gap const gap = covering::tensor_gap(plan.values[s.value], plan.mesh(s.stage));
    if (gap != Gap::none) return Coverage{gap, -1, i};
  }
  i32 const parameter = covering::first_twin(plan, plan.parameters, [&](i32 i) { return is_tied_copy(plan, i); });
  if (parameter >= 0) return Coverage{Gap::owned_twice, parameter, -1};
  i32 const state = covering::first_twin(plan, plan.states, [](i32) { return false; });
  if (state >= 0) return Coverage{Gap::owned_twice, -1, state};
  for (auto const& s : plan.steps) {
    for (auto const& p : s.parameters)
      if (plan.parameters[p.parameter].stage != s.stage) return Coverage{Gap::other_stage, p.parameter, -1};
    if (s.state >= 0 && plan.states[s.state].stage != s.stage) return Coverage{Gap::other_stage, -1, s.state};
  }
  return {};
}

}  // namespace dovetail
