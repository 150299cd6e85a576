// SPDX-License-Identifier: MIT
// Elementwise ops in floats. A result may lie where an operand does. Reference twin: kernels/reference/elementwise.hpp.
#pragma once
#include <dovetail/device/cpu/device.hpp>
#include <dovetail/kernels/cpu/lanes.hpp>
#include <dovetail/kernels/host/elementwise.hpp>

namespace dovetail::kernels::cpu {

/// x y of one shape.
inline void multiply(KernelCall<Cpu> const& call) {
  host::multiply(call, [](float a, float b) { return a * b; });
}

/// x / (1 + exp(-x)).
inline void silu(KernelCall<Cpu> const& call) {
  View const &x = call.operands[0], &to = call.results[0];
  host::require_same_shape("silu", x, to);
  float const* const a = x.as<float>();
  float* const z = to.as<float>();
  i64 const count = x.rows * x.width;
  constexpr i64 block = 256;
  float powers[block];
  for (i64 start = 0; start < count; start += block) {
    i64 const size = start + block < count ? block : count - start;
    for (i64 i = 0; i < size; ++i) powers[i] = -a[start + i];
    exponentials(powers, size);
    for (i64 i = 0; i < size; ++i) z[start + i] = a[start + i] / (1.0f + powers[i]);
  }
}

}  // namespace dovetail::kernels::cpu
