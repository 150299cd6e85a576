// SPDX-License-Identifier: MIT
// The ranks that must agree on every new token: those that exchange anything in the plan, or hold the same sequences'
// choices. Replicas are groups of their own and never wait for each other.
#pragma once
#include <dovetail/plan/peers.hpp>
#include <vector>

namespace dovetail {

/// Ranks of the serving group of `rank`, in order.
inline std::vector<int> serving_group(Plan const& plan, i32 choice, i64 rank) {
  std::vector<i64> root(static_cast<std::size_t>(plan.ranks()));
  for (std::size_t r = 0; r < root.size(); ++r) root[r] = static_cast<i64>(r);
  auto const find_root = [&](i64 r) {
    while (root[static_cast<std::size_t>(r)] != r) r = root[static_cast<std::size_t>(r)];
    return r;
  };
  auto const join = [&](i64 a, i64 b) {
    a = find_root(a), b = find_root(b);
    root[static_cast<std::size_t>(a > b ? a : b)] = a > b ? b : a;
  };
  for (i64 r = 0; r < plan.ranks(); ++r) {
    RankPlace const place = plan.place_of(r);
    Mesh const& mesh = plan.mesh(place.stage);
    for (i32 a = 0; a < mesh.size(); ++a) {
      bool together = plan.values[choice].stage == place.stage && !plan.values[choice].places[a].cut();
      for (auto const& s : plan.steps)
        together = together || (s.stage == place.stage && s.axis == a && communicates(s.kind));
      if (together) join(r, rank_along(plan, r, a, 0));
    }
    for (i32 s = 0; s < plan.steps.size(); ++s)
      if (plan.steps[s].kind == StepKind::send && plan.steps[s].stage == place.stage)
        join(r, receives_from(plan, s, r));
  }
  std::vector<int> group;
  for (i64 r = 0; r < plan.ranks(); ++r)
    if (find_root(r) == find_root(rank)) group.push_back(static_cast<int>(r));
  return group;
}

/// Does this rank speak for the choices that it holds? One rank does for every sequence.
inline bool speaks(Plan const& plan, i32 choice, RankPlace const& place) {
  if (plan.values[choice].stage != place.stage) return false;
  for (i32 a = 0; a < plan.mesh(place.stage).size(); ++a)
    if (!plan.values[choice].places[a].cut() && place.at[a] != 0) return false;
  return true;
}

}  // namespace dovetail
