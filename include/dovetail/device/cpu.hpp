// SPDX-License-Identifier: MIT
// The device Cpu with its kernels: what users include, and link with oneDNN. Logits stay within 2e-3 of a model in
// double precision; nothing in a row's results depends on the other rows of a run.
#pragma once
#include <dovetail/device/cpu/device.hpp>
#include <dovetail/kernels/cpu/table.hpp>

namespace dovetail {

constexpr std::span<KernelRow<Cpu> const> Cpu::kernels() { return kernels::cpu::table; }

static_assert(Device<Cpu>);

}  // namespace dovetail
