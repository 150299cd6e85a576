// SPDX-License-Identifier: MIT
// The ops of the built-in layers and the plain functions that call them. Shapes are in named dims; a kernel of the
// same name stands in every device. A user's op is made the same way: one `Op`, one function.
#pragma once
#include <dovetail/plan/plan_of.hpp>

namespace dovetail {

inline constexpr Op matmul{.name = "matmul", .linear = 0, .flops = 2};
inline constexpr Op lookup{.name = "lookup"};
inline constexpr Op add{.name = "add", .elementwise = true, .additive = true};
inline constexpr Op multiply{.name = "multiply", .elementwise = true};
inline constexpr Op silu{.name = "silu", .elementwise = true};
inline constexpr Op square_sum{.name = "square_sum", .elementwise = true};
inline constexpr Op rms_scale{.name = "rms_scale", .elementwise = true};
inline constexpr Op rotate{.name = "rotate", .elementwise = true};
inline constexpr Op append{.name = "append"};
inline constexpr Op attend{.name = "attend", .flops = 4};
inline constexpr Op take_rows{.name = "take_rows"};
inline constexpr Op choose{.name = "choose", .maximum = true};

namespace ops {

/// y[.., out] = sum over `in` of x[.., in] w[out, in].
constexpr Value matmul(Builder& b, Value x, ParameterId w, Dims const& in, Dims const& out) {
  Dims const kept = without(b.dims(x), in);
  return b.apply(Call(dovetail::matmul).reads(x).holds(w).contracts(in).maps(kept).maps(out).yields(with(kept, out)));
}

/// An op that keeps the dims of its one operand.
constexpr Value unary(Builder& b, Op const& op, Value x) { return b.apply(Call(op).reads(x).yields(b.dims(x))); }
/// An op on two values of the same dims.
constexpr Value binary(Builder& b, Op const& op, Value x, Value y) {
  return b.apply(Call(op).reads(x).reads(y).yields(b.dims(x)));
}
constexpr Value add(Builder& b, Value x, Value y) { return binary(b, dovetail::add, x, y); }
constexpr Value multiply(Builder& b, Value x, Value y) { return binary(b, dovetail::multiply, x, y); }
constexpr Value silu(Builder& b, Value x) { return unary(b, dovetail::silu, x); }

/// x + w for a parameter over x's last dims: a bias.
constexpr Value add_parameter(Builder& b, Value x, ParameterId w) {
  return b.apply(Call(dovetail::add).reads(x).holds(w).yields(b.dims(x)));
}

}  // namespace ops
}  // namespace dovetail
