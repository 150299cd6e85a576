// SPDX-License-Identifier: MIT
// Grouped-query attention on the grid. Scores, exponentials and weighted products are rounded to the grid, their
// sums are exact and there is one division at the end: a head's result depends on nothing but its query, keys and
// values, however heads, sequences and queries are split.
#pragma once
#include <dovetail/device/reference/device.hpp>
#include <dovetail/kernels/host/attention.hpp>

namespace dovetail::kernels::reference {

/// Largest 2-norms of the keys and values that some queries see: what the range of their sums is bounded by.
struct AttentionBound {
  double key = 0, value = 0;
};

/// Attention of one query head at one position over keys and values `stride` apart.
/// q and to: (head_size); k and v: (count, head_size); scores: room for `count`; sums: for `head_size`.
inline void attend_one(host::AttentionShape const& shape, double const* q, double const* k, double const* v, i64 stride,
                       i64 count, AttentionBound bound, i64 row, double* scores, std::uint64_t* sums, double* to) {
  i64 const size = shape.head_size;
  double const dot_bound = grid::sum_bound(grid::largest_norm(q, size, 1, size), bound.key, size);
  double largest = -grid::largest_sum;
  for (i64 j = 0; j < count; ++j) {
    if (!(dot_bound <= grid::largest_product)) grid::check_sum("attend", dot_bound, q, k + j * stride, 1, size, row, j);
    std::uint64_t bits = 0;
    for (i64 d = 0; d < size; ++d) bits += grid::product_bits(q[d], k[j * stride + d]);
    double const dot = grid::sum_of_products(bits, size);
    if (!(std::abs(dot * shape.scale) <= grid::largest_product))
      throw RangeError("attend", "the score of row " + std::to_string(row) + ", key " + std::to_string(j),
                       std::abs(dot * shape.scale), grid::largest_product);
    scores[j] = grid::product(dot, shape.scale);
    if (shape.softcap > 0) scores[j] = grid::product(shape.softcap, std::tanh(scores[j] / shape.softcap));
    largest = scores[j] > largest ? scores[j] : largest;
  }
  double total = 0;
  for (i64 j = 0; j < count; ++j) total += scores[j] = grid::round(std::exp(scores[j] - largest));
  double const value_bound = grid::sum_bound(total, bound.value, count);
  for (i64 d = 0; d < size; ++d) {
    if (!(value_bound <= grid::largest_product))
      grid::check_sum("attend", value_bound, scores, v + d, stride, count, row, d);
    sums[d] = 0;
  }
  for (i64 j = 0; j < count; ++j)
    for (i64 d = 0; d < size; ++d) sums[d] += grid::product_bits(scores[j], v[j * stride + d]);
  for (i64 d = 0; d < size; ++d) to[d] = grid::round(grid::sum_of_products(sums[d], count) / total);
}

/// softmax(q k^T scale, causal, windowed, capped) v; see AttentionShape for shapes and numbers.
inline void attend(KernelCall<Reference> const& call) {
  View const &q = call.operands[0], &k = call.operands[1], &v = call.operands[2], &y = call.results[0];
  host::AttentionShape const shape(call);
  i64 const size = shape.head_size;
  for (i32 n = 0; n < q.segments.size(); ++n) {
    Segment const& s = q.segments[n];
    if (!s.range.size() || !shape.heads.size() || !size) continue;
    i64 const past = host::past_of("attend", call.sequences, s);
    i64 const length = past + call.sequences[s.sequence].tokens;
    i64 const seen_lo = shape.seen_from(past + s.range.lo, length).lo;
    i64 const seen_hi = shape.seen_from(past + s.range.hi - 1, length).hi;
    i64 const key_row = host::segment_of("attend", k, s.sequence, n).row;
    i64 const value_row = host::segment_of("attend", v, s.sequence, n).row;
    auto* const sums = call.device->scratch().room<std::uint64_t>(size + seen_hi);
    auto* const scores = reinterpret_cast<double*>(sums + size);
    i64 bounded = -1;
    AttentionBound bound;
    for (i64 head = shape.heads.lo; head < shape.heads.hi; ++head) {
      i64 const group = shape.key_head_of(head);
      double const* const keys = k.as<double>() + key_row * k.width + group * size;
      double const* const values = v.as<double>() + value_row * v.width + group * size;
      if (group != bounded) {
        bound.key = grid::largest_norm(keys + seen_lo * k.width, k.width, seen_hi - seen_lo, size);
        bound.value = grid::largest_norm(values + seen_lo * k.width, k.width, seen_hi - seen_lo, size);
        bounded = group;
      }
      for (i64 i = 0; i < s.range.size(); ++i) {
        Range const seen = shape.seen_from(past + s.range.lo + i, length);
        i64 const row = s.row + i, at = row * q.width + (head - shape.heads.lo) * size;
        attend_one(shape, q.as<double>() + at, keys + seen.lo * k.width, values + seen.lo * k.width, k.width,
                   seen.size(), bound, row, scores, sums, y.as<double>() + at);
      }
    }
  }
  grid::check_values("attend", y.as<double>(), y.rows, y.width);
}

}  // namespace dovetail::kernels::reference
