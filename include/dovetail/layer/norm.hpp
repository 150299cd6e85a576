// SPDX-License-Identifier: MIT
// RMSNorm (Zhang and Sennrich, 2019). A norm is two ops: a statistic, which contracts the dims it is over, and its
// application, which maps them; so a norm over a split dim costs one small all-reduce of the statistic.
#pragma once
#include <dovetail/layer/ops.hpp>

namespace dovetail {

struct RmsNormConfig {
  Dims over{};  ///< trailing dims of x that the statistic is taken over
  double epsilon = 1e-5;
  Name role{"norm"};
};

/// y = x / sqrt(mean(x^2 over `over`) + epsilon) * weight[over]; parameter `role.weight`.
constexpr Value rms_norm(Builder& b, Value x, RmsNormConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    Dims const kept = without(inner.dims(v), c.over);
    i64 elements = 1;
    for (auto const& e : c.over) elements *= e.size;
    Value const sum = inner.apply(Call(square_sum).reads(v).contracts(c.over).yields(kept));
    return inner.apply(Call(rms_scale)
                           .reads(v)
                           .reads(sum)
                           .holds(inner.parameter(c.over, "weight"))
                           .with(Numbers{{static_cast<double>(elements), c.epsilon}})
                           .yields(inner.dims(v)));
  });
}

template <RmsNormConfig C>
struct RmsNorm {
  static constexpr Value apply(Builder& b, Value x) { return rms_norm(b, x, C); }
};

}  // namespace dovetail
