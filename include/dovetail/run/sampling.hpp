// SPDX-License-Identifier: MIT
// Sampling on logits that stay split over the vocabulary. Noise is a function of (seed, sequence, position, token id),
// so the choice is an arg-max whatever the layout; top-k and top-p find the smallest logit that stays in by a radix
// search over histograms that the ranks add up, in integers, so every rank and every layout finds the same one.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <dovetail/comm/communicator.hpp>
#include <dovetail/device/kernel.hpp>
#include <limits>
#include <stdexcept>
#include <vector>

namespace dovetail {

/// How the next token is drawn; greedy where the temperature is 0.
struct Sampling {
  double temperature = 0;  ///< 0: greedy
  i64 top_k = 0;           ///< 0: all tokens
  double top_p = 1;        ///< 1: all tokens
  std::uint64_t seed = 0;

  bool has_threshold() const { return temperature > 0 && (top_k > 0 || top_p < 1); }
  /// @throws std::invalid_argument naming the setting and its legal range
  void check() const {
    if (!(temperature >= 0) || !std::isfinite(temperature))
      throw std::invalid_argument("temperature is " + std::to_string(temperature) +
                                  "; 0 (greedy) or a positive number");
    if (top_k < 0) throw std::invalid_argument("top-k is " + std::to_string(top_k) + "; 0 (all tokens) or more");
    if (!(top_p > 0) || !(top_p <= 1))
      throw std::invalid_argument("top-p is " + std::to_string(top_p) + "; above 0, at most 1");
  }
};

/// Seed of the noise for one position of one sequence (SplitMix64 steps; Steele, Lea and Flood, 2014).
inline std::uint64_t position_seed(std::uint64_t seed, i64 sequence, i64 position) {
  std::uint64_t x = seed;
  for (std::uint64_t word : {static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(position)}) {
    x += word + 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
  }
  return x;
}

/// Finds for every sequence the smallest logit that top-k and top-p leave in; ties with it stay in.
template <Communicator C>
class ThresholdSearch {
 public:
  static constexpr int digits = 8, bins = 256;

  explicit ThresholdSearch(i64 sequences)
      : histograms_(static_cast<std::size_t>(sequences) * bins),
        rows_(static_cast<std::size_t>(sequences)),
        largest_(static_cast<std::size_t>(sequences)) {}

  /// @param groups  ranks along every axis that splits the vocabulary
  /// @param logits  (rows, vocab part); the last row of every sequence counts
  /// @param rules   by sequence; threshold is written
  template <class Scalar>
  void find(C& comm, std::span<typename C::Group const> groups, View const& logits, Sampling const& sampling,
            std::span<ChoiceRule> rules) {
    std::size_t n = 0;
    for (Segment const& s : logits.segments)
      if (s.range.size()) rows_[n++] = Row{s.sequence, s.row + s.range.size() - 1, 0, 0};
    for (std::size_t i = 0; i < n; ++i) {
      largest_[i] = -std::numeric_limits<double>::infinity();
      Scalar const* row = logits.as<Scalar>() + rows_[i].row * logits.width;
      for (i64 v = 0; v < logits.width; ++v) largest_[i] = (std::max)(largest_[i], static_cast<double>(row[v]));
    }
    for (auto const& g : groups)
      comm.all_reduce(g, largest_.data(), static_cast<i64>(n), Element::f64, Reduction::maximum).wait();
    if (sampling.top_k > 0)
      search<Scalar>(
          comm, groups, logits, n, [&](i64) { return sampling.top_k; }, [](double, std::size_t) { return i64{1}; });
    if (sampling.top_p < 1) {
      for (std::size_t i = 0; i < n; ++i) rows_[i].floor = rows_[i].key, rows_[i].key = 0;
      search<Scalar>(
          comm, groups, logits, n,
          [&](i64 total) {
            return (std::max<i64>)(1, static_cast<i64>(std::ceil(sampling.top_p * static_cast<double>(total))));
          },
          [&](double logit, std::size_t i) {
            return static_cast<i64>(std::ldexp(std::exp((logit - largest_[i]) / sampling.temperature), 40));
          });
    }
    for (std::size_t i = 0; i < n; ++i) {
      ChoiceRule& rule = rules[static_cast<std::size_t>(rows_[i].sequence)];
      rule.threshold = logit_of(rows_[i].key);
      rule.has_threshold = true;
    }
  }

  /// What a rank receives for it: `rows` sequences of this rank have new logits.
  static Cost cost(Sampling const& sampling, i64 rows, int ranks, int rank) {
    Cost c;
    if (!sampling.has_threshold()) return c;
    int const rounds = digits * ((sampling.top_k > 0) + (sampling.top_p < 1));
    c += all_reduce_cost(rows, 8, ranks, rank);
    for (int r = 0; r < rounds; ++r) c += all_reduce_cost(rows * bins, 8, ranks, rank);
    return c;
  }

 private:
  struct Row {
    i64 sequence = 0, row = 0;
    std::uint64_t key = 0, floor = 0;  // found so far; what the search before left in
  };
  std::vector<i64> histograms_;
  std::vector<Row> rows_;
  std::vector<double> largest_;

  /// Keys are ordered as the numbers are.
  static std::uint64_t key_of(double x) {
    std::uint64_t const bits = std::bit_cast<std::uint64_t>(x + 0.0);
    return bits >> 63 ? ~bits : bits | (std::uint64_t{1} << 63);
  }
  static double logit_of(std::uint64_t key) {
    return std::bit_cast<double>(key >> 63 ? key & ~(std::uint64_t{1} << 63) : ~key);
  }

  /// Largest key such that the weights of all logits at or above it reach the goal; digit by digit, largest first.
  template <class Scalar>
  void search(C& comm, std::span<typename C::Group const> groups, View const& logits, std::size_t n,
              auto const& goal_of, auto const& weight_of) {
    std::vector<i64>& goal = goals_;
    goal.assign(n, 0);
    for (int digit = 0; digit < digits; ++digit) {
      int const shift = 8 * (digits - 1 - digit);
      std::fill_n(histograms_.begin(), n * bins, 0);
      for (std::size_t i = 0; i < n; ++i) {
        Scalar const* row = logits.as<Scalar>() + rows_[i].row * logits.width;
        i64* const histogram = histograms_.data() + i * bins;
        for (i64 v = 0; v < logits.width; ++v) {
          std::uint64_t const key = key_of(static_cast<double>(row[v]));
          bool const candidate =
              key >= rows_[i].floor && (digit == 0 || key >> (shift + 8) == rows_[i].key >> (shift + 8));
          if (candidate) histogram[key >> shift & 255] += weight_of(static_cast<double>(row[v]), i);
        }
      }
      for (auto const& g : groups)
        comm.all_reduce(g, histograms_.data(), static_cast<i64>(n * bins), Element::i64, Reduction::sum).wait();
      for (std::size_t i = 0; i < n; ++i) {
        i64 const* const histogram = histograms_.data() + i * bins;
        if (digit == 0) {
          i64 total = 0;
          for (int b = 0; b < bins; ++b) total += histogram[b];
          goal[i] = (std::min)(goal_of(total), (std::max<i64>)(total, 1));
        }
        int b = bins - 1;
        for (; b > 0 && histogram[b] < goal[i]; --b) goal[i] -= histogram[b];
        rows_[i].key |= static_cast<std::uint64_t>(b) << shift;
      }
    }
  }
  std::vector<i64> goals_{};
};

}  // namespace dovetail
