// SPDX-License-Identifier: MIT
// What a rank holds of a value in one run. Symbolic dims (batch, then a dim of the sequence) come first and may be
// ragged: each sequence has its own past and new tokens. So a local tensor is rows x width: `Segment`s say which
// positions of which sequence the rows are, `Range`s which part of every fixed dim the width is.
#pragma once
#include <dovetail/mesh/split.hpp>

namespace dovetail {

/// One sequence of a run: tokens already in the cache, tokens to compute, and how many of the last ones get logits.
struct SequenceRun {
  i64 past = 0, tokens = 0, rows = 0;
  friend constexpr bool operator==(SequenceRun const&, SequenceRun const&) = default;
};
/// The symbols of a plan, bound: the batch, sequence by sequence.
using RunShape = Span<SequenceRun>;

/// Extent of a symbolic dim for one sequence. @pre symbol is tokens, context or rows
constexpr i64 extent_in(SequenceRun const& s, Symbol symbol) {
  return symbol == Symbol::tokens ? s.tokens : symbol == Symbol::context ? s.past + s.tokens : s.rows;
}

/// Rows of one sequence that a rank holds.
struct Segment {
  i64 sequence = 0;  ///< index in the run's batch
  Range range{};     ///< positions along the sequence dim, counted from its start
  i64 row = 0;       ///< where they begin in the local tensor
  friend constexpr bool operator==(Segment const&, Segment const&) = default;
};

/// Number of symbolic dims at the front: 0, 1 (batch) or 2 (batch and a dim of the sequence).
constexpr i32 leading_symbols(Dims const& d) {
  i32 n = 0;
  while (n < d.size() && d[n].symbol != Symbol::fixed) ++n;
  return n;
}

/// Sequences of the batch that a rank has.
constexpr Range sequences_of(Dims const& d, Places const& places, Mesh const& mesh, Coordinate const& at,
                             RunShape run) {
  return leading_symbols(d) ? leading_range(d[0], run.size(), places, mesh, at) : Range{0, 1};
}
/// Its part of one sequence.
constexpr Range positions_of(Dims const& d, Places const& places, Mesh const& mesh, Coordinate const& at,
                             SequenceRun const& s) {
  return leading_symbols(d) > 1 ? leading_range(d[1], extent_in(s, d[1].symbol), places, mesh, at) : Range{0, 1};
}

/// Rows that a rank holds: 1 for a tensor without symbolic dims.
constexpr i64 local_rows(Dims const& d, Places const& places, Mesh const& mesh, Coordinate const& at, RunShape run) {
  if (!leading_symbols(d)) return 1;
  Range const mine = sequences_of(d, places, mesh, at, run);
  i64 n = 0;
  for (i64 s = mine.lo; s < mine.hi; ++s) n += positions_of(d, places, mesh, at, run[s]).size();
  return n;
}
/// Elements of its part of the fixed dims.
constexpr i64 local_width(Dims const& d, Places const& places, Mesh const& mesh, Coordinate const& at) {
  i64 n = 1;
  for (i32 k = leading_symbols(d); k < d.size(); ++k) n *= held(d[k], places, mesh, at).size();
  return n;
}
/// Elements of its part of all dims: rows times width.
constexpr i64 local_elements(Dims const& d, Places const& places, Mesh const& mesh, Coordinate const& at,
                             RunShape run) {
  return local_rows(d, places, mesh, at, run) * local_width(d, places, mesh, at);
}
/// Elements of the whole value.
constexpr i64 whole_elements(Dims const& d, RunShape run) {
  return local_elements(d, Places{}, Mesh{}, Coordinate{}, run);
}

}  // namespace dovetail
