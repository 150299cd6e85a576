// SPDX-License-Identifier: MIT
// Small models for tests that run them split and whole: every block shape that the layers can make, with sizes that
// split badly. A model is a planning function and the number of layers that a pipeline deals. Weights are a function of
// (seed, name, global index), so that ranks hold different values and any slice can be filled alone.
#pragma once
#include <cmath>
#include <dovetail/device/kernel.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/models/llama.hpp>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "random_numbers.hpp"

namespace tiny {

using namespace dovetail;

struct Model {
  std::string name{};
  i32 layers = 0;
  i64 vocab_size = 0;
  std::function<Value(Builder&, Value)> apply{};
};

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
  GatedMlpConfig mlp() const {
    GatedMlpConfig c;
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
    return ops::add(i, attention(i, n, s.attention()), gated_mlp(i, n, s.mlp()));
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
    Value const mixed = ops::attend(i, q, ops::append(i, k, "k"), ops::append(i, values, "v"), 0, 0, 0);
    Value const out = linear(i, mixed, LinearConfig{query, s.outer(), false, Name{"o"}});
    Value const statistic =
        i.apply(Call(square_sum).reads(v).contracts(s.outer()).yields(without(i.dims(v), s.outer())));
    return i.apply(Call(double_small).reads(out).reads(statistic).yields(i.dims(out)));
  });
}

// ---- models

inline Value embedded(Builder& b, Value ids, Sizes const& s) {
  return token_embedding(b, ids, EmbeddingConfig{s.vocab, s.embed});
}
inline Value logits(Builder& b, Value x, Sizes const& s) {
  return lm_head(b, s.norm(b, x, "final_norm"),
                 LmHeadConfig{s.vocab, s.embed, !s.tied, name(s.tied ? "embedding.weight" : "head.weight")});
}
/// `layers` layers dealt from `kinds` in turn: block(builder, value, kind).
inline Model model_of(std::string name, i32 layers, i32 kinds, Sizes s, auto block) {
  return {name, layers, s.vocab, [=](Builder& b, Value ids) {
            Value x = embedded(b, ids, s);
            x = ops::cycle(b, x, layers, kinds, [&](Builder& i, Value v, i32 kind) { return block(i, v, s, kind); });
            return logits(b, x, s);
          }};
}

/// Every layer reads what stands before all of them: a split value, a partial sum, the token ids; the end reads one
/// too.
inline Model captured_model(char const* name, i32 layers, Sizes s) {
  return {name, layers, s.vocab, [=](Builder& b, Value ids) {
            Value const first = embedded(b, ids, s);
            Value const wide = linear(b, first, LinearConfig{s.outer(), s.hidden(), false, Name{"skip_up"}});
            Value const skipped = linear(b, wide, LinearConfig{s.hidden(), s.outer(), true, Name{"skip_down"}});
            Dims const table = dims(extent<vocab>(s.vocab), extent<embed>(s.embed));
            Value x = ops::repeat(b, first, layers, [&](Builder& i, Value v) {
              v = ops::residual(i, v, [&](Builder& r, Value u) {
                return attention(r, s.norm(r, u, "attention_norm"), s.attention());
              });
              Value gate = linear(i, s.norm(i, v, "mlp_norm"), LinearConfig{s.outer(), s.hidden(), true, Name{"gate"}});
              gate = ops::multiply(i, ops::silu(i, gate), wide);
              v = ops::add(i, v, linear(i, gate, LinearConfig{s.hidden(), s.outer(), true, Name{"down"}}));
              Value const token = i.apply(Call(lookup)
                                              .reads(ids)
                                              .holds(i.parameter(table, "table"))
                                              .contracts<vocab>()
                                              .maps_rest()
                                              .yields(i.dims(first)));
              return ops::add(i, ops::add(i, v, token), first);
            });
            return logits(b, ops::add(b, x, skipped), s);
          }};
}

