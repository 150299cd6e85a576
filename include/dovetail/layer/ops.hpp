// SPDX-License-Identifier: MIT
// Plain functions that call the built-in ops of plan/builtin_ops.hpp. Shapes are in named dims; a kernel of the same
// name stands in every device. A user's op is made the same way: one `Op`, one function.
#pragma once
#include <dovetail/plan/builtin_ops.hpp>
#include <dovetail/plan/plan_of.hpp>

namespace dovetail {

/// Functions that use one op: what layers are made of.
namespace ops {

/// y[.., out] = sum over `in` of x[.., in] w[out, in].
constexpr Value matmul(Builder& b, Value x, ParameterId w, Dims const& in, Dims const& out) {
  Dims const kept = without(b.dims(x), in);
  return b.apply(Call(dovetail::matmul).reads(x).holds(w).contracts(in).maps_rest().yields(with(kept, out)));
}

/// An op that keeps the dims of its one operand.
constexpr Value unary(Builder& b, Op const& op, Value x) { return b.apply(Call(op).reads(x).yields(b.dims(x))); }
/// An op on two values of the same dims.
constexpr Value binary(Builder& b, Op const& op, Value x, Value y) {
  return b.apply(Call(op).reads(x).reads(y).yields(b.dims(x)));
}
/// x + y.
constexpr Value add(Builder& b, Value x, Value y) { return binary(b, dovetail::add, x, y); }
/// x y, element by element.
constexpr Value multiply(Builder& b, Value x, Value y) { return binary(b, dovetail::multiply, x, y); }
/// x / (1 + exp(-x)).
constexpr Value silu(Builder& b, Value x) { return unary(b, dovetail::silu, x); }
/// factor x.
constexpr Value scale(Builder& b, Value x, double factor) {
  return b.apply(Call(dovetail::scale).reads(x).with(Numbers{{factor}}).yields(b.dims(x)));
}
/// cap tanh(x / cap).
constexpr Value softcap(Builder& b, Value x, double cap) {
  return b.apply(Call(dovetail::softcap).reads(x).with(Numbers{{cap}}).yields(b.dims(x)));
}

/// x + w for a parameter over x's last dims: a bias.
constexpr Value add_parameter(Builder& b, Value x, ParameterId w) {
  return b.apply(Call(dovetail::add).reads(x).holds(w).yields(b.dims(x)));
}

}  // namespace ops
}  // namespace dovetail
