// SPDX-License-Identifier: MIT
// What tests build small models from: blocks of every shape that the layers can make, two ops of a user with their
// kernels, and weights. Weights are a function of (seed, name, global index), so that ranks hold different values and
// any slice can be filled alone.
#pragma once
#include <cmath>
#include <dovetail/device/kernel.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/models/llama.hpp>
#include <span>
#include <string>

#include "random_numbers.hpp"

namespace tiny {

using namespace dovetail;

/// A weight source; see run/weight_store.hpp.
struct Weights {
  std::uint64_t seed = 1;
  void operator()(std::string const& name, WeightShape const& shape, auto room) const {
    if (!shape.elements()) return;
    bool const norm = name.find("norm") != std::string::npos;
    i32 const dims = shape.dims.size();
    i64 fan = 1, at[max_dims], n = 0;
    for (i32 k = 0; k < dims; ++k) fan *= k ? shape.dims[k].size : 1, at[k] = shape.ranges[k].lo;
    for (i32 k = dims - 1; k >= 0;) {
      std::uint64_t h = test::mix(seed) ^ test::mix(name);
      for (i32 d = 0; d < dims; ++d) h = test::mix(h ^ static_cast<std::uint64_t>(at[d]));
      double const u = test::signed_unit(h);
      using Scalar = std::remove_reference_t<decltype(room[0])>;
      room[static_cast<std::size_t>(n++)] = static_cast<Scalar>(norm ? 1 + 0.3 * u : 1.7 * u / std::sqrt(double(fan)));
      for (k = dims - 1; k >= 0 && ++at[k] == shape.ranges[k].hi; --k) at[k] = shape.ranges[k].lo;
    }
  }
};

// ---- two ops of a user: one folds query heads into their KV heads, one lets a partial sum through

inline constexpr Op fold_heads{.name = "fold_heads", .folds = true};
inline constexpr Op double_small{.name = "double_small", .elementwise = true, .lazy = 0};

/// y[.., kv_heads, head_dim] = sum of x over the query heads of each KV head.
template <class D>
void run_fold_heads(KernelCall<D> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  Range const from = x.range(dim_of<heads>), to = y.range(dim_of<kv_heads>);
  i64 const width = x.range(dim_of<head_dim>).size();
  i64 const leaders = x.extent(dim_of<heads>)->size, followers = y.extent(dim_of<kv_heads>)->size;
  auto const* in = x.as<typename D::Scalar>();
  auto* out = y.as<typename D::Scalar>();
  for (i64 i = 0; i < y.rows * y.width; ++i) out[i] = 0;
  for (i64 r = 0; r < x.rows; ++r)
    for (i64 h = from.lo; h < from.hi; ++h)
      for (i64 i = 0; i < width; ++i)
        out[r * y.width + (h * followers / leaders - to.lo) * width + i] += in[r * x.width + (h - from.lo) * width + i];
}
/// y = 2 x where the statistic of the row is below 1, else x: linear in x, and exact on the grid.
template <class D>
void run_double_small(KernelCall<D> const& call) {
  View const &x = call.operands[0], &statistic = call.operands[1], &y = call.results[0];
  for (i64 r = 0; r < x.rows; ++r)
    for (i64 i = 0; i < x.width; ++i)
      y.as<typename D::Scalar>()[r * x.width + i] =
          x.as<typename D::Scalar>()[r * x.width + i] * (statistic.as<typename D::Scalar>()[r] < 1 ? 2 : 1);
}
template <class D>
inline constexpr KernelRow<D> user_kernels[] = {{&fold_heads, &run_fold_heads<D>},
                                                {&double_small, &run_double_small<D>}};

// ---- blocks

struct Sizes {
  i64 embed = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, vocab = 0;
  i64 ffn_unit = 1;
  bool qkv_bias = false, out_bias = false, tied = false;
  QkNorm qk_norm = QkNorm::none;
  i64 window = 0;

