// SPDX-License-Identifier: MIT
// MLPs: gated (Shazeer, 2020), down(activation(gate(x)) * up(x)), and plain, down(activation(up(x))).
#pragma once
#include <dovetail/layer/linear.hpp>

namespace dovetail {

/// Sizes and options of an MLP, gated or plain.
struct MlpConfig {
  i64 embed_size = 0, ffn_size = 0;
  i64 ffn_unit = 1;  ///< columns that a split never cuts: a quantisation block
  Op const* activation = &silu;
  bool bias = false;
  Name role{"mlp"};

  constexpr Dims outer() const { return dims(extent<embed>(embed_size)); }
  constexpr Dims hidden() const { return dims(extent<ffn>(ffn_size, 0, ffn_unit)); }
};

/// [.., embed] -> [.., embed]; parameters role.{gate,up,down}.{weight,bias}.
constexpr Value gated_mlp(Builder& b, Value x, MlpConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    Value const gate =
        ops::unary(inner, *c.activation, linear(inner, v, LinearConfig{c.outer(), c.hidden(), c.bias, Name{"gate"}}));
    Value const up = linear(inner, v, LinearConfig{c.outer(), c.hidden(), c.bias, Name{"up"}});
    return linear(inner, ops::multiply(inner, gate, up), LinearConfig{c.hidden(), c.outer(), c.bias, Name{"down"}});
  });
}

/// [.., embed] -> [.., embed]; parameters role.{up,down}.{weight,bias}.
constexpr Value mlp(Builder& b, Value x, MlpConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    Value const up = linear(inner, v, LinearConfig{c.outer(), c.hidden(), c.bias, Name{"up"}});
    return linear(inner, ops::unary(inner, *c.activation, up),
                  LinearConfig{c.hidden(), c.outer(), c.bias, Name{"down"}});
  });
}

/// `gated_mlp` as a type.
template <MlpConfig C>
struct GatedMlp {
  static constexpr Value apply(Builder& b, Value x) { return gated_mlp(b, x, C); }
};
/// `mlp` as a type.
template <MlpConfig C>
struct Mlp {
  static constexpr Value apply(Builder& b, Value x) { return mlp(b, x, C); }
};

}  // namespace dovetail