/// Keys and values are made once and cached once; the queries of every layer read them.
inline Model shared_cache_model(char const* name, i32 layers, Sizes s) {
  return {name, layers, s.vocab, [=](Builder& b, Value ids) {
            Extent const width = extent<head_dim>(s.head_size);
            Dims const query = dims(extent<heads>(s.heads), width),
                       key = dims(extent<kv_heads>(s.kv_heads, s.heads), width);
            Value const first = embedded(b, ids, s);
            Value const k = linear(b, first, LinearConfig{s.outer(), key, true, Name{"skip_k"}});
            Value const v = linear(b, first, LinearConfig{s.outer(), key, false, Name{"skip_v"}});
            Value const all_k = ops::append(b, ops::rotate(b, k, RotaryConfig{}), "k"), all_v = ops::append(b, v, "v");
            Value const x = ops::repeat(b, first, layers, [&](Builder& i, Value u) {
              u = ops::residual(i, u, [&](Builder& r, Value w) {
                Value q = linear(r, s.norm(r, w, "norm"), LinearConfig{s.outer(), query, true, Name{"q"}});
                Value const normed = rms_norm(r, all_k, RmsNormConfig{dims(width), 1e-5, Name{"k_norm"}});
                q = ops::attend(r, ops::rotate(r, q, RotaryConfig{}), normed, all_v, 0, 0, 0);
                return linear(r, q, LinearConfig{query, s.outer(), true, Name{"o"}});
              });
              return ops::residual(
                  i, u, [&](Builder& r, Value w) { return gated_mlp(r, s.norm(r, w, "mlp_norm"), s.mlp()); });
            });
            return logits(b, x, s);
          }};
}

/// Two repeats after one another, the first with another width; the pipeline deals the layers of both.
inline Model siblings_model(char const* name, i32 first, i32 second, Sizes s, i64 first_ffn) {
  return {name, first + second, s.vocab, [=](Builder& b, Value ids) {
            Sizes other = s;
            other.ffn = first_ffn;
            Value x = embedded(b, ids, s);
            x = ops::repeat(b, x, first, [&](Builder& i, Value v) { return pre_norm_block(i, v, other); });
            x = ops::repeat(b, x, second, [&](Builder& i, Value v) { return pre_norm_block(i, v, s); });
            return logits(b, x, s);
          }};
}
/// A repeat inside a repeat.
inline Model nested_model(char const* name, i32 outer, i32 inner, Sizes s) {
  return {name, outer, s.vocab, [=](Builder& b, Value ids) {
            Value x = embedded(b, ids, s);
            x = ops::repeat(b, x, outer, [&](Builder& o, Value v) {
              v = s.norm(o, v, "outer_norm");
              return ops::repeat(o, v, inner, [&](Builder& i, Value u) { return pre_norm_block(i, u, s); });
            });
            return logits(b, x, s);
          }};
}

