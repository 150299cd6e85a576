// SPDX-License-Identifier: MIT
// Loops over floats that carry several sums at once, which lets every compiler vectorise them without being allowed to
// reorder what a user wrote, and an exponential without a call. The order of additions depends on the length alone.
#pragma once
#include <bit>
#include <cstring>
#include <dovetail/meta/integer.hpp>

#ifdef __FAST_MATH__
#error "dovetail: kernels round by adding a constant and look for NaN, which -ffast-math removes; compile without it"
#endif

namespace dovetail::kernels::cpu {

/// Four floats; compilers join or split the registers that a target has.
using Lanes = float __attribute__((vector_size(16)));

inline Lanes load(float const* from) {
  Lanes v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline float sum_of(Lanes v) { return (v[0] + v[1]) + (v[2] + v[3]); }

inline float dot(float const* a, float const* b, i64 count) {
  Lanes sums[4]{};
  i64 i = 0;
  for (; i + 16 <= count; i += 16)
    for (i64 k = 0; k < 4; ++k) sums[k] += load(a + i + 4 * k) * load(b + i + 4 * k);
  float rest = 0;
  for (i64 r = i; r < count; ++r) rest += a[r] * b[r];
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

inline float sum(float const* a, i64 count) {
  Lanes sums[2]{};
  i64 i = 0;
  for (; i + 8 <= count; i += 8)
    for (i64 k = 0; k < 2; ++k) sums[k] += load(a + i + 4 * k);
  float rest = 0;
  for (i64 r = i; r < count; ++r) rest += a[r];
  return sum_of(sums[0] + sums[1]) + rest;
}

/// Largest of `start` and count floats; one that is NaN is never larger.
inline float largest(float start, float const* a, i64 count) {
  float found[4] = {start, start, start, start};
  i64 i = 0;
  for (; i + 4 <= count; i += 4)
    for (int k = 0; k < 4; ++k) found[k] = a[i + k] > found[k] ? a[i + k] : found[k];
  for (i64 r = i; r < count; ++r) found[0] = a[r] > found[0] ? a[r] : found[0];
  found[0] = found[1] > found[0] ? found[1] : found[0];
  found[2] = found[3] > found[2] ? found[3] : found[2];
  return found[2] > found[0] ? found[2] : found[0];
}

inline double sum_of_squares(float const* a, i64 count) {
  double sums[8]{};
  i64 i = 0;
  for (; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(a[i + k]);
  double rest = 0;
  for (i64 r = i; r < count; ++r) rest += static_cast<double>(a[r]) * static_cast<double>(a[r]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])) + rest;
}

inline double sum_of_elements(float const* a, i64 count) {
  double sums[8]{};
  i64 i = 0;
  for (; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += static_cast<double>(a[i + k]);
  double rest = 0;
  for (i64 r = i; r < count; ++r) rest += static_cast<double>(a[r]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])) + rest;
}

/// e^x within 2e-7 of its value, relative, for x in [-87, 88]; NaN where x is.
/// x = n ln 2 + r, ln 2 in two parts so that r is exact, and a polynomial for e^r (Cody and Waite; Cephes'
/// coefficients).
inline float exponential(float x) {
  float const shifted = x * 1.44269504f + 0x1.8p23f;  // the last bits of a float this large count units
  float const n = shifted - 0x1.8p23f;
  float const r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  auto const power = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0x1.8p23f) + 127u;
  return (p * r * r + r + 1.0f) * std::bit_cast<float>(power << 23);
}
/// values[i] = e^values[i], those beyond [-87, 88] taken at that end. Clamping has loops of its own: beside the
/// polynomial a compiler makes branches of it, and a loop with branches does not vectorise.
inline void exponentials(float* values, i64 count) {
  for (i64 i = 0; i < count; ++i) values[i] = values[i] < -87.0f ? -87.0f : values[i];
  for (i64 i = 0; i < count; ++i) values[i] = values[i] > 88.0f ? 88.0f : values[i];
  for (i64 i = 0; i < count; ++i) values[i] = exponential(values[i]);
}

}  // namespace dovetail::kernels::cpu
