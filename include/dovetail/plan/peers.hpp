// SPDX-License-Identifier: MIT
// Who a rank exchanges with: the ranks of an axis, and the one sender of each receiver where a value goes from stage to
// stage. It follows from plan, step and rank alone, so every rank knows its peers without asking.
#pragma once
#include <dovetail/plan/plan.hpp>

namespace dovetail {

/// The rank that differs from `rank` in its coordinate on one axis of its stage's mesh only.
constexpr i64 rank_along(Plan const& plan, i64 rank, i32 axis, i32 coordinate) {
  RankPlace p = plan.place_of(rank);
  p.at[axis] = coordinate;
  return plan.rank_of(p);
}

namespace crossing {

constexpr i32 index_in(Mesh const& mesh, AxisInfo const* axis) {
  for (i32 a = 0; a < mesh.size(); ++a)
    if (mesh[a] == axis) return a;
  return -1;
}
/// Ranks along the axes of `mesh` that `other` lacks.
constexpr i64 ranks_apart(Mesh const& mesh, Mesh const& other) {
  i64 n = 1;
  for (auto const* axis : mesh)
    if (index_in(other, axis) < 0) n *= axis->size;
  return n;
}
/// Row-major number of a coordinate among them.
constexpr i64 number_apart(Coordinate const& at, Mesh const& mesh, Mesh const& other) {
  i64 n = 0;
  for (i32 a = 0; a < mesh.size(); ++a)
    if (index_in(other, mesh[a]) < 0) n = n * mesh[a]->size + at[a];
  return n;
}
/// Coordinate on `mesh` that equals `from` on the axes of `other` and has the number `n` among the axes that it lacks.
constexpr Coordinate opposite(Mesh const& mesh, Mesh const& other, Coordinate const& from, i64 n) {
  Coordinate at;
  for (i32 a = 0; a < mesh.size(); ++a) at.push(0);
  for (i32 a = mesh.size() - 1; a >= 0; --a) {
    i32 const shared = index_in(other, mesh[a]);
    at[a] = shared >= 0 ? from[shared] : static_cast<i32>(n % mesh[a]->size);
    if (shared < 0) n /= mesh[a]->size;
  }
  return at;
}

}  // namespace crossing

/// The rank that sends `rank` its part in a send step: the same coordinate on axes that both stages have; of the n_s
/// ranks along the others, receiver j of n_r takes from floor(j n_s / n_r). -1 where `rank` is not on the receiving
/// stage. @pre steps[step] is a send
constexpr i64 receives_from(Plan const& plan, i32 step, i64 rank) {
  Step const& s = plan.steps[step];
  RankPlace const to = plan.place_of(rank);
  if (to.stage != s.stage) return -1;
  RankPlace from;
  from.stage = plan.values[s.operands[0].value].stage;
  Mesh const &there = plan.mesh(from.stage), &here = plan.mesh(to.stage);
  i64 const senders = crossing::ranks_apart(there, here), receivers = crossing::ranks_apart(here, there);
  i64 const sender = crossing::number_apart(to.at, here, there) * senders / receivers;
  from.at = crossing::opposite(there, here, to.at, sender);
  return plan.rank_of(from);
}

/// The ranks that take a send step's value from `rank`, in order; none where it is not on the sending stage.
constexpr List<i64> receivers_of(Plan const& plan, i32 step, i64 rank) {
  List<i64> ranks;
  Step const& s = plan.steps[step];
  RankPlace const from = plan.place_of(rank);
  if (from.stage != plan.values[s.operands[0].value].stage) return ranks;
  RankPlace to;
  to.stage = s.stage;
  Mesh const &here = plan.mesh(from.stage), &there = plan.mesh(to.stage);
  i64 const senders = crossing::ranks_apart(here, there), receivers = crossing::ranks_apart(there, here);
  i64 const sender = crossing::number_apart(from.at, here, there);
  for (i64 r = ceil_div(sender * receivers, senders); r < ceil_div((sender + 1) * receivers, senders); ++r) {
    to.at = crossing::opposite(there, here, from.at, r);
    ranks.push(plan.rank_of(to));
  }
  return ranks;
}

}  // namespace dovetail
