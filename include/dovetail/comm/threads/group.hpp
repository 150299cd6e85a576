// SPDX-License-Identifier: MIT
// The memory that the members of a group share, all of it made when the group is: per member two cells, used in turn,
// in which it posts its calls, each with room for a small payload. A member may overwrite a cell once every peer has
// finished the call that stood there; with two cells a peer's next post says so, and a small call needs one wait.
#pragma once
#include <algorithm>
#include <cstddef>
#include <dovetail/comm/threads/call.hpp>
#include <dovetail/comm/threads/failure.hpp>
#include <map>
#include <memory>
#include <vector>

namespace dovetail::threads {

/// Counts the calls of a group: call t of every member is the same call.
using Ticket = std::uint64_t;

struct alignas(64) Cell {
  std::atomic<Ticket> posted{0};      ///< t + 1 once call t stands here
  Ticket finished = 0;                ///< calls that its member had finished when it posted this one
  std::byte const* source = nullptr;  ///< what peers read: `small`, or the caller's buffer
  bool exposed = false;               ///< the caller's buffer: its member stays until all have read
  Call call;
  i64 counts[2][max_ranks];  ///< counts, or send counts and receive counts
  alignas(64) std::byte small[one_shot_bytes];
};

struct alignas(64) Member {
  std::atomic<Ticket> finished{0};  ///< calls of whose sources this member needs nothing more
  std::atomic<Ticket> reduced{0};   ///< t + 1 once its block of the two-shot call t is reduced
  Cell cells[2];

  // For the member's own thread.
  alignas(64) Ticket issued = 0;
  Ticket completed = 0;
  Ticket known[max_ranks] = {};  ///< lower bound of each peer's `finished`
  void const* sources[max_ranks] = {};

  Cell& cell(Ticket t) { return cells[t % 2]; }
};

class GroupRegistry;

struct GroupState {
  GroupState(GroupRegistry const& registry, std::vector<int> world_ranks)
      : world(&registry), ranks(std::move(world_ranks)), members(std::make_unique<Member[]>(ranks.size())) {}
  int size() const { return static_cast<int>(ranks.size()); }

  GroupRegistry const* const world;  ///< which world's group it is
  std::vector<int> const ranks;
  std::unique_ptr<Member[]> const members;
};

/// The groups of one world: one state a list of ranks, whoever asks first makes it.
class GroupRegistry {
 public:
  GroupState& find(std::vector<int> const& ranks) {
    std::lock_guard const lock(mutex_);
    auto& state = groups_[ranks];
    if (!state) state = std::make_unique<GroupState>(*this, ranks);
    return *state;
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<int>, std::unique_ptr<GroupState>> groups_;
};

/// A rank's handle of a group; copies are the same group, and so are two handles made of one list.
class Group {
 public:
  Group() = default;
  Group(GroupState& state, int index) : state_(&state), index_(index) {}
  int size() const { return state_ ? state_->size() : 0; }
  int rank() const { return index_; }
  int world_rank(int index) const { return state_->ranks[static_cast<std::size_t>(index)]; }
  GroupState* state() const { return state_; }

 private:
  GroupState* state_ = nullptr;
  int index_ = 0;
};

}  // namespace dovetail::threads
