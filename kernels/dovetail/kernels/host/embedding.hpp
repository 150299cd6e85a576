// SPDX-License-Identifier: MIT
// Kernels that copy rows, the same for every host device: a lookup in a part of the vocabulary, and the choice of the
// positions that get logits. Rows that this rank has no part of are zero, so that the ranks' results add up.
#pragma once
#include <algorithm>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::host {

/// "sequence 2, position 5" of a row, for errors.
inline std::string place_of(View const& v, i64 row) {
  for (Segment const& s : v.segments)
    if (row >= s.row && row < s.row + s.range.size())
      return "sequence " + std::to_string(s.sequence) + ", position " + std::to_string(s.range.lo + row - s.row);
  return "row " + std::to_string(row);
}

/// y[row, :] = table[id[row], :] where this rank holds that row of the table, else 0.
/// ids: i32; table: (vocabulary part, embed part). @throws std::runtime_error for an id that is no row of the whole
template <class Device>
void lookup(KernelCall<Device> const& call) {
  using Scalar = typename Device::Scalar;
  View const &ids = call.operands[0], &table = call.parameters[0], &y = call.results[0];
  Range const held = table.ranges[0];
  i64 const vocabulary = (*table.dims)[0].size, width = elements_from(table, 1);
  require_equal("lookup", "rows of operand and result", ids.rows, y.rows);
  require_equal("lookup", "widths of table and result", width, y.width);
  Scalar const* const rows = parameter(call, 0);
  for (i64 r = 0; r < ids.rows; ++r) {
    i64 const id = ids.as<i32>()[r];
    if (id < 0 || id >= vocabulary)
      throw std::runtime_error("lookup: token id " + std::to_string(id) + " (" + place_of(ids, r) +
                               ") is not in the vocabulary of " + std::to_string(vocabulary));
    Scalar* const to = y.as<Scalar>() + r * width;
    if (held.contains(id)) std::copy_n(rows + (id - held.lo) * width, width, to);
    else std::fill_n(to, width, Scalar{});
  }
}

/// y[row, :] = x[row, :] + table[i, :], where i is the number of the call, or the row's position where that is
/// negative. table: (rows, embed part). @throws std::runtime_error for a position beyond the table
template <class Device>
void add_row(KernelCall<Device> const& call) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &table = call.parameters[0], &y = call.results[0];
  i64 const count = (*table.dims)[0].size, stated = static_cast<i64>(call.number(0)), width = x.width;
  require_same_shape("add_row", x, y);
  require_equal("add_row", "widths of table and operand", elements_from(table, 1), width);
  Scalar const* const rows = parameter(call, 0);
  for (Segment const& s : x.segments) {
    i64 const first = past_of("add_row", call.sequences, s) + s.range.lo;
    if (stated < 0 && s.range.size() && first + s.range.size() > count)
      throw std::runtime_error("add_row: sequence " + std::to_string(s.sequence) + " has a position of " +
                               std::to_string(first + s.range.size() - 1) + ", but the model has learned " +
                               std::to_string(count) + " positions, 0 to " + std::to_string(count - 1));
    for (i64 i = 0; i < s.range.size(); ++i) {
      Scalar const* const from = rows + (stated < 0 ? first + i : stated) * width;
      Scalar const* const a = x.as<Scalar>() + (s.row + i) * width;
      Scalar* const to = y.as<Scalar>() + (s.row + i) * width;
      for (i64 k = 0; k < width; ++k) to[k] = a[k] + from[k];
    }
  }
}

/// The rows of a run as keys, for attention that keeps none: x [batch,sequence,..] to y [batch,keys,..].
/// @throws std::runtime_error for a sequence with a past, which such attention would not see
template <class Device>
void as_keys(KernelCall<Device> const& call) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &y = call.results[0];
  require_equal("as_keys", "widths of operand and result", x.width, y.width);
  for (i32 k = 0; k < y.segments.size(); ++k) {
    Segment const& to = y.segments[k];
    if (i64 const past = past_of("as_keys", call.sequences, to))
      throw std::runtime_error("as_keys: sequence " + std::to_string(to.sequence) + " has a past of " +
                               std::to_string(past) + " tokens; without a cache a sequence runs whole, in one pass");
    Segment const& from = segment_of("as_keys", x, to.sequence, k);
    require_equal("as_keys", "positions of operand and result", from.range.size(), to.range.size());
    std::copy_n(x.as<Scalar>() + from.row * x.width, from.range.size() * x.width, y.as<Scalar>() + to.row * y.width);
  }
}

/// Mean of a sequence's rows, of which this rank may hold a part: x [batch,sequence,..] to y [batch,..].
/// @param share  function (element, tokens of the sequence) -> what the element adds to the mean
template <class Device, class Share>
void mean_rows(KernelCall<Device> const& call, Share const& share) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &y = call.results[0];
  require_equal("mean_rows", "widths of operand and result", x.width, y.width);
  for (i32 k = 0; k < y.segments.size(); ++k) {
    Segment const& to = y.segments[k];
    past_of("mean_rows", call.sequences, to);
    auto const tokens = static_cast<Scalar>(call.sequences[to.sequence].tokens);
    Scalar* const mean = y.as<Scalar>() + to.row * y.width;
    std::fill_n(mean, y.width, Scalar{});
    Segment const& from = segment_of("mean_rows", x, to.sequence, k);
    for (i64 i = 0; i < from.range.size(); ++i)
      for (i64 c = 0; c < x.width; ++c) mean[c] += share(x.as<Scalar>()[(from.row + i) * x.width + c], tokens);
  }
}

/// Row j of the `rows` that a sequence asks for is its new position tokens - rows + j.
/// x: [batch,sequence,..] of which this rank may hold a part of the positions; y: [batch,rows,..].
template <class Device>
void take_rows(KernelCall<Device> const& call) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &y = call.results[0];
  require_equal("take_rows", "widths of operand and result", x.width, y.width);
  for (i32 k = 0; k < y.segments.size(); ++k) {
    Segment const& to = y.segments[k];
    past_of("take_rows", call.sequences, to);
    SequenceRun const& run = call.sequences[to.sequence];
    if (run.rows > run.tokens)
      throw std::runtime_error("take_rows: sequence " + std::to_string(to.sequence) + " asks for " +
                               std::to_string(run.rows) + " rows of " + std::to_string(run.tokens) + " new tokens");
    Segment const& from = segment_of("take_rows", x, to.sequence, k);
    for (i64 j = to.range.lo; j < to.range.hi; ++j) {
      i64 const position = run.tokens - run.rows + j;
      Scalar* const row = y.as<Scalar>() + (to.row + j - to.range.lo) * y.width;
      if (from.range.contains(position))
        std::copy_n(x.as<Scalar>() + (from.row + position - from.range.lo) * x.width, x.width, row);
      else std::fill_n(row, y.width, Scalar{});
    }
  }
}

}  // namespace dovetail::kernels::host
