// SPDX-License-Identifier: MIT
// Linear map with or without bias. Its weight is stored as checkpoints store it: output dims first, then input dims.
// Splitting an output dim splits columns, splitting an input dim leaves a partial sum: both fall out of the dims.
#pragma once
#include <dovetail/layer/ops.hpp>

namespace dovetail {

/// Dims and options of a linear map.
struct LinearConfig {
  Dims in{}, out{};
  bool bias = false;
  Name role{"linear"};
};

/// y[.., out] = x[.., in] w[out, in] (+ bias[out]); parameters `role.weight` and `role.bias`.
constexpr Value linear(Builder& b, Value x, LinearConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    Value const y = ops::matmul(inner, v, inner.parameter(with(c.out, c.in), "weight"), c.in, c.out);
    return c.bias ? ops::add_parameter(inner, y, inner.parameter(c.out, "bias")) : y;
  });
}

/// `linear` as a type.
template <LinearConfig C>
struct Linear {
  static constexpr Value apply(Builder& b, Value x) { return linear(b, x, C); }
};

}  // namespace dovetail
