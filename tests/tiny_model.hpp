// SPDX-License-Identifier: MIT
// Small models for tests that run them split and whole, with sizes that split badly: by name, or drawn from a number. A
// model is a planning function and the number of layers that a pipeline deals.
#pragma once
#include <dovetail/models/falcon.hpp>
#include <dovetail/models/gemma2.hpp>
#include <dovetail/models/gpt2.hpp>
#include <functional>
#include <stdexcept>

#include "tiny_blocks.hpp"

namespace tiny {

struct Model {
  std::string name{};
  i32 layers = 0;
  i64 vocab_size = 0;
  std::function<Value(Builder&, Value)> apply{};
};

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

/// The first `layers` windows of the pattern, by layer.
inline Model gemma2_model(char const* name, std::vector<i64> const& windows, Gemma2Config c) {
  c.layers = static_cast<i32>(windows.size());
  return {name, c.layers, c.vocab_size, [=](Builder& b, Value ids) {
            return gemma2(b, ids, c, [&](i32 layer) { return windows[static_cast<std::size_t>(layer)]; });
          }};
}
inline Model gpt2_model(char const* name, Gpt2Config const& c) {
  return {name, c.layers, c.vocab_size, [=](Builder& b, Value ids) { return gpt2(b, ids, c); }};
}
inline Model falcon_model(char const* name, FalconConfig const& c) {
  return {name, c.layers, c.vocab_size, [=](Builder& b, Value ids) { return falcon(b, ids, c); }};
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
      gpt2_model("gpt2", Gpt2Config{20, 3, 5, 27, 41, 64}),
      gpt2_model("gpt2_untied", Gpt2Config{18, 4, 9, 18, 13, 40, 1e-4, false, &gelu}),
      falcon_model("falcon_norms",
                   FalconConfig{24, 4, 12, 3, 35, 29, 1e-5, {}, true, true, FalconBlockKind::two_norms}),
      falcon_model("falcon_sequential",
                   FalconConfig{28, 3, 7, 7, 20, 23, 1e-5, {}, false, true, FalconBlockKind::sequential}),
      gemma2_model("gemma2", {3, 0, 3, 0, 3},
                   Gemma2Config{.embed_size = 12,
                                .head_count = 6,
                                .kv_head_count = 2,
                                .head_size = 4,
                                .ffn_size = 17,
                                .vocab_size = 31,
                                .embedding_scale = 3.5,
                                .query_scale = 0.4,
                                .score_cap = 5,
                                .logit_cap = 3}),
      gemma2_model("gemma2_odd", {0, 2, 2, 0, 2, 0, 0},
                   Gemma2Config{.embed_size = 10,
                                .head_count = 8,
                                .kv_head_count = 1,
                                .head_size = 2,
                                .ffn_size = 9,
                                .vocab_size = 7,
                                .tied = false,
                                .attention_bias = true}),
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
