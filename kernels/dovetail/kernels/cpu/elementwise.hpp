// SPDX-License-Identifier: MIT
// Elementwise ops in floats. A result may lie where an operand does. Reference twin: kernels/reference/elementwise.hpp.
#pragma once
#include <cmath>
#include <dovetail/device/cpu/device.hpp>
#include <dovetail/kernels/cpu/lanes.hpp>
#include <dovetail/kernels/host/elementwise.hpp>
#include <dovetail/kernels/host/embedding.hpp>

namespace dovetail::kernels::cpu {

/// x y of one shape.
inline void multiply(KernelCall<Cpu> const& call) {
  host::multiply(call, [](float a, float b) { return a * b; });
}

/// value(x) for every element.
inline void each_element(char const* kernel, KernelCall<Cpu> const& call, auto const& value) {
  View const &x = call.operands[0], &to = call.results[0];
  host::require_same_shape(kernel, x, to);
  float const* const a = x.as<float>();
  float* const z = to.as<float>();
  i64 const count = x.rows * x.width;
  for (i64 i = 0; i < count; ++i) z[i] = value(a[i]);
}

/// x / (1 + exp(exponent(x))) for every element: what sigmoid gates and tanh come down to.
inline void gated_by_exponential(char const* kernel, KernelCall<Cpu> const& call, auto const& exponent) {
  View const &x = call.operands[0], &to = call.results[0];
  host::require_same_shape(kernel, x, to);
  float const* const a = x.as<float>();
  float* const z = to.as<float>();
  i64 const count = x.rows * x.width;
  constexpr i64 block = 256;
  float powers[block];
  for (i64 start = 0; start < count; start += block) {
    i64 const size = start + block < count ? block : count - start;
    for (i64 i = 0; i < size; ++i) powers[i] = exponent(a[start + i]);
    exponentials(powers, size);
    for (i64 i = 0; i < size; ++i) z[start + i] = a[start + i] / (1.0f + powers[i]);
  }
}

/// x / (1 + exp(-x)).
inline void silu(KernelCall<Cpu> const& call) {
  gated_by_exponential("silu", call, [](float a) { return -a; });
}
/// x Phi(x) (Hendrycks and Gimpel, 2016).
inline void gelu(KernelCall<Cpu> const& call) {
  each_element("gelu", call, [](float a) { return 0.5f * a * (1.0f + std::erf(a * 0.70710678f)); });
}
/// x (1 + tanh(u)) / 2 for u = sqrt(2/pi) (x + 0.044715 x^3), which is x / (1 + exp(-2 u)).
inline void gelu_tanh(KernelCall<Cpu> const& call) {
  gated_by_exponential("gelu_tanh", call, [](float a) { return -1.5957691216f * a * (1.0f + 0.044715f * a * a); });
}
/// factor x.
inline void scale(KernelCall<Cpu> const& call) {
  auto const factor = static_cast<float>(call.number(0));
  each_element("scale", call, [=](float a) { return a * factor; });
}
/// cap tanh(x / cap).
inline void softcap(KernelCall<Cpu> const& call) {
  auto const cap = static_cast<float>(call.number(0));
  each_element("softcap", call, [=](float a) { return cap * std::tanh(a / cap); });
}
/// Mean of a sequence's rows.
inline void mean_rows(KernelCall<Cpu> const& call) {
  host::mean_rows(call, [](float a, float tokens) { return a / tokens; });
}

}  // namespace dovetail::kernels::cpu
