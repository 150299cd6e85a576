// SPDX-License-Identifier: MIT
// Everything that a layout needs at plan time: dims, axes, layers, policies, models, and `plan_of` with the questions
// that a static_assert may ask. It includes neither strings nor threads: printing is plan/print.hpp, plan/json.hpp and
// plan/graphviz.hpp, code placed by hand is typed/typed.hpp, running is run/ with a communicator and a device.
#pragma once
#include <dovetail/layer/attention.hpp>
#include <dovetail/layer/compose.hpp>
#include <dovetail/layer/embedding.hpp>
#include <dovetail/layer/linear.hpp>
#include <dovetail/layer/mlp.hpp>
#include <dovetail/layer/norm.hpp>
#include <dovetail/layer/pooling.hpp>
#include <dovetail/models/models.hpp>
#include <dovetail/plan/arena.hpp>
#include <dovetail/plan/coverage.hpp>
#include <dovetail/plan/flops.hpp>
#include <dovetail/plan/identity.hpp>
#include <dovetail/plan/memory.hpp>
#include <dovetail/plan/peers.hpp>
#include <dovetail/plan/refuse.hpp>
#include <dovetail/plan/traffic.hpp>
#include <dovetail/policy/mapped.hpp>
#include <dovetail/policy/pipelined.hpp>
#include <dovetail/version.hpp>
