// SPDX-License-Identifier: MIT
// Numbers that depend on a seed and on nothing else: the same on every compiler and machine, so that a failing case is
// replayed from its seed alone.
#pragma once
#include <cstdint>
#include <dovetail/meta/integer.hpp>
#include <string_view>
#include <vector>

namespace test {

using dovetail::i32;
using dovetail::i64;

/// The SplitMix64 mixer (Steele, Lea and Flood, 2014).
constexpr std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
constexpr std::uint64_t mix(std::string_view text) {
  std::uint64_t h = text.size();
  for (char c : text) h = mix(h ^ static_cast<unsigned char>(c));
  return h;
}
/// In [-1, 1).
constexpr double signed_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-52 - 1; }

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  std::uint64_t next() { return state_ = mix(state_); }
  /// In [lo, hi].
  i32 between(i32 lo, i32 hi) { return lo + static_cast<i32>(next() % static_cast<std::uint64_t>(hi - lo + 1)); }
  bool one_in(i32 n) { return between(1, n) == 1; }
  template <class T>
  T const& of(std::vector<T> const& choices) {
    return choices[next() % choices.size()];
  }

 private:
  std::uint64_t state_;
};

}  // namespace test
