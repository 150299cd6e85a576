// SPDX-License-Identifier: MIT
// What attention reads, the same for every host device: which KV head a query head reads, which keys a position sees,
// where a sequence's keys lie. Heads are global, as are the rules; a rank holds ranges of them.
#pragma once
#include <cmath>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::host {

class AttentionShape {
 public:
  Range heads{}, key_heads{};  ///< that this rank holds
  i64 head_size = 0, window = 0;
  bool causal = true;
  double scale = 1, softcap = 0;

  /// q: [batch,sequence,heads,head_dim]; k and v: [batch,keys,kv_heads,head_dim]; numbers: scale, window,
  /// softcap, and whether a query also sees what is after it.
  template <class Device>
  explicit AttentionShape(KernelCall<Device> const& call) {
    View const &q = call.operands[0], &k = call.operands[1], &v = call.operands[2];
    i32 const at = q.dims->size() - 2, key_at = k.dims->size() - 2;
    heads = q.ranges[at], key_heads = k.ranges[key_at], head_size = q.ranges[at + 1].size();
    head_count_ = (*q.dims)[at].size, key_head_count_ = (*k.dims)[key_at].size;
    require_equal("attend", "head sizes of queries and keys", head_size, k.ranges[key_at + 1].size());
    require_equal("attend", "widths of keys and values", k.width, v.width);
    require_same_shape("attend", q, call.results[0]);
    if (heads.size() && head_count_ > 0 && key_head_count_ > 0 &&
        (key_head_of(heads.lo) < 0 || key_head_of(heads.hi - 1) >= key_heads.size()))
      throw std::runtime_error("attend: query heads up to " + std::to_string(heads.hi) +
                               " read KV heads that this rank does not hold");
    double const given = call.number(0);
    scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(head_size));
    window = static_cast<i64>(call.number(1)), softcap = call.number(2), causal = call.number(3) == 0;
  }

  /// Index, among the KV heads that this rank holds, of the one that query head `head` of the whole reads.
  i64 key_head_of(i64 head) const { return head * key_head_count_ / head_count_ - key_heads.lo; }
  /// Keys that the query at `position` of a sequence sees. @param length  keys that the sequence has
  Range seen_from(i64 position, i64 length) const {
    return {window > 0 && position >= window ? position - window + 1 : 0, causal ? position + 1 : length};
  }

 private:
  i64 head_count_ = 0, key_head_count_ = 0;
};

}  // namespace dovetail::kernels::host
