// SPDX-License-Identifier: MIT
// The grid on which Reference computes. Values are multiples of 2^-30 held in doubles; every product and every result
// of a nonlinear function is rounded to one. Sums of such multiples are exact up to 2^23, so they do not depend on
// order or grouping, and a model split in any way gives the same bits as the whole. What would leave the range throws.
#pragma once
#include <bit>
#include <cmath>
#include <dovetail/meta/integer.hpp>
#include <limits>
#include <stdexcept>
#include <string>

#ifdef __FAST_MATH__
#error "dovetail: Reference rounds by adding and subtracting a constant, which -ffast-math removes; compile without it"
#endif

namespace dovetail {

/// A value or a sum that the grid of Reference cannot hold exactly, or that is not a number.
class RangeError : public std::runtime_error {
 public:
  RangeError(char const* kernel, std::string const& what, double magnitude, double limit)
      : std::runtime_error(text(kernel, what, magnitude, limit)), kernel(kernel), magnitude(magnitude), limit(limit) {}

  char const* kernel;
  double magnitude, limit;

 private:
  static std::string text(char const* kernel, std::string const& what, double magnitude, double limit);
};

namespace grid {

inline constexpr double unit = 0x1p-30;
inline constexpr double shift = 0x1.8p22;          ///< v + shift has the unit as its last bit: 1.5 * 2^(52 - 30)
inline constexpr double largest_product = 0x1p21;  ///< beyond it, v + shift has another last bit
inline constexpr double largest_sum = 0x1p23;      ///< of magnitudes: 2^53 units
inline constexpr double largest_value = 0x1p17;    ///< of a result, so that a reduction may add those of 64 ranks
/// Squares are larger and never negative; a sum of them has a grid of its own, with the unit 2^-22.
inline constexpr double square_unit = 0x1p-22, square_shift = 0x1p30;
inline constexpr double largest_square = 0x1p30, largest_square_sum = 0x1p31;

/// Nearest multiple of the unit. @pre |v| <= largest_product, and v is not a product: a compiler may fuse one into the
/// addition, in one loop and not in another; `product` says which it is.
inline double round(double v) { return (v + shift) - shift; }

/// a b + c, rounded once where the target has such an instruction, else twice: the same in every loop of a build.
inline double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
/// Nearest multiple of the unit to a b. @pre |a b| <= largest_product
inline double product(double a, double b) { return multiply_add(a, b, shift) - shift; }

/// A product in whole units, plus a constant: the bits of a b + shift, which has one exponent for all of them. Integers
/// add in any order, so a plain loop over this vectorises.
inline std::uint64_t product_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(multiply_add(a, b, shift));
}
inline std::uint64_t square_bits(double a) { return std::bit_cast<std::uint64_t>(multiply_add(a, a, square_shift)); }

/// The sum of `count` products whose bits add up to `bits`.
inline double sum_of_products(std::uint64_t bits, i64 count) {
  std::uint64_t const units = bits - static_cast<std::uint64_t>(count) * std::bit_cast<std::uint64_t>(shift);
  return static_cast<double>(static_cast<i64>(units)) * unit;
}
inline double sum_of_squares(std::uint64_t bits, i64 count) {
  std::uint64_t const units = bits - static_cast<std::uint64_t>(count) * std::bit_cast<std::uint64_t>(square_shift);
  return static_cast<double>(static_cast<i64>(units)) * square_unit;
}

/// @throws RangeError unless every value is a number of magnitude <= largest_value
inline void check_values(char const* kernel, double const* values, i64 rows, i64 width) {
  i64 outside = 0;
  for (i64 i = 0; i < rows * width; ++i) outside += !(std::abs(values[i]) <= largest_value);
  for (i64 i = 0; outside && i < rows * width; ++i)
    if (!(std::abs(values[i]) <= largest_value))
      throw RangeError(kernel,
                       "the value at row " + std::to_string(i / width) + ", element " + std::to_string(i % width),
                       std::abs(values[i]), largest_value);
}

/// Largest 2-norm of `count` rows that lie `stride` apart: |x| times it bounds the magnitude of every product of x and
/// a row, and of their sum. NaN where a row is not finite.
inline double largest_norm(double const* rows, i64 stride, i64 count, i64 width) {
  double largest = 0;
  bool finite = true;
  for (i64 r = 0; r < count; ++r) {
    double squares = 0;
    for (i64 i = 0; i < width; ++i) squares += rows[r * stride + i] * rows[r * stride + i];
    finite = finite && std::isfinite(squares);
    largest = squares > largest ? squares : largest;
  }
  return finite ? std::sqrt(largest) : std::numeric_limits<double>::quiet_NaN();
}
/// Bound of the sum of magnitudes of rounded products, from the norms of both sides.
inline double sum_bound(double norm, double other_norm, i64 count) {
  return norm * other_norm * (1 + 1e-9) + static_cast<double>(count) * unit;
}

/// @throws RangeError unless the products a[i] b[i * stride] are each in range and their magnitudes add up exactly.
/// `bound` is cheap and never below that sum; products are looked at one by one only where it is too large.
inline void check_sum(char const* kernel, double bound, double const* a, double const* b, i64 stride, i64 count,
                      i64 row, i64 output) {
  if (bound <= largest_product) return;
  auto const where = [&] { return "row " + std::to_string(row) + ", output " + std::to_string(output); };
  double sum = 0;
  for (i64 i = 0; i < count; ++i) {
    double const magnitude = std::abs(a[i] * b[i * stride]);
    if (!(magnitude <= largest_product))
      throw RangeError(kernel, "a product of " + where(), magnitude, largest_product);
    sum += magnitude + unit;
  }
  if (sum > largest_sum) throw RangeError(kernel, "the sum of magnitudes of " + where(), sum, largest_sum);
}

}  // namespace grid

inline std::string RangeError::text(char const* kernel, std::string const& what, double magnitude, double limit) {
  std::string const place = std::string(kernel) + ": " + what;
  if (!std::isfinite(magnitude)) return place + " is not finite: a weight, an input or a step before it is broken";
  return place + " is " + std::to_string(magnitude) + ", beyond " + std::to_string(limit) +
         " where Reference stops being exact (multiples of 2^-30 in 53 bits); scale the weights or use another device";
}

}  // namespace dovetail
