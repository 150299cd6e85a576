// SPDX-License-Identifier: MIT
// Phi-3 (Abdin et al., 2024): a Llama whose checkpoints keep q, k and v in one tensor, and gate and up in another.
#pragma once
#include <dovetail/models/llama.hpp>

namespace dovetail {

/// Tensors of a checkpoint: rows of q, then k, then v; rows of gate, then up.
constexpr CheckpointNames phi3_names(LlamaConfig const& c) {
  i64 const q = c.head_count * c.head_size, kv = c.kv_head_count * c.head_size, f = c.ffn_size;
  return checkpoint_names({
      {"embedding.weight", "model.embed_tokens.weight"},
      {"head.weight", "lm_head.weight"},
      {"final_norm.weight", "model.norm.weight"},
      {"layers.*.attention_norm.weight", "model.layers.*.input_layernorm.weight"},
      {"layers.*.mlp_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
      {"layers.*.attention.q.*", "model.layers.*.self_attn.qkv_proj.*", {.of = q + 2 * kv}},
      {"layers.*.attention.k.*", "model.layers.*.self_attn.qkv_proj.*", {.of = q + 2 * kv, .first = q}},
      {"layers.*.attention.v.*", "model.layers.*.self_attn.qkv_proj.*", {.of = q + 2 * kv, .first = q + kv}},
      {"layers.*.attention.o.*", "model.layers.*.self_attn.o_proj.*"},
      {"layers.*.mlp.gate.*", "model.layers.*.mlp.gate_up_proj.*", {.of = 2 * f}},
      {"layers.*.mlp.up.*", "model.layers.*.mlp.gate_up_proj.*", {.of = 2 * f, .first = f}},
      {"layers.*.mlp.down.*", "model.layers.*.mlp.down_proj.*"},
  });
}

namespace models {

inline constexpr LlamaConfig phi3_mini_4k{
    3072, 32, 32, 32, 96, 8192, 32064, false, rope(1e4), 1e-5, LayerWindows{2047}};

}  // namespace models
}  // namespace dovetail
