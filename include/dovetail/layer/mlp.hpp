// SPDX-License-Identifier: MIT
// Gated MLP (Shazeer, 2020): down(activation(gate(x)) * up(x)).
#pragma once
#include <dovetail/layer/linear.hpp>

namespace dovetail {

struct GatedMlpConfig {
  i64 embed_size = 0, ffn_size = 0;
  i64 ffn_unit = 1;  ///< columns that a split never cuts: a quantisation block
  Op const* activation = &silu;
  bool bias = false;
  Name role{"mlp"};
};

/// [.., embed] -> [.., embed]; parameters role.{gate,up,down}.{weight,bias}.
constexpr Value gated_mlp(Builder& b, Value x, GatedMlpConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    Dims const outer = dims(extent<embed>(c.embed_size)), hidden = dims(extent<ffn>(c.ffn_size, 0, c.ffn_unit));
    Value const gate =
        ops::unary(inner, *c.activation, linear(inner, v, LinearConfig{outer, hidden, c.bias, Name{"gate"}}));
    Value const up = linear(inner, v, LinearConfig{outer, hidden, c.bias, Name{"up"}});
    return linear(inner, ops::multiply(inner, gate, up), LinearConfig{hidden, outer, c.bias, Name{"down"}});
  });
}

template <GatedMlpConfig C>
struct GatedMlp {
  static constexpr Value apply(Builder& b, Value x) { return gated_mlp(b, x, C); }
};

}  // namespace dovetail
