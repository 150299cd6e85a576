// SPDX-License-Identifier: MIT
// Matrix product on the grid: products are added as integers, in whole units, so plain loops over the inputs vectorise
// and any split of the inputs adds up to the same bits. Its range is checked row by row by |x| times the largest row
// of the weights, and product by product only where that bound is too large.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::reference {

/// A block of results; rows of x and w are `inputs` apart, those of y `outputs`.
template <int Rows, int Columns>
inline void matmul_block(double const* x, double const* w, double* y, i64 inputs, i64 outputs) {
  std::uint64_t sums[Rows][Columns]{};
  for (i64 i = 0; i < inputs; ++i)
    for (int r = 0; r < Rows; ++r)
      for (int c = 0; c < Columns; ++c) sums[r][c] += grid::product_bits(x[r * inputs + i], w[c * inputs + i]);
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) y[r * outputs + c] = grid::sum_of_products(sums[r][c], inputs);
}

template <int Columns>
inline void matmul_columns(double const* x, double const* w, double* y, i64 rows, i64 inputs, i64 outputs) {
  i64 r = 0;
  for (; r + 4 <= rows; r += 4) matmul_block<4, Columns>(x + r * inputs, w, y + r * outputs, inputs, outputs);
  for (; r < rows; ++r) matmul_block<1, Columns>(x + r * inputs, w, y + r * outputs, inputs, outputs);
}

/// y[r, o] = sum over i of x[r, i] w[o, i].
/// x: (rows, inputs); w: (outputs, inputs) row-major; y: (rows, outputs). @throws RangeError
inline void matmul(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  i64 const rows = x.rows, inputs = x.width, outputs = y.width;
  host::require_matmul_shapes(call);
  double const *const from = x.as<double>(), *const w = host::parameter(call, 0);
  double const reach = call.weights[0] ? call.weights[0]->reach() : grid::largest_norm(w, inputs, outputs, inputs);
  for (i64 r = 0; r < rows; ++r) {
    double const bound = grid::sum_bound(grid::largest_norm(from + r * inputs, inputs, 1, inputs), reach, inputs);
    for (i64 o = 0; o < outputs && !(bound <= grid::largest_product); ++o)
      grid::check_sum("matmul", bound, from + r * inputs, w + o * inputs, 1, inputs, r, o);
  }
  i64 o = 0;
  for (; o + 2 <= outputs; o += 2) matmul_columns<2>(from, w + o * inputs, y.as<double>() + o, rows, inputs, outputs);
  for (; o < outputs; ++o) matmul_columns<1>(from, w + o * inputs, y.as<double>() + o, rows, inputs, outputs);
  grid::check_values("matmul", y.as<double>(), rows, outputs);
}

}  // namespace dovetail::kernels::reference
