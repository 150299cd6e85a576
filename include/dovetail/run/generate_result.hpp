// SPDX-License-Identifier: MIT
// What a generation gives: the new tokens of each sequence and why it ended, and what each rank sent, held and did.
// Gathered by run/generate.hpp; every rank writes its own parts.
#pragma once
#include <dovetail/comm/communicator.hpp>
#include <vector>

namespace dovetail {

/// Why a sequence ended.
enum class Ended : std::uint8_t { length, end_token, stopped, context, cancelled };

constexpr char const* name_of(Ended e) {
  constexpr char const* names[] = {"length", "end_token", "stopped", "context", "cancelled"};
  return names[static_cast<int>(e)];
}

/// What was generated after one prompt.
struct SequenceResult {
  std::vector<i32> tokens{};
  Ended ended = Ended::length;
  std::vector<std::vector<double>> logits{};  ///< by position, prompt first, then by token id, where asked for
};

/// What one rank sent, held and did.
struct RankReport {
  TrafficCounters counted{};
  Cost predicted{};
  i64 weight_bytes = 0, packed_bytes = 0, state_bytes = 0, arena_bytes = 0;
};

/// What `generate` gives back: the sequences, and what every rank counted.
struct GenerateResult {
  std::vector<SequenceResult> sequences{};
  std::vector<RankReport> ranks{};
  double prefill_seconds = 0, decode_seconds = 0;
  i64 prompt_tokens = 0, new_tokens = 0;
  i64 decoded_tokens = 0;  ///< new tokens without the first of each sequence, which prefill gives

  double prefill_tokens_per_second() const {
    return prefill_seconds > 0 ? static_cast<double>(prompt_tokens) / prefill_seconds : 0;
  }
  double tokens_per_second() const {
    return decode_seconds > 0 ? static_cast<double>(decoded_tokens) / decode_seconds : 0;
  }
};

}  // namespace dovetail
