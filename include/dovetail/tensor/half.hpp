// SPDX-License-Identifier: MIT
// f16 and bf16 as their 16 bits: to float exactly, from float by rounding to the nearest, ties to even. A NaN stays a
// NaN, what is too large becomes infinite. Weight files are read, and reductions of such elements computed, with these.
#pragma once
#include <bit>
#include <cstdint>

namespace dovetail {

/// The float of a bfloat16's bits, exactly.
constexpr float float_of_bf16(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

/// Bits of the nearest bfloat16; ties go to even.
constexpr std::uint16_t bf16_of(float value) {
  auto const bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// The float of a half's bits (IEEE binary16), exactly.
constexpr float float_of_f16(std::uint16_t half) {
  std::uint32_t const sign = std::uint32_t{half & 0x8000u} << 16, exponent = half >> 10 & 31u, fraction = half & 1023u;
  if (exponent == 0) {  // a multiple of 2^-24, exact in float
    float const magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  std::uint32_t const widened = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

/// Bits of the nearest half (IEEE binary16); ties go to even.
constexpr std::uint16_t f16_of(float value) {
  auto const bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t const sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 2^16 and above
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal; rounding may carry into the exponent, up to infinity
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else {  // adding one half leaves multiples of 2^-24 in the fraction, rounded as the addition rounds
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace dovetail