/// All of them, by name.
inline std::vector<Model> const& models() {
  auto const pre = [](Builder& b, Value v, Sizes const& s, i32) { return pre_norm_block(b, v, s); };
  auto const post = [](Builder& b, Value v, Sizes const& s, i32) { return post_norm_block(b, v, s); };
  auto const side = [](Builder& b, Value v, Sizes const& s, i32) { return parallel_block(b, v, s); };
  auto const user = [](Builder& b, Value v, Sizes const& s, i32) { return user_block(b, v, s); };
  auto const windowed = [](Builder& b, Value v, Sizes s, i32 kind) {
    s.window = kind == 2 ? 0 : 3;
    s.qk_norm = kind == 2 ? QkNorm::none : QkNorm::per_head;
    return pre_norm_block(b, v, s);
  };
  static std::vector<Model> const all = {
      model_of("llama", 4, 1,
               Sizes{.embed = 18, .heads = 9, .kv_heads = 3, .head_size = 4, .ffn = 22, .vocab = 47, .tied = true},
               pre),
      model_of("qwen", 3, 1,
               Sizes{.embed = 20,
                     .heads = 14,
                     .kv_heads = 2,
                     .head_size = 4,
                     .ffn = 38,
                     .vocab = 61,
                     .ffn_unit = 4,
                     .qkv_bias = true},
               pre),
      model_of("falcon", 2, 1,
               Sizes{.embed = 14,
                     .heads = 71,
                     .kv_heads = 1,
                     .head_size = 2,
                     .ffn = 29,
                     .vocab = 37,
                     .qkv_bias = true,
                     .out_bias = true,
                     .tied = true},
               side),
      model_of(
          "olmo", 3, 1,
          Sizes{.embed = 16, .heads = 9, .kv_heads = 3, .head_size = 4, .ffn = 19, .vocab = 5, .qk_norm = QkNorm::full},
          post),
      model_of("gemma", 8, 3,
               Sizes{.embed = 12, .heads = 4, .kv_heads = 2, .head_size = 4, .ffn = 15, .vocab = 61, .tied = true},
               windowed),
      captured_model("captured", 5,
                     Sizes{.embed = 12, .heads = 6, .kv_heads = 3, .head_size = 2, .ffn = 13, .vocab = 23}),
      siblings_model(
          "siblings", 2, 3,
          Sizes{.embed = 10, .heads = 5, .kv_heads = 5, .head_size = 2, .ffn = 17, .vocab = 31, .tied = true}, 9),
      nested_model("nested", 3, 2,
                   Sizes{.embed = 12, .heads = 8, .kv_heads = 1, .head_size = 2, .ffn = 11, .vocab = 29}),
      shared_cache_model("shared_cache", 4,
                         Sizes{.embed = 14,
                               .heads = 7,
                               .kv_heads = 2,
                               .head_size = 2,
                               .ffn = 12,
                               .vocab = 19,
                               .out_bias = true,
                               .tied = true}),
      model_of("user", 3, 1,
               Sizes{.embed = 15, .heads = 10, .kv_heads = 4, .head_size = 2, .ffn = 1, .vocab = 17, .qkv_bias = true},
               user),
  };
  return all;
}

/// A model whose sizes, options and pattern of blocks are drawn: "random 7".
inline Model random_model(std::uint64_t seed) {
  using Block = Value (*)(Builder&, Value, Sizes const&);
  static constexpr Block blocks[] = {pre_norm_block, post_norm_block, parallel_block, user_block};
  test::Random random(seed);
  Sizes s;
  s.embed = random.between(3, 24), s.heads = random.between(1, 12), s.head_size = 2 * random.between(1, 3);
  s.kv_heads = random.between(1, static_cast<i32>(s.heads));
  s.ffn = random.between(2, 30), s.ffn_unit = random.one_in(3) ? random.between(2, 5) : 1;
  s.vocab = random.between(2, 67);
  s.qkv_bias = random.one_in(2), s.out_bias = random.one_in(2), s.tied = random.one_in(2);
  std::vector<std::pair<Block, Sizes>> pattern;
  for (i32 kinds = random.between(1, 3); kinds > 0; --kinds) {
    s.qk_norm = static_cast<QkNorm>(random.between(0, 2)), s.window = random.one_in(3) ? random.between(1, 4) : 0;
    pattern.emplace_back(blocks[random.between(0, 3)], s);
  }
  return model_of("random " + std::to_string(seed), random.between(1, 7), static_cast<i32>(pattern.size()), s,
                  [=](Builder& b, Value v, Sizes const&, i32 kind) {
                    auto const& [block, sizes] = pattern[static_cast<std::size_t>(kind)];
                    return block(b, v, sizes);
                  });
}

/// @throws std::invalid_argument
inline Model model(std::string const& name) {
  for (auto const& m : models())
    if (m.name == name) return m;
  if (name.starts_with("random ")) return random_model(std::stoull(name.substr(7)));
  throw std::invalid_argument("there is no tiny model '" + name + "'");
}

}  // namespace tiny
