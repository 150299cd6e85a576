// SPDX-License-Identifier: MIT
// What a rank keeps between runs: parameters held (copies included) and owned, and the KV cache. Held is what is
// stored; owned counts every parameter of the model once over all ranks: where an axis does not cut it, coordinate 0
// owns, and of tied copies on several stages the first. plan/coverage.hpp proves that the owned parts tile every
// parameter.
#pragma once
#include <dovetail/mesh/overlap.hpp>
#include <dovetail/plan/plan.hpp>
#include <dovetail/plan/storage_bytes.hpp>

namespace dovetail {

/// True for the copies of a tied parameter on all stages but the first that uses it.
constexpr bool is_tied_copy(Plan const& plan, i32 parameter) {
  for (auto const& t : plan.ties)
    if (t.second == parameter) return true;
  return false;
}

/// Elements of one iteration's parameter that a rank at `at` of its stage stores.
constexpr i64 held_elements(Plan const& plan, Parameter const& p, Coordinate const& at) {
  Tensor const& t = plan.values[p.value];
  return local_width(t.dims, t.places, plan.mesh(p.stage), at);
}
/// Elements of it that the rank owns.
constexpr i64 owned_elements(Plan const& plan, i32 parameter, Coordinate const& at) {
  Parameter const& p = plan.parameters[parameter];
  Tensor const& t = plan.values[p.value];
  Mesh const& mesh = plan.mesh(p.stage);
  if (is_tied_copy(plan, parameter)) return 0;
  for (i32 a = 0; a < mesh.size(); ++a)
    if (!t.places[a].cut() && at[a] != 0) return 0;
  i64 n = 1;
  for (auto const& e : t.dims) n *= owned(e, t.places, mesh, at).size();
  return n;
}

/// Parameters that a rank stores, copies included.
constexpr i64 held_parameters(Plan const& plan, i64 rank) {
  RankPlace const place = plan.place_of(rank);
  i64 n = 0;
  for (auto const& p : plan.parameters)
    if (p.stage == place.stage) n += held_elements(plan, p, place.at) * plan.executions(p.loop);
  return n;
}
/// Parameters that a rank owns; the sum over all ranks is total_parameters().
constexpr i64 owned_parameters(Plan const& plan, i64 rank) {
  RankPlace const place = plan.place_of(rank);
  i64 n = 0;
  for (i32 i = 0; i < plan.parameters.size(); ++i)
    if (plan.parameters[i].stage == place.stage)
      n += owned_elements(plan, i, place.at) * plan.executions(plan.parameters[i].loop);
  return n;
}
/// Parameters of the model, tied ones once.
constexpr i64 total_parameters(Plan const& plan) {
  i64 n = 0;
  for (i32 i = 0; i < plan.parameters.size(); ++i) {
    if (is_tied_copy(plan, i)) continue;
    Parameter const& p = plan.parameters[i];
    n += whole_elements(plan.values[p.value].dims, RunShape{}) * plan.executions(p.loop);
  }
  return n;
}

/// Bytes of the parameters that a rank stores.
constexpr i64 weight_bytes(Plan const& plan, i64 rank, StorageBytes const& bytes) {
  return held_parameters(plan, rank) * bytes[Storage::weight];
}
/// The most that any rank stores. Ranks that differ only along axes that cut no parameter are asked once.
constexpr i64 weight_bytes_per_rank(Plan const& plan, StorageBytes const& bytes) {
  i64 most = 0;
  for (i32 s = 0; s < plan.stages(); ++s) {
    Mesh const& mesh = plan.mesh(s);
    bool cuts[max_axes]{};
    for (auto const& p : plan.parameters)
      for (i32 a = 0; p.stage == s && a < mesh.size(); ++a) cuts[a] = cuts[a] || plan.values[p.value].places[a].cut();
    RankPlace place{s, Coordinate{}};
    for (i32 a = 0; a < mesh.size(); ++a) place.at.push(0);
    for (i32 a = 0; a >= 0;) {
      i64 const here = weight_bytes(plan, plan.rank_of(place), bytes);
      most = here > most ? here : most;
      for (a = mesh.size() - 1; a >= 0; --a) {  // the next coordinate, the innermost axis fastest
        if (cuts[a] && ++place.at[a] < mesh[a]->size) break;
        place.at[a] = 0;
      }
    }
  }
  return most;
}

/// Bytes of states that a rank keeps for one run's past and new tokens.
constexpr i64 state_bytes(Plan const& plan, i64 rank, RunShape run, StorageBytes const& bytes) {
  RankPlace const place = plan.place_of(rank);
  i64 n = 0;
  for (auto const& s : plan.states) {
    if (s.stage != place.stage) continue;
    Tensor const& t = plan.values[s.value];
    n += local_elements(t.dims, t.places, plan.mesh(s.stage), place.at, run) * plan.executions(s.loop) *
         bytes[t.storage];
  }
  return n;
}
/// Bytes of states that one more token of context takes on a rank that has the token.
constexpr i64 kv_bytes_per_token(Plan const& plan, i64 rank, StorageBytes const& bytes) {
  RankPlace const place = plan.place_of(rank);
  i64 n = 0;
  for (auto const& s : plan.states) {
    Tensor const& t = plan.values[s.value];
    bool grows = false;
    for (auto const& e : t.dims) grows = grows || e.symbol == Symbol::context;
    if (s.stage != place.stage || !grows) continue;
    n += local_width(t.dims, t.places, plan.mesh(s.stage), place.at) * plan.executions(s.loop) * bytes[t.storage];
  }
  return n;
}

constexpr i64 Plan::weight_bytes_per_rank(StorageBytes const& bytes) const {
  return dovetail::weight_bytes_per_rank(*this, bytes);
}

}  // namespace dovetail
