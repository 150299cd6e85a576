// SPDX-License-Identifier: MIT
// Rotary positions on the grid: each of the four products of a pair is rounded, their sums are exact.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/host/rotary.hpp>

namespace dovetail::kernels::reference {

/// Turns pairs of each head by position times frequency; see host::rotate_pairs.
inline void rotate(KernelCall<Reference> const& call) {
  host::rotate_pairs(call, [](double a, double b, double cosine, double sine) {
    return host::Pair<double>{grid::product(a, cosine) - grid::product(b, sine),
                              grid::product(b, cosine) + grid::product(a, sine)};
  });
  View const& y = call.results[0];
  grid::check_values("rotate", y.as<double>(), y.rows, y.width);
}

}  // namespace dovetail::kernels::reference
