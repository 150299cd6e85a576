// SPDX-License-Identifier: MIT
// Elementwise ops on the grid. A result may lie where an operand does. Each checks that what it made is in range, which
// an operand that is not a number never is.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/host/elementwise.hpp>

namespace dovetail::kernels::reference {

/// x + y of one shape, or x + a parameter over x's trailing dims.
inline void add(KernelCall<Reference> const& call) {
  host::add(call);
  View const& to = call.results[0];
  grid::check_values("add", to.as<double>(), to.rows, to.width);
}

/// x y of one shape.
inline void multiply(KernelCall<Reference> const& call) {
  host::multiply(call, [](double a, double b) { return grid::product(a, b); });
  View const& to = call.results[0];
  grid::check_values("multiply", to.as<double>(), to.rows, to.width);
}

/// x / (1 + exp(-x)).
inline void silu(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &to = call.results[0];
  host::require_same_shape("silu", x, to);
  double const* const a = x.as<double>();
  double* const z = to.as<double>();
  i64 const count = x.rows * x.width;
  for (i64 i = 0; i < count; ++i) z[i] = grid::round(a[i] / (1 + std::exp(-a[i])));
  grid::check_values("silu", z, to.rows, to.width);
}

}  // namespace dovetail::kernels::reference
