// SPDX-License-Identifier: MIT
// What is asked of a world once, before a plan runs on it: that the plan may run, has as many ranks, and is the same on
// all of them. Ranks with other plans would exchange other sizes.
#pragma once
#include <bit>
#include <dovetail/comm/communicator.hpp>
#include <dovetail/meta/counted.hpp>
#include <dovetail/plan/identity.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace dovetail {

/// @throws std::invalid_argument where the plan was refused, or is for another number of ranks
inline void check_world(Plan const& plan, int ranks) {
  if (!plan.ok()) throw std::invalid_argument("the plan was refused (" + std::string(id_of(plan.verdict.rule)) + ")");
  if (plan.ranks() != ranks)
    throw std::invalid_argument("the plan is for " + counted(plan.ranks(), "rank") + ", but the world has " +
                                std::to_string(ranks) + ": start it with " + std::to_string(plan.ranks()));
}

/// Every rank of a world, as a group.
template <Communicator C>
typename C::Group world_group(C& comm) {
  std::vector<int> all;
  for (int r = 0; r < comm.size(); ++r) all.push_back(r);
  return comm.group(all);
}

/// Called by all ranks before any other exchange. @throws std::runtime_error where a rank has another plan
template <Communicator C>
void compare_plans(Plan const& plan, C& comm) {
  auto const ranks = static_cast<std::size_t>(comm.size());
  i64 const mine = std::bit_cast<i64>(plan_hash(plan));
  std::vector<i64> hashes(ranks), counts(ranks, 1);
  comm.all_gather(world_group(comm), &mine, hashes.data(), counts, Element::i64).wait();
  for (std::size_t r = 0; r < ranks; ++r)
    if (hashes[r] != mine)
      throw std::runtime_error("rank " + std::to_string(r) + " runs another plan than rank " +
                               std::to_string(comm.rank()) + ": start every rank with the same model and layout");
}

}  // namespace dovetail
