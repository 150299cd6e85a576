// SPDX-License-Identifier: MIT
// What is asked of a generation: prompts, sampling, when a text ends, who is told. What no run could serve is refused
// before any rank starts, with prompt, number and limit.
#pragma once
#include <algorithm>
#include <atomic>
#include <dovetail/run/model.hpp>
#include <dovetail/run/sampling.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace dovetail {

/// What to generate: prompts, lengths, sampling, and who is told of each token.
struct GenerateRequest {
  std::vector<std::vector<i32>> prompts{};  ///< token ids, one list a sequence
  i64 max_new_tokens = 32;
  Sampling sampling{};
  std::vector<i32> end_tokens{};  ///< a sequence ends after any of them
  i64 capacity = 0;               ///< tokens a sequence that the caches hold; 0: what the request needs
  bool all_logits = false;        ///< logits of every computed position, whole, in the result
  /// Called for each new token, sequence by sequence, by the one rank that speaks for the sequence; other sequences
  /// may be on other threads. Returning false ends the sequence.
  std::function<bool(i64 sequence, i32 token)> on_token{};
  std::atomic<bool> const* cancel = nullptr;  ///< true ends all sequences at the next token
};

/// Refuses what no run could serve. @throws std::invalid_argument naming prompt, position, number and limit
inline void check_request(GenerateRequest const& request, Model const& model) {
  request.sampling.check();
  auto const refuse = [](std::string const& what) { throw std::invalid_argument(what); };
  if (model.embeds) refuse("the model embeds sequences and generates no tokens: " + model.family + " is an encoder");
  if (request.prompts.empty()) refuse("there is no prompt: at least one is needed");
  if (request.max_new_tokens < 0)
    refuse("max-new-tokens is " + std::to_string(request.max_new_tokens) + "; 0 or more is expected");
  constexpr i64 most = i64{1} << 40;  // far above any context, far below where sums overflow
  if (request.max_new_tokens > most || request.capacity < 0 || request.capacity > most)
    refuse("max-new-tokens is " + std::to_string(request.max_new_tokens) + " and the capacity " +
           std::to_string(request.capacity) + "; 0 to " + std::to_string(most) + " is expected");
  for (std::size_t s = 0; s < request.prompts.size(); ++s) {
    auto const& prompt = request.prompts[s];
    std::string const which = "prompt " + std::to_string(s);
    if (prompt.empty()) refuse(which + " is empty: at least one token is needed");
    for (std::size_t i = 0; i < prompt.size(); ++i)
      if (prompt[i] < 0 || prompt[i] >= model.vocab_size)
        refuse(which + ": token " + std::to_string(prompt[i]) + " at position " + std::to_string(i) +
               " is outside the vocabulary; legal are 0 to " + std::to_string(model.vocab_size - 1));
    i64 const length = static_cast<i64>(prompt.size());
    if (model.context_limit && length > model.context_limit)
      refuse(which + " has " + std::to_string(length) + " tokens, the model's context limit is " +
             std::to_string(model.context_limit));
    if (request.capacity && length > request.capacity)
      refuse(which + " has " + std::to_string(length) + " tokens, the caches were given a capacity of " +
             std::to_string(request.capacity) + ": it does not fit");
  }
}

/// Tokens of a sequence that the caches must hold.
inline i64 needed_capacity(GenerateRequest const& request, Model const& model) {
  i64 longest = 0;
  for (auto const& p : request.prompts) longest = (std::max)(longest, static_cast<i64>(p.size()));
  i64 capacity = request.capacity ? request.capacity : longest + (std::max<i64>)(request.max_new_tokens - 1, 0);
  if (model.context_limit) capacity = (std::min)(capacity, model.context_limit);
  return capacity;
}

}  // namespace dovetail
