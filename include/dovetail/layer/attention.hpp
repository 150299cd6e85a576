// SPDX-License-Identifier: MIT
// Grouped-query self-attention (Ainslie et al., 2023) with rotary positions (Su et al., 2021), optional biases and q/k
// norms: causal with a KV cache, or over the whole sequence without one (encoders). KV heads follow query heads: a rank
// holds the KV heads that its query heads read, so every split of the query heads is legal, and no split cuts a head.
#pragma once
#include <dovetail/layer/linear.hpp>
#include <dovetail/layer/norm.hpp>

namespace dovetail {

/// Norm of queries and keys before their positions are rotated in.
enum class QkNorm : std::uint8_t {
  none,
  per_head,  ///< one weight of head_dim, each head normed by itself (Qwen3)
  full,      ///< over all heads at once (OLMo-2): the statistic is summed over the ranks that split them
};

/// Rotary positions: their base, which elements turn, and Llama 3's scaling.
struct RotaryConfig {
  double theta = 10000;
  i64 rotated = 0;           ///< leading elements of a head that are rotated; 0: all
  bool interleaved = false;  ///< pairs (0,1),(2,3).. instead of (0,d/2),(1,d/2+1)..
  double factor = 1;         ///< Llama-3 scaling; 1: none
  double low_frequency = 1, high_frequency = 4, original_context = 0;
};

/// Sizes and options of attention.
struct AttentionConfig {
  i64 embed_size = 0, head_count = 0, kv_head_count = 0, head_size = 0;
  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false;
  QkNorm qk_norm = QkNorm::none;
  double epsilon = 1e-5;  ///< of the q/k norms
  bool rotary = true;
  RotaryConfig rope{};
  double scale = 0;    ///< of the scores; 0: 1/sqrt(head_size)
  i64 window = 0;      ///< latest keys that a query sees; 0: all
  double softcap = 0;  ///< of the scores; 0: none
  bool causal = true;  ///< a query sees itself and what is before it; false: all of its sequence, in one run
  Name role{"attention"};
};

namespace ops {

/// Rotates pairs of the leading elements of each head. @pre an even number of them; else size/range
constexpr Value rotate(Builder& b, Value x, RotaryConfig const& c) {
  Extent const* const width = find(b.dims(x), dim_of<head_dim>);
  i64 const size = width ? width->size : 0, rotated = c.rotated ? c.rotated : size;
  if (rotated % 2 || rotated < 0 || rotated > size)
    b.fail(Verdict{.rule = Rule::size_range,
                   .dim = dim_of<head_dim>,
                   .op = "rotate",
                   .extent = size,
                   .units = 2,
                   .left = rotated});
  return b.apply(Call(dovetail::rotate)
                     .reads(x)
                     .needs_whole<head_dim>()
                     .with(Numbers{{c.theta, static_cast<double>(c.rotated), c.interleaved ? 1.0 : 0.0, c.factor,
                                    c.low_frequency, c.high_frequency, c.original_context}})
                     .yields(b.dims(x)));
}

/// Appends new rows to a KV cache and yields all of it: [batch,sequence,..] -> [batch,keys,..].
constexpr Value append(Builder& b, Value x, char const* role) {
  Dims cached;
  for (auto const& e : b.dims(x)) cached.push(e.dim == dim_of<sequence> ? extent<keys>(Symbol::context) : e);
  return b.apply(Call(dovetail::append)
                     .reads(x)
                     .keeps(b.state(cached, role))
                     .needs_whole<sequence>()
                     .maps_rest()
                     .yields(cached, Storage::cache));
}

/// The rows of this run as keys, for attention without a cache: [batch,sequence,..] -> [batch,keys,..].
constexpr Value as_keys(Builder& b, Value x) {
  Dims seen;
  for (auto const& e : b.dims(x)) seen.push(e.dim == dim_of<sequence> ? extent<keys>(Symbol::context) : e);
  return b.apply(Call(dovetail::as_keys).reads(x).needs_whole<sequence>().maps_rest().yields(seen));
}

/// softmax(q k^T scale) v for each query head, over the keys that a query may see.
/// q[batch,sequence,heads,head_dim] k,v[batch,keys,kv_heads,head_dim] -> [batch,sequence,heads,head_dim].
constexpr Value attend(Builder& b, Value q, Value k, Value v, double scale, i64 window, double softcap,
                       bool causal = true) {
  return b.apply(Call(dovetail::attend)
                     .reads(q)
                     .reads(k)
                     .reads(v)
                     .maps<batch, sequence, heads>()
                     .needs_whole<keys, head_dim>()
                     .with(Numbers{{scale, static_cast<double>(window), softcap, causal ? 0.0 : 1.0}})
                     .yields(b.dims(q)));
}

}  // namespace ops

/// [batch,sequence,embed] -> [batch,sequence,embed]; parameters role.{q,k,v,o}.{weight,bias}, role.{q,k}_norm.weight.
constexpr Value attention(Builder& b, Value x, AttentionConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value input) {
    Extent const width = extent<head_dim>(c.head_size), shared = extent<kv_heads>(c.kv_head_count, c.head_count);
    Dims const outer = dims(extent<embed>(c.embed_size));
    Dims const query = dims(extent<heads>(c.head_count), width), key = dims(shared, width);
    Value q = linear(inner, input, LinearConfig{outer, query, c.q_bias, Name{"q"}});
    Value k = linear(inner, input, LinearConfig{outer, key, c.k_bias, Name{"k"}});
    Value const v = linear(inner, input, LinearConfig{outer, key, c.v_bias, Name{"v"}});
    if (c.qk_norm != QkNorm::none) {
      bool const full = c.qk_norm == QkNorm::full;
      q = rms_norm(inner, q, RmsNormConfig{full ? query : dims(width), c.epsilon, Name{"q_norm"}});
      k = rms_norm(inner, k, RmsNormConfig{full ? key : dims(width), c.epsilon, Name{"k_norm"}});
    }
    if (c.rotary) q = ops::rotate(inner, q, c.rope), k = ops::rotate(inner, k, c.rope);
    Value const all_k = c.causal ? ops::append(inner, k, "k") : ops::as_keys(inner, k);
    Value const all_v = c.causal ? ops::append(inner, v, "v") : ops::as_keys(inner, v);
    Value const mixed = ops::attend(inner, q, all_k, all_v, c.scale, c.window, c.softcap, c.causal);
    return linear(inner, mixed, LinearConfig{query, outer, c.o_bias, Name{"o"}});
  });
}

/// `attention` as a type.
template <AttentionConfig C>
struct Attention {
  static constexpr Value apply(Builder& b, Value x) { return attention(b, x, C); }
};

}  // namespace dovetail
