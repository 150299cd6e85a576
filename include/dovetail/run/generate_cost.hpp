// SPDX-License-Identifier: MIT
// What a rank receives in a whole generation, predicted: the comparison of plans at set-up; in every pass the plan's
// exchanges, the search for thresholds where sampling has one, and the agreement on tokens. Counted is the same.
#pragma once
#include <dovetail/plan/traffic.hpp>
#include <dovetail/run/sampling.hpp>

namespace dovetail {

/// Of the threshold search of one pass.
template <Communicator C>
Cost threshold_cost(Plan const& plan, i64 rank, Sampling const& sampling, RunShape run) {
  Cost c;
  Tensor const& t = plan.values[plan.result];
  RankPlace const place = plan.place_of(rank);
  if (t.stage != place.stage) return c;
  Mesh const& mesh = plan.mesh(place.stage);
  i64 rows = 0;
  Range const mine = sequences_of(t.dims, t.places, mesh, place.at, run);
  for (i64 s = mine.lo; s < mine.hi; ++s) rows += run[s].rows > 0;
  for (i32 a = 0; a < mesh.size(); ++a)
    if (t.places[a].cut() && t.places[a].dim == dim_of<vocab>)
      c += ThresholdSearch<C>::cost(sampling, rows, mesh[a]->size, place.at[a]);
  return c;
}

/// Of one rank, set-up and all passes.
/// @param passes  shapes of all passes, `sequences` each
/// @param serving the ranks that agree on tokens
template <Communicator C>
Cost generation_cost(Plan const& plan, C const& comm, typename C::Group const& serving, Sampling const& sampling,
                     std::span<SequenceRun const> passes, std::size_t sequences, StorageBytes const& bytes) {
  Cost c = all_gather_cost([](int) { return i64{1}; }, 8, comm.size(), comm.rank());
  for (; !passes.empty(); passes = passes.subspan(sequences)) {
    RunShape const run{passes.data(), static_cast<i32>(sequences)};
    c += traffic(plan, comm.rank(), run, bytes).total;
    c += threshold_cost<C>(plan, comm.rank(), sampling, run);
    c += all_reduce_cost(static_cast<i64>(sequences), 4, serving.size(), serving.rank());
  }
  return c;
}

}  // namespace dovetail
