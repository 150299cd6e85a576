// SPDX-License-Identifier: MIT
// The best token of each row of logits, greedy or sampled, the same for every host device. Sampling takes the largest
// logit / temperature + Gumbel noise, which draws from the softmax without anything but a maximum between ranks. Noise
// is a function of (seed, global token id) in doubles, so a split vocabulary chooses what the whole one does.
#pragma once
#include <cmath>
#include <dovetail/kernels/host/shape.hpp>
#include <dovetail/tensor/dtype.hpp>
#include <limits>

namespace dovetail::kernels::host {

/// The SplitMix64 mixer (Steele, Lea and Flood, 2014).
constexpr std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
/// Gumbel noise of a token: -log(-log(u)), u from 52 bits of a counter hash and never 0 or 1.
inline double gumbel(std::uint64_t seed, i64 token) {
  std::uint64_t const bits = mix(mix(seed) ^ static_cast<std::uint64_t>(token)) >> 12;
  return -std::log(-std::log((static_cast<double>(bits) + 0.5) * 0x1p-52));
}

/// Best of logits whose first has the global id `first`; ties go to the lowest id, none gives (-inf, -1).
template <class Scalar>
Choice best_of(Scalar const* logits, i64 count, i64 first, ChoiceRule const& rule, i64 row) {
  Choice best{-std::numeric_limits<double>::infinity(), -1};
  for (i64 i = 0; i < count; ++i) {
    double value = static_cast<double>(logits[i]);
    if (std::isnan(value))
      throw std::runtime_error("choose: the logit of token " + std::to_string(first + i) + " in row " +
                               std::to_string(row) + " is not a number (NaN)");
    if (rule.has_threshold && value < rule.threshold) continue;
    if (rule.temperature > 0) value = value / rule.temperature + gumbel(rule.seed, first + i);
    if (value > best.value || best.index < 0) best = {value, first + i};
  }
  return best;
}

/// logits: [.., vocab] of which this rank may hold a part; y: one Choice a row.
template <class Device>
void choose(KernelCall<Device> const& call) {
  View const &logits = call.operands[0], &y = call.results[0];
  require_equal("choose", "rows of logits and choices", logits.rows, y.rows);
  i64 const first = logits.ranges[logits.dims->size() - 1].lo;
  auto const choose_row = [&](i64 row, ChoiceRule const& rule) {
    if (!(rule.temperature >= 0))
      throw std::runtime_error("choose: a temperature is 0 or more, not " + std::to_string(rule.temperature));
    auto const* const values = logits.as<typename Device::Scalar>() + row * logits.width;
    y.as<Choice>()[row] = best_of(values, logits.width, first, rule, row);
  };
  if (call.rules.empty()) {
    for (i64 row = 0; row < logits.rows; ++row) choose_row(row, ChoiceRule{});
    return;
  }
  for (Segment const& s : logits.segments) {
    if (s.sequence >= call.rules.size())
      throw std::runtime_error("choose: sequence " + std::to_string(s.sequence) + " has no rule; there are " +
                               std::to_string(call.rules.size()));
    for (i64 j = 0; j < s.range.size(); ++j) choose_row(s.row + j, call.rules[s.sequence]);
  }
}

}  // namespace dovetail::kernels::host
