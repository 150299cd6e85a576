// SPDX-License-Identifier: MIT
// Cosines and sines of rotary positions (Su et al., 2021), with the frequency scaling of Llama 3. Every layer of a run
// asks for the same positions, so a device keeps them: position p lives in slot p mod `slots`, memory is bounded, and
// a run computes an angle once unless its positions span more than `slots`.
#pragma once
#include <cmath>
#include <dovetail/device/host_memory.hpp>
#include <dovetail/plan/op.hpp>
#include <numbers>
#include <vector>

namespace dovetail {

/// Numbers of the op `rotate`, by name.
struct RotaryNumbers {
  double theta = 0;
  i64 rotated = 0;  ///< leading elements of a head that turn
  bool interleaved = false;
  double factor = 1, low = 1, high = 4, original_context = 0;

  /// @throws std::runtime_error for numbers that describe no rotation of a head of `head_size`
  RotaryNumbers(Numbers const& n, i64 head_size)
      : theta(n[0]),
        rotated(n[1] == 0 ? head_size : static_cast<i64>(n[1])),
        interleaved(n[2] != 0),
        factor(n[3]),
        low(n[4]),
        high(n[5]),
        original_context(n[6]) {
    if (rotated < 0 || rotated > head_size || rotated % 2 != 0)
      throw std::runtime_error("rotate: " + std::to_string(rotated) + " elements of a head of " +
                               std::to_string(head_size) + " cannot turn in pairs");
    if (!(theta > 0) || !(factor > 0))
      throw std::runtime_error("rotate: theta and factor are above 0, not " + std::to_string(theta) + " and " +
                               std::to_string(factor));
  }

  /// Angle a position of pair `pair`: wavelengths within the original context stay, long ones are stretched by
  /// `factor`, and those between are blended.
  double frequency(i64 pair) const {
    double const plain = std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(rotated));
    double const turns = original_context * plain / (2 * std::numbers::pi);  // over the original context
    if (factor == 1 || turns >= high) return plain;
    if (turns <= low) return plain / factor;
    double const kept = (turns - low) / (high - low);
    return kept * plain + (1 - kept) * plain / factor;
  }
};

/// Sines and cosines of one rotary embedding, worked out when a position is first asked for.
template <class Scalar>
class RotaryTable {
 public:
  static constexpr i64 slots = 4096;

  RotaryTable(Numbers const& numbers, i64 head_size)
      : numbers_(numbers),
        head_size_(head_size),
        pairs_(RotaryNumbers(numbers, head_size).rotated / 2),
        positions_(slots, -1),
        frequencies_(static_cast<std::size_t>(pairs_)),
        values_(slots * 2 * pairs_ * static_cast<i64>(sizeof(Scalar))) {
    RotaryNumbers const rotary(numbers, head_size);
    for (i64 i = 0; i < pairs_; ++i) frequencies_[static_cast<std::size_t>(i)] = rotary.frequency(i);
  }

  bool is_for(Numbers const& numbers, i64 head_size) const { return head_size == head_size_ && numbers == numbers_; }

  /// The cosines of all pairs at `position`, then their sines. @pre position >= 0
  Scalar const* row(i64 position) {
    i64 const slot = position % slots;
    Scalar* const cosines = values_.as<Scalar>() + slot * 2 * pairs_;
    i64& kept = positions_[static_cast<std::size_t>(slot)];
    if (kept != position) {
      for (i64 i = 0; i < pairs_; ++i) {
        double const angle = static_cast<double>(position) * frequencies_[static_cast<std::size_t>(i)];
        cosines[i] = static_cast<Scalar>(std::cos(angle));
        cosines[pairs_ + i] = static_cast<Scalar>(std::sin(angle));
      }
      kept = position;
    }
    return cosines;
  }

 private:
  Numbers numbers_;
  i64 head_size_, pairs_;
  std::vector<i64> positions_;  ///< by slot; -1: none yet
  std::vector<double> frequencies_;
  HostMemory values_;
};

/// One table for every kind of rotation that a model has.
template <class Scalar>
class RotaryTables {
 public:
  RotaryTable<Scalar>& of(Numbers const& numbers, i64 head_size) {
    for (auto& table : tables_)
      if (table.is_for(numbers, head_size)) return table;
    return tables_.emplace_back(numbers, head_size);
  }

 private:
  std::vector<RotaryTable<Scalar>> tables_;
};

}  // namespace dovetail
