// SPDX-License-Identifier: MIT
// Statistics of norms and their application on the grid. Squares are large, so their sum has the coarser unit 2^-22 and
// exact range up to 2^31; squares are not negative, so a sum in range had every part of it in range, on every rank.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::reference {

/// y[l] = sum over t of x[l, t]^2, t over the dims that y lacks.
inline void square_sum(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  i64 const inner = host::require_sum_shapes("square_sum", x, y);
  for (i64 l = 0; l < y.rows * y.width; ++l) {
    double const* const row = x.as<double>() + l * inner;
    std::uint64_t bits = 0;
    double sum = 0;
    for (i64 i = 0; i < inner; ++i) {
      bits += grid::square_bits(row[i]);
      sum += row[i] * row[i];
    }
    for (i64 i = 0; i < inner && !(sum < grid::largest_square); ++i)  // else each of them is in range too
      if (!(row[i] * row[i] < grid::largest_square))
        throw RangeError("square_sum", "the square at row " + std::to_string(l) + ", element " + std::to_string(i),
                         row[i] * row[i], grid::largest_square);
    if (!(sum < grid::largest_square_sum))
      throw RangeError("square_sum", "the sum of row " + std::to_string(l), sum, grid::largest_square_sum);
    y.as<double>()[l] = grid::sum_of_squares(bits, inner);
  }
}

/// y[l] = sum over t of x[l, t], t over the dims that y lacks.
inline void element_sum(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  i64 const inner = host::require_sum_shapes("element_sum", x, y);
  for (i64 l = 0; l < y.rows * y.width; ++l) {
    double const* const row = x.as<double>() + l * inner;
    double sum = 0, magnitude = 0;
    for (i64 i = 0; i < inner; ++i) sum += row[i], magnitude += std::abs(row[i]);
    if (!(magnitude <= grid::largest_sum))
      throw RangeError("element_sum", "the sum of magnitudes of row " + std::to_string(l), magnitude,
                       grid::largest_sum);
    y.as<double>()[l] = sum;
  }
  grid::check_values("element_sum", y.as<double>(), y.rows, y.width);
}

/// y[l, t] = x[l, t] - sum[l] / elements.
inline void center(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &sum = call.operands[1], &y = call.results[0];
  i64 const inner = host::require_spread_shapes("center", x, sum, y);
  for (i64 l = 0; inner > 0 && l < sum.rows * sum.width; ++l) {
    double const mean = sum.as<double>()[l] / call.number(0);
    for (i64 i = 0; i < inner; ++i) y.as<double>()[l * inner + i] = grid::round(x.as<double>()[l * inner + i] - mean);
  }
  grid::check_values("center", y.as<double>(), y.rows, y.width);
}

/// y[l, t] = x[l, t] / sqrt(sum[l] / elements + epsilon) * (weight[t] + plus); without a parameter the weight is 1.
inline void rms_scale(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &sum = call.operands[1], &y = call.results[0];
  i64 const inner = host::require_scale_shapes("rms_scale", call);
  double const* const weight = host::has_parameter(call, 0) ? host::parameter(call, 0) : nullptr;
  double const plus = call.number(2);
  for (i64 l = 0; inner > 0 && l < sum.rows * sum.width; ++l) {
    double const squares = sum.as<double>()[l];
    if (!(squares <= grid::largest_square_sum))
      throw RangeError("rms_scale", "the sum of squares of row " + std::to_string(l), squares,
                       grid::largest_square_sum);
    double const factor = 1 / std::sqrt(squares / call.number(0) + call.number(1));
    for (i64 i = 0; i < inner; ++i)
      y.as<double>()[l * inner + i] =
          grid::product(x.as<double>()[l * inner + i] * factor, weight ? weight[i] + plus : 1);
  }
  grid::check_values("rms_scale", y.as<double>(), y.rows, y.width);
}

}  // namespace dovetail::kernels::reference
