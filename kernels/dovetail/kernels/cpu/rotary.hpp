// SPDX-License-Identifier: MIT
// Rotary positions in floats; angles are computed in doubles. Reference twin: kernels/reference/rotary.hpp.
#pragma once
#include <dovetail/device/cpu/device.hpp>
#include <dovetail/kernels/host/rotary.hpp>

namespace dovetail::kernels::cpu {

/// Turns pairs of each head by position times frequency; see host::rotate_pairs.
inline void rotate(KernelCall<Cpu> const& call) {
  host::rotate_pairs(call, [](float a, float b, float cosine, float sine) {
    return host::Pair<float>{a * cosine - b * sine, b * cosine + a * sine};
  });
}

}  // namespace dovetail::kernels::cpu
