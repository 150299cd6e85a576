// SPDX-License-Identifier: MIT
// Elementwise ops on the grid. A result may lie where an operand does. Each checks that what it made is in range, which
// an operand that is not a number never is.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/host/elementwise.hpp>
#include <dovetail/kernels/host/embedding.hpp>

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

/// value(x) for every element. @param value  yields a multiple of the grid's unit
inline void each_element(char const* kernel, KernelCall<Reference> const& call, auto const& value) {
  View const &x = call.operands[0], &to = call.results[0];
  host::require_same_shape(kernel, x, to);
  double const* const a = x.as<double>();
  double* const z = to.as<double>();
  i64 const count = x.rows * x.width;
  for (i64 i = 0; i < count; ++i) z[i] = value(a[i]);
  grid::check_values(kernel, z, to.rows, to.width);
}

/// x / (1 + exp(-x)).
inline void silu(KernelCall<Reference> const& call) {
  each_element("silu", call, [](double a) { return grid::round(a / (1 + std::exp(-a))); });
}
/// x Phi(x) (Hendrycks and Gimpel, 2016).
inline void gelu(KernelCall<Reference> const& call) {
  each_element("gelu", call, [](double a) { return grid::product(a, 0.5 * (1 + std::erf(a * std::sqrt(0.5)))); });
}
/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, the same authors' approximation.
inline void gelu_tanh(KernelCall<Reference> const& call) {
  constexpr double root = 0.79788456080286535588;  // sqrt(2 / pi)
  each_element("gelu_tanh", call, [](double a) {
    double const inside = a * root * grid::multiply_add(0.044715 * a, a, 1);
    return grid::product(a, 0.5 * (1 + std::tanh(inside)));
  });
}
/// factor x.
inline void scale(KernelCall<Reference> const& call) {
  each_element("scale", call, [&](double a) { return grid::product(a, call.number(0)); });
}
/// cap tanh(x / cap).
inline void softcap(KernelCall<Reference> const& call) {
  double const cap = call.number(0);
  each_element("softcap", call, [&](double a) { return grid::product(cap, std::tanh(a / cap)); });
}
/// x + a row of a table.
inline void add_row(KernelCall<Reference> const& call) {
  host::add_row(call);
  View const& to = call.results[0];
  grid::check_values("add_row", to.as<double>(), to.rows, to.width);
}
/// Mean of a sequence's rows; each is divided before they add up, so that parts add up to the same bits.
inline void mean_rows(KernelCall<Reference> const& call) {
  host::mean_rows(call, [](double a, double tokens) { return grid::round(a / tokens); });
  View const& to = call.results[0];
  grid::check_values("mean_rows", to.as<double>(), to.rows, to.width);
}

}  // namespace dovetail::kernels::reference
