// SPDX-License-Identifier: MIT
// Statistics of norms and their application in floats, the statistics summed in doubles. Reference twin:
// kernels/reference/norm.hpp.
#pragma once
#include <cmath>
#include <dovetail/device/cpu/device.hpp>
#include <dovetail/kernels/cpu/lanes.hpp>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::cpu {

/// y[l] = sum over t of x[l, t]^2, t over the dims that y lacks.
inline void square_sum(KernelCall<Cpu> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  i64 const inner = host::require_sum_shapes("square_sum", x, y);
  for (i64 l = 0; l < y.rows * y.width; ++l)
    y.as<float>()[l] = static_cast<float>(sum_of_squares(x.as<float>() + l * inner, inner));
}

/// y[l] = sum over t of x[l, t], t over the dims that y lacks.
inline void element_sum(KernelCall<Cpu> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  i64 const inner = host::require_sum_shapes("element_sum", x, y);
  for (i64 l = 0; l < y.rows * y.width; ++l)
    y.as<float>()[l] = static_cast<float>(sum_of_elements(x.as<float>() + l * inner, inner));
}

/// y[l, t] = x[l, t] - sum[l] / elements.
inline void center(KernelCall<Cpu> const& call) {
  View const &x = call.operands[0], &sum = call.operands[1], &y = call.results[0];
  i64 const inner = host::require_spread_shapes("center", x, sum, y);
  for (i64 l = 0; inner > 0 && l < sum.rows * sum.width; ++l) {
    auto const mean = static_cast<float>(static_cast<double>(sum.as<float>()[l]) / call.number(0));
    for (i64 i = 0; i < inner; ++i) y.as<float>()[l * inner + i] = x.as<float>()[l * inner + i] - mean;
  }
}

/// y[l, t] = x[l, t] / sqrt(sum[l] / elements + epsilon) * (weight[t] + plus); without a parameter the weight is 1.
inline void rms_scale(KernelCall<Cpu> const& call) {
  View const &x = call.operands[0], &sum = call.operands[1], &y = call.results[0];
  i64 const inner = host::require_scale_shapes("rms_scale", call);
  float const* const weight = host::has_parameter(call, 0) ? host::parameter(call, 0) : nullptr;
  auto const plus = static_cast<float>(call.number(2));
  for (i64 l = 0; inner > 0 && l < sum.rows * sum.width; ++l) {
    double const mean = static_cast<double>(sum.as<float>()[l]) / call.number(0);
    auto const factor = static_cast<float>(1 / std::sqrt(mean + call.number(1)));
    float const* const from = x.as<float>() + l * inner;
    float* const to = y.as<float>() + l * inner;
    if (!weight) {
      for (i64 i = 0; i < inner; ++i) to[i] = from[i] * factor;
    } else {
      for (i64 i = 0; i < inner; ++i) to[i] = from[i] * factor * (weight[i] + plus);
    }
  }
}

}  // namespace dovetail::kernels::cpu
