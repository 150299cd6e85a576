// SPDX-License-Identifier: MIT
// Matrix product by oneDNN, on packed weights or on one that a step has moved. Its reference twin is
// kernels/reference/matmul.hpp.
#pragma once
#include <algorithm>
#include <dovetail/device/cpu/device.hpp>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::cpu {

/// y[r, o] = sum over i of x[r, i] w[o, i]; without inputs 0.
/// x: (rows, inputs); w: (outputs, inputs); y: (rows, outputs).
inline void matmul(KernelCall<Cpu> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  host::require_matmul_shapes(call);
  if (!x.width) std::fill_n(y.as<float>(), y.rows * y.width, 0.0f);
  else if (y.rows && y.width && call.weights[0] && call.weights[0]->packed())
    call.device->products().run(x.as<float>(), call.weights[0]->packed(), true, y.as<float>(), y.rows, y.width,
                                x.width);
  else if (y.rows && y.width)
    call.device->products().run(x.as<float>(), host::parameter(call, 0), false, y.as<float>(), y.rows, y.width,
                                x.width);
}

}  // namespace dovetail::kernels::cpu
