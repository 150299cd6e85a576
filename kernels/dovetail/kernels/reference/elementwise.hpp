// SPDX-License-Identifier: MIT
// Elementwise ops on the grid. A result may lie where an operand does. Each checks that what it made is in range, which
// an operand that is not a number never is.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::reference {

/// x + y of one shape, or x + a parameter over x's trailing dims.
inline void add(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &to = call.results[0];
  host::require_same_shape("add", x, to);
  i64 const count = x.rows * x.width, period = host::period_of_addend("add", call);
  double const *const a = x.as<double>(), *const b = host::second_addend(call);
  double* const z = to.as<double>();
  for (i64 start = 0; start < count; start += period)
    for (i64 i = 0; i < period; ++i) z[start + i] = a[start + i] + b[i];
  grid::check_values("add", z, to.rows, to.width);
}

/// x y of one shape.
inline void multiply(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &y = call.operands[1], &to = call.results[0];
  host::require_same_shape("multiply", x, to);
  host::require_same_shape("multiply", y, to);
  double const *const a = x.as<double>(), *const b = y.as<double>();
  double* const z = to.as<double>();
  i64 const count = x.rows * x.width;
  for (i64 i = 0; i < count; ++i) z[i] = grid::product(a[i], b[i]);
  grid::check_values("multiply", z, to.rows, to.width);
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
