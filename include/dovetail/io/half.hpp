// SPDX-License-Identifier: MIT
// Values of the 16-bit floating formats from their bits: f16 (IEEE binary16) and bf16 (the upper half of an f32).
// Every value of both is a float exactly, subnormals, infinities and NaN among them, also where the processor flushes
// subnormals to zero. The reader of weight files converts with these.
#pragma once
#include <bit>
#include <cstdint>

namespace dovetail {

/// The value whose IEEE binary16 bits these are.
constexpr float float_of_f16(std::uint16_t bits) {
  std::uint32_t const sign = std::uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
  if (magnitude < 0x400u) {  // zero and subnormals: multiples of 2^-24, all normal as float
    float const value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  // Exponents move from bias 15 to bias 127; those of infinity and NaN go to the top of the range.
  std::uint32_t const bias = magnitude >= 0x7c00u ? std::uint32_t{255 - 31} << 23 : std::uint32_t{127 - 15} << 23;
  return std::bit_cast<float>(sign | ((magnitude << 13) + bias));
}

/// The value whose bfloat16 bits these are.
constexpr float float_of_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

}  // namespace dovetail
