// SPDX-License-Identifier: MIT
// The device Reference with its kernels: what tests and users include. It computes on the grid of device/reference/
// grid.hpp; with it a split model equals the whole one bit for bit.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/reference/table.hpp>

namespace dovetail {

constexpr std::span<KernelRow<Reference> const> Reference::kernels() { return kernels::reference::table; }

static_assert(Device<Reference>);

}  // namespace dovetail
