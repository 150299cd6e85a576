// SPDX-License-Identifier: MIT
// Grouped-query attention in floats with a running softmax (Milakov and Gimelshein, 2018): queries that read one
// KV head go in tiles over blocks of keys, so a block is read from memory once a tile. Blocks begin at multiples of
// their size in the sequence, so a query's result depends on its own position alone, not on what is in its tile.
// Reference twin: kernels/reference/attention.hpp.
#pragma once
#include <dovetail/device/cpu/device.hpp>
#include <dovetail/kernels/cpu/lanes.hpp>
#include <dovetail/kernels/host/attention.hpp>
#include <limits>

namespace dovetail::kernels::cpu {

inline constexpr i64 key_block = 64, query_tile = 16;

/// Softmax of one query so far: the weighted values are relative to the largest score, and so is their total.
struct RunningSoftmax {
  double total = 0;
  float largest = -std::numeric_limits<float>::infinity();
};

/// Takes up to key_block more keys into a query's softmax.
/// q: (size), scaled; k and v: (count, size) `stride` apart; mixed: (size), values weighted so far.
inline void attend_block(float const* q, float const* k, float const* v, i64 stride, i64 count, i64 size, float softcap,
                         RunningSoftmax& softmax, float* mixed) {
  float weights[key_block];
  for (i64 j = 0; j < count; ++j) weights[j] = dot(q, k + j * stride, size);
  if (softcap > 0) {  // tanh by way of the exponential
    for (i64 j = 0; j < count; ++j) weights[j] *= 2.0f / softcap;
    exponentials(weights, count);
    for (i64 j = 0; j < count; ++j) weights[j] = softcap * (1.0f - 2.0f / (weights[j] + 1.0f));
  }
  float const most = largest(softmax.largest, weights, count);
  if (most > softmax.largest) {
    float shrink = softmax.largest - most;
    exponentials(&shrink, 1);
    for (i64 d = 0; d < size; ++d) mixed[d] *= shrink;  // still zeros before the first block
    softmax.total *= static_cast<double>(shrink);
    softmax.largest = most;
  }
  for (i64 j = 0; j < count; ++j) {
    float const score = weights[j] - most;
    weights[j] = score < -60.0f ? -60.0f : score;  // weighs nothing, and keeps products out of the slow denormals
  }
  exponentials(weights, count);
  softmax.total += static_cast<double>(sum(weights, count));
  i64 j = 0;
  for (; j + 4 <= count; j += 4) {
    float const *const v0 = v + j * stride, *const v1 = v0 + stride, *const v2 = v1 + stride, *const v3 = v2 + stride;
    float const w0 = weights[j], w1 = weights[j + 1], w2 = weights[j + 2], w3 = weights[j + 3];
    for (i64 d = 0; d < size; ++d) mixed[d] += (w0 * v0[d] + w1 * v1[d]) + (w2 * v2[d] + w3 * v3[d]);
  }
  for (; j < count; ++j)
    for (i64 d = 0; d < size; ++d) mixed[d] += weights[j] * v[j * stride + d];
}

/// Up to query_tile queries that read one KV head: query n is of head n mod `group` and position first + n / group.
struct QueryTile {
  host::AttentionShape const& shape;
  float const* q;  ///< of the first position and head of the group
  float* to;       ///< the same place in the result
  i64 row_width;   ///< between positions in both
  i64 group, first, length, begin, end;
  float* scratch;  ///< 2 query_tile head_size floats
};

/// k and v: the KV head at position 0 of the sequence, positions `stride` apart.
inline void attend_tile(QueryTile const& t, float const* k, float const* v, i64 stride) {
  i64 const size = t.shape.head_size, count = t.end - t.begin;
  auto const at = [&](i64 n) { return (t.begin + n) / t.group * t.row_width + (t.begin + n) % t.group * size; };
  auto const seen = [&](i64 n) { return t.shape.seen_from(t.first + (t.begin + n) / t.group, t.length); };
  float *const scaled = t.scratch, *const mixed = t.scratch + query_tile * size;
  RunningSoftmax softmax[query_tile];
  for (i64 n = 0; n < count; ++n)
    for (i64 d = 0; d < size; ++d) {
      scaled[n * size + d] = t.q[at(n) + d] * static_cast<float>(t.shape.scale);
      mixed[n * size + d] = 0;
    }
  for (i64 block = seen(0).lo / key_block * key_block; block < seen(count - 1).hi; block += key_block)
    for (i64 n = 0; n < count; ++n) {
      Range const keys = intersect(seen(n), Range{block, block + key_block});
      if (keys.size())
        attend_block(scaled + n * size, k + keys.lo * stride, v + keys.lo * stride, stride, keys.size(), size,
                     static_cast<float>(t.shape.softcap), softmax[n], mixed + n * size);
    }
  for (i64 n = 0; n < count; ++n) {
    auto const factor = static_cast<float>(1 / softmax[n].total);
    for (i64 d = 0; d < size; ++d) t.to[at(n) + d] = mixed[n * size + d] * factor;
  }
}

/// softmax(q k^T scale, causal, windowed, capped) v; see AttentionShape for shapes and numbers.
inline void attend(KernelCall<Cpu> const& call) {
  View const &q = call.operands[0], &k = call.operands[1], &v = call.operands[2], &y = call.results[0];
  host::AttentionShape const shape(call);
  i64 const size = shape.head_size;
  auto* const scratch = call.device->scratch().room<float>(2 * query_tile * size);
  for (i32 n = 0; n < q.segments.size(); ++n) {
    Segment const& s = q.segments[n];
    if (!s.range.size() || !shape.heads.size() || !size) continue;
    i64 const past = host::past_of("attend", call.sequences, s), first = past + s.range.lo;
    i64 const length = past + call.sequences[s.sequence].tokens;
    i64 const key_row = host::segment_of("attend", k, s.sequence, n).row;
    i64 const value_row = host::segment_of("attend", v, s.sequence, n).row;
    for (i64 head = shape.heads.lo, next; head < shape.heads.hi; head = next) {
      i64 const key_head = shape.key_head_of(head);
      for (next = head; next < shape.heads.hi && shape.key_head_of(next) == key_head;) ++next;
      i64 const at = s.row * q.width + (head - shape.heads.lo) * size, queries = s.range.size() * (next - head);
      for (i64 begin = 0; begin < queries; begin += query_tile) {
        i64 const end = begin + query_tile < queries ? begin + query_tile : queries;
        attend_tile(
            {shape, q.as<float>() + at, y.as<float>() + at, q.width, next - head, first, length, begin, end, scratch},
            k.as<float>() + key_row * k.width + key_head * size, v.as<float>() + value_row * v.width + key_head * size,
            k.width);
      }
    }
  }
}

}  // namespace dovetail::kernels::cpu
