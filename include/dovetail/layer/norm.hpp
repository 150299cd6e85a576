// SPDX-License-Identifier: MIT
// RMSNorm (Zhang and Sennrich, 2019) and LayerNorm (Ba et al., 2016). A norm is a statistic, which contracts the dims
// it is over, and its application, which maps them; so a norm over a split dim costs one small all-reduce of each
// statistic. LayerNorm is the RMS norm of what is left when the mean is taken away, plus a bias.
#pragma once
#include <dovetail/layer/ops.hpp>

namespace dovetail {

/// Dims and options of an RMSNorm.
struct RmsNormConfig {
  Dims over{};  ///< trailing dims of x that the statistic is taken over
  double epsilon = 1e-5;
  Name role{"norm"};
  bool weight_plus_one = false;  ///< scales by 1 + weight (Gemma)
};

/// Dims and options of a LayerNorm.
struct LayerNormConfig {
  Dims over{};
  double epsilon = 1e-5;
  Name role{"norm"};
};

namespace ops {

/// Product of fixed extents.
constexpr i64 elements_of(Dims const& over) {
  i64 n = 1;
  for (auto const& e : over) n *= e.size;
  return n;
}

/// x - mean(x over `over`).
constexpr Value center(Builder& b, Value x, Dims const& over) {
  Value const sum = b.apply(Call(element_sum).reads(x).contracts(over).yields(without(b.dims(x), over)));
  Numbers const n{{static_cast<double>(elements_of(over))}};
  return b.apply(Call(dovetail::center).reads(x).reads(sum).with(n).yields(b.dims(x)));
}

/// x / sqrt(mean(x^2 over `over`) + epsilon) * (weight + plus). @param weight of dims `over`
constexpr Value normalize(Builder& b, Value x, ParameterId weight, Dims const& over, double epsilon, double plus) {
  Value const sum = b.apply(Call(square_sum).reads(x).contracts(over).yields(without(b.dims(x), over)));
  Numbers const n{{static_cast<double>(elements_of(over)), epsilon, plus}};
  return b.apply(Call(rms_scale).reads(x).reads(sum).holds(weight).with(n).yields(b.dims(x)));
}

}  // namespace ops

/// y = x / sqrt(mean(x^2 over `over`) + epsilon) * weight[over]; parameter `role.weight`.
constexpr Value rms_norm(Builder& b, Value x, RmsNormConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    ParameterId const weight = inner.parameter(c.over, "weight");
    return ops::normalize(inner, v, weight, c.over, c.epsilon, c.weight_plus_one ? 1 : 0);
  });
}

/// y = (x - mean) / sqrt(variance + epsilon) * weight[over] + bias[over]; parameters `role.weight` and `role.bias`.
constexpr Value layer_norm(Builder& b, Value x, LayerNormConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    Value const centered = ops::center(inner, v, c.over);
    ParameterId const weight = inner.parameter(c.over, "weight");
    Value const scaled = ops::normalize(inner, centered, weight, c.over, c.epsilon, 0);
    return ops::add_parameter(inner, scaled, inner.parameter(c.over, "bias"));
  });
}

/// `rms_norm` as a type.
template <RmsNormConfig C>
struct RmsNorm {
  static constexpr Value apply(Builder& b, Value x) { return rms_norm(b, x, C); }
};
/// `layer_norm` as a type.
template <LayerNormConfig C>
struct LayerNorm {
  static constexpr Value apply(Builder& b, Value x) { return layer_norm(b, x, C); }
};

}  // namespace dovetail
