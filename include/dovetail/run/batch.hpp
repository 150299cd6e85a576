// SPDX-License-Identifier: MIT
// What an executor is made for and what a pass is asked: the size of the batch, its new tokens, and the checks of both.
// Checks need no other rank, and what they refuse has computed nothing. They know how far the KV cache of each sequence
// is filled, so that no pass attends to rows that none has written.
#pragma once
#include <dovetail/device/kernel.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace dovetail {

/// What an executor makes room for.
struct ExecutorOptions {
  i64 sequences = 1;  ///< sequences of the batch, for the life of the executor; one that is done has no tokens
  i64 capacity = 0;   ///< tokens of a sequence that the caches hold
};

/// New tokens of each sequence of the batch. A rank looks only at those of the sequences that it holds.
using RunTokens = std::span<std::span<i32 const> const>;

/// What a batch may ask of an executor, and how far each sequence's cache is filled.
class BatchLimits {
 public:
  /// @param caches does the plan have any: without them nothing is read of the tokens before
  /// @throws std::invalid_argument where there is no sequence or no capacity
  BatchLimits(ExecutorOptions options, bool caches) : options_(options), caches_(caches) {
    if (options.sequences < 1 || options.capacity < 1)
      throw std::invalid_argument("an executor needs at least one sequence and a capacity of at least one token, not " +
                                  std::to_string(options.sequences) + " and " + std::to_string(options.capacity));
    filled_.assign(static_cast<std::size_t>(options.sequences), 0);
  }

  /// @throws std::invalid_argument, std::length_error naming the sequence, its numbers and what would work
  void check(RunShape run, RunTokens tokens) const {
    if (run.size() != options_.sequences)
      throw std::invalid_argument("the run has " + std::to_string(run.size()) +
                                  " sequences, the executor was made for " + std::to_string(options_.sequences));
    if (static_cast<i64>(tokens.size()) != run.size())
      throw std::invalid_argument("tokens of " + std::to_string(tokens.size()) + " sequences were given for a run of " +
                                  std::to_string(run.size()));
    for (i32 s = 0; s < run.size(); ++s) check(s, run[s]);
  }
  /// A pass is about to write: what stood in the caches from `past` on is no longer there, even if the pass fails.
  void begin(RunShape run) {
    for (i32 s = 0; s < run.size(); ++s)
      if (run[s].tokens > 0) filled_[static_cast<std::size_t>(s)] = run[s].past;
  }
  /// It is done.
  void end(RunShape run) {
    for (i32 s = 0; s < run.size(); ++s)
      if (run[s].tokens > 0) filled_[static_cast<std::size_t>(s)] = run[s].past + run[s].tokens;
  }

 private:
  ExecutorOptions options_;
  bool caches_;
  std::vector<i64> filled_{};  ///< by sequence: positions whose rows are in the caches

  void check(i32 s, SequenceRun const& run) const {
    i64 const filled = filled_[static_cast<std::size_t>(s)];
    if (run.past < 0 || run.tokens < 0 || run.rows < 0 || run.rows > run.tokens)
      throw std::invalid_argument(name(s) + " asks for logits of " + std::to_string(run.rows) + " of its " +
                                  std::to_string(run.tokens) + " new tokens after " + std::to_string(run.past));
    if (run.past > options_.capacity || run.tokens > options_.capacity - run.past)
      throw std::length_error("the KV cache is full: " + name(s) + " has " + std::to_string(run.past) + " tokens and " +
                              std::to_string(run.tokens) + " new ones, the capacity is " +
                              std::to_string(options_.capacity) + " tokens a sequence");
    if (caches_ && run.tokens > 0 && run.past > filled)
      throw std::invalid_argument(name(s) + " is to go on after a past of " + std::to_string(run.past) +
                                  " tokens, but its KV cache is filled to " + std::to_string(filled) +
                                  ": run its tokens from position " + std::to_string(filled) +
                                  " on first; a past of at most " + std::to_string(filled) + " works");
  }
  static std::string name(i32 s) { return "sequence " + std::to_string(s); }
};

/// Writes the ids of an input that is tokens, row by row. @param ids room for the rows of `view`
/// @throws std::invalid_argument naming a sequence that was given another number of tokens than the run says
inline void copy_tokens(View const& view, RunShape run, RunTokens tokens, i32* ids) {
  for (Segment const& s : view.segments) {
    auto const given = tokens[static_cast<std::size_t>(s.sequence)];
    if (static_cast<i64>(given.size()) != run[s.sequence].tokens)
      throw std::invalid_argument("sequence " + std::to_string(s.sequence) + " was given " +
                                  std::to_string(given.size()) + " tokens, the run says " +
                                  std::to_string(run[s.sequence].tokens));
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is room for every row of the view
    for (i64 p = s.range.lo; p < s.range.hi; ++p) *ids++ = given[static_cast<std::size_t>(p)];
  }
}

}  // namespace dovetail