  AttentionConfig attention() const {
    AttentionConfig c;
    c.embed_size = embed, c.head_count = heads, c.kv_head_count = kv_heads, c.head_size = head_size;
    c.q_bias = c.k_bias = c.v_bias = qkv_bias, c.o_bias = out_bias;
    c.qk_norm = qk_norm, c.window = window;
    return c;
  }
  MlpConfig mlp() const {
    MlpConfig c;
    c.embed_size = embed, c.ffn_size = ffn, c.ffn_unit = ffn_unit, c.bias = out_bias;
    return c;
  }
  Dims outer() const { return dims(extent<dovetail::embed>(embed)); }
  Dims hidden() const { return dims(extent<dovetail::ffn>(ffn, 0, ffn_unit)); }
  Value norm(Builder& b, Value x, char const* role) const {
    return rms_norm(b, x, RmsNormConfig{outer(), 1e-5, dovetail::name(role)});
  }
};

inline Value pre_norm_block(Builder& b, Value x, Sizes const& s) {
  x = ops::residual(b, x,
                    [&](Builder& i, Value v) { return attention(i, s.norm(i, v, "attention_norm"), s.attention()); });
  return ops::residual(b, x, [&](Builder& i, Value v) { return gated_mlp(i, s.norm(i, v, "mlp_norm"), s.mlp()); });
}
/// Norms behind attention and MLP instead of before.
inline Value post_norm_block(Builder& b, Value x, Sizes const& s) {
  x = ops::residual(b, x,
                    [&](Builder& i, Value v) { return s.norm(i, attention(i, v, s.attention()), "attention_norm"); });
  return ops::residual(b, x, [&](Builder& i, Value v) { return s.norm(i, gated_mlp(i, v, s.mlp()), "mlp_norm"); });
}
/// Attention and MLP side by side on one norm.
inline Value parallel_block(Builder& b, Value x, Sizes const& s) {
  return ops::residual(b, x, [&](Builder& i, Value v) {
    Value const n = s.norm(i, v, "norm");
    Value const attended = attention(i, n, s.attention());  // one after the other: the plan has an order
    return ops::add(i, attended, gated_mlp(i, n, s.mlp()));
  });
}
/// Keys that the queries of their group are added to, and an output that a statistic scales.
inline Value user_block(Builder& b, Value x, Sizes const& s) {
  return ops::residual(b, x, [&](Builder& i, Value v) {
    Extent const width = extent<head_dim>(s.head_size);
    Dims const query = dims(extent<heads>(s.heads), width), key = dims(extent<kv_heads>(s.kv_heads, s.heads), width);
    Value const n = s.norm(i, v, "norm");
    Value q = linear(i, n, LinearConfig{s.outer(), query, s.qkv_bias, Name{"q"}});
    Value k = linear(i, n, LinearConfig{s.outer(), key, s.qkv_bias, Name{"k"}});
    Value const values = linear(i, n, LinearConfig{s.outer(), key, false, Name{"v"}});
    Value const folded =
        i.apply(Call(fold_heads).reads(q).contracts<heads>().maps_rest().yields(with(without(i.dims(q), query), key)));
    k = ops::add(i, k, folded);
    q = ops::rotate(i, q, RotaryConfig{}), k = ops::rotate(i, k, RotaryConfig{});
    Value const all_k = ops::append(i, k, "k"), all_values = ops::append(i, values, "v");
    Value const mixed = ops::attend(i, q, all_k, all_values, 0, 0, 0);
    Value const out = linear(i, mixed, LinearConfig{query, s.outer(), false, Name{"o"}});
    Value const statistic =
        i.apply(Call(square_sum).reads(v).contracts(s.outer()).yields(without(i.dims(v), s.outer())));
    return i.apply(Call(double_small).reads(out).reads(statistic).yields(i.dims(out)));
  });
}

}  // namespace tiny
