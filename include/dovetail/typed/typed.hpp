// SPDX-License-Identifier: MIT
// Code placed by hand, with its placement in its types: tensors on named axes, ops that compute on this rank's parts,
// and the redistributions that move them. Where the planner would insert a step, this refuses to compile and names it.
// Layers are not built on it; examples/by_hand.cpp shows a tensor-parallel MLP.
#pragma once
#include <dovetail/typed/compute.hpp>
#include <dovetail/typed/exchange.hpp>
