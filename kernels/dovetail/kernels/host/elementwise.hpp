// SPDX-License-Identifier: MIT
// Elementwise ops of two operands, the same loops for every host device. A result may lie where an operand does. What a
// device does besides (another product, a look at the range) is in its own kernels.
#pragma once
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::host {

/// x + y of one shape, or x + a parameter over x's trailing dims.
template <class Device>
void add(KernelCall<Device> const& call) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &to = call.results[0];
  require_same_shape("add", x, to);
  i64 const count = x.rows * x.width, period = period_of_addend("add", call);
  Scalar const *const a = x.as<Scalar>(), *const b = second_addend(call);
  Scalar* const z = to.as<Scalar>();
  for (i64 start = 0; start < count; start += period)
    for (i64 i = 0; i < period; ++i) z[start + i] = a[start + i] + b[i];
}

/// product(x, y) of one shape.
template <class Device, class Product>
void multiply(KernelCall<Device> const& call, Product const& product) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &y = call.operands[1], &to = call.results[0];
  require_same_shape("multiply", x, to);
  require_same_shape("multiply", y, to);
  Scalar const *const a = x.as<Scalar>(), *const b = y.as<Scalar>();
  Scalar* const z = to.as<Scalar>();
  i64 const count = x.rows * x.width;
  for (i64 i = 0; i < count; ++i) z[i] = product(a[i], b[i]);
}

}  // namespace dovetail::kernels::host
