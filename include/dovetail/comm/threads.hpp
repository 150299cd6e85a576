// SPDX-License-Identifier: MIT
// Ranks as threads of one process: `ThreadWorld world(4); world.run([](ThreadCommunicator& c) { ... });`. Any number of
// ranks up to 64 on any number of cores. The parts are in comm/threads/, in the order: how to wait, how to fail, what a
// group shares, how an operation moves, the communicator, the world.
#pragma once
#include <dovetail/comm/threads/world.hpp>

namespace dovetail {

static_assert(WithReduceScatter<ThreadCommunicator> && WithAllGather<ThreadCommunicator> &&
              WithAllToAll<ThreadCommunicator>);

}  // namespace dovetail
