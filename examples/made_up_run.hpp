// SPDX-License-Identifier: MIT
// Tries a model before there are weights: made up from the names of parameters, so that every layout has the same, and
// run on the exact device. The logits come back as bits: layouts are right where they are equal.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <dovetail/comm/threads.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/run/generate.hpp>
#include <string>
#include <vector>

/// A number for each element, from the parameter's name and the element's place in the whole; norms are near 1.
inline void fill_made_up(std::string const& name, dovetail::WeightShape const& shape, std::span<double> room) {
  double const around = name.ends_with("norm.weight") ? 1 : 0;
  dovetail::i64 at[dovetail::max_dims]{};
  for (double& weight : room) {
    double phase = static_cast<double>(name.size());
    for (char c : name) phase = 0.7 * phase + c;
    for (dovetail::i32 k = 0; k < shape.dims.size(); ++k)
      phase = 1.3 * phase + static_cast<double>(k + 2) * static_cast<double>(shape.ranges[k].lo + at[k]);
    weight = around + 0.3 * std::sin(phase);
    for (dovetail::i32 k = shape.dims.size() - 1; k >= 0 && ++at[k] == shape.ranges[k].size(); --k) at[k] = 0;
  }
}

/// Logits of two prompts and of four tokens generated after each, one rank a thread: their bits, by sequence, position
/// and token. @pre the vocabulary has 8 tokens or more  @throws RunError where the plan cannot run
inline std::vector<std::uint64_t> logit_bits(dovetail::Plan const& plan, dovetail::i64 vocab_size) {
  dovetail::Model model;
  model.vocab_size = vocab_size;
  dovetail::GenerateRequest request;
  request.prompts = {{5, 1, 3, 2, 7}, {6, 4}}, request.max_new_tokens = 4, request.all_logits = true;
  dovetail::ThreadWorld world(static_cast<int>(plan.ranks()));
  auto const device = [](int) { return dovetail::Reference(); };
  auto const result = dovetail::generate(world, plan, model, request, device, &fill_made_up);
  std::vector<std::uint64_t> bits;
  for (auto const& sequence : result.sequences)
    for (auto const& position : sequence.logits)
      for (double logit : position) bits.push_back(std::bit_cast<std::uint64_t>(logit));
  return bits;
}
