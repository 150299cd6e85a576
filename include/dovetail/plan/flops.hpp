// SPDX-License-Identifier: MIT
// Predicted arithmetic: floating-point operations of a rank in one pass. An op states them for each point of the union
// of its dims; a rank computes the points of its local extents. Only ops that state any count: matrix products and
// attention, not norms and activations.
#pragma once
#include <dovetail/mesh/overlap.hpp>
#include <dovetail/plan/plan.hpp>

namespace dovetail {

namespace arithmetic {

/// A dim of a step, with the placement of the tensor that says how it is split.
struct DimUse {
  Extent const* extent = nullptr;
  Places const* places = nullptr;
};
using DimUses = Vec<DimUse, 2 * max_dims>;

/// Union of the dims of what a step reads, holds and yields; a sharing follower beside its leader is not another dim.
constexpr DimUses dims_of(Plan const& plan, Step const& s) {
  DimUses all;
  auto const join = [&](i32 value) {
    for (auto const& e : plan.values[value].dims) {
      bool known = false;
      for (auto const& a : all) known = known || a.extent->dim == e.dim;
      if (!known) all.push(DimUse{&e, &plan.values[value].places});
    }
  };
  for (auto const& o : s.operands)
    if (!o.witness) join(o.value);
  for (auto const& p : s.parameters) join(p.value);
  for (i32 r : s.results) join(r);
  DimUses kept;
  for (auto const& a : all) {
    bool beside = false;
    for (auto const& b : all) beside = beside || a.extent->dim->shares(b.extent->dim);
    if (!beside) kept.push(a);
  }
  return kept;
}

}  // namespace arithmetic

/// Operations of one execution of a step on `rank`; 0 where it is not of the rank's stage.
constexpr i64 step_flops(Plan const& plan, i32 step, i64 rank, RunShape run) {
  Step const& s = plan.steps[step];
  RankPlace const place = plan.place_of(rank);
  if (!s.op || !s.op->flops || s.stage != place.stage) return 0;
  Mesh const& mesh = plan.mesh(s.stage);
  arithmetic::DimUses const uses = arithmetic::dims_of(plan, s);
  i64 points = 1;
  Range sequences{0, 1};
  bool batched = false;
  for (auto const& a : uses) {
    if (a.extent->symbol == Symbol::fixed) points *= held(*a.extent, *a.places, mesh, place.at).size();
    if (a.extent->symbol != Symbol::batch) continue;
    sequences = leading_range(*a.extent, run.size(), *a.places, mesh, place.at);
    batched = true;
  }
  if (!batched) return points * s.op->flops;
  i64 rows = 0;
  for (i64 q = sequences.lo; q < sequences.hi; ++q) {
    i64 mine = 1;
    for (auto const& a : uses)
      if (a.extent->symbol != Symbol::fixed && a.extent->symbol != Symbol::batch)
        mine *= leading_range(*a.extent, extent_in(run[q], a.extent->symbol), *a.places, mesh, place.at).size();
    rows += mine;
  }
  return rows * points * s.op->flops;
}

/// Operations of a rank in one pass.
constexpr i64 flops(Plan const& plan, i64 rank, RunShape run) {
  i64 n = 0;
  for (i32 i = 0; i < plan.steps.size(); ++i) n += step_flops(plan, i, rank, run) * plan.executions(plan.steps[i].loop);
  return n;
}

}  // namespace dovetail
