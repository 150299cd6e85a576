// SPDX-License-Identifier: MIT
// Qwen2.5 (Qwen team, 2024): a Llama with biases of q, k and v. Qwen3 (2025): without them, with a norm of every query
// and key head.
#pragma once
#include <dovetail/models/llama.hpp>

namespace dovetail::models {

/// A Llama with biases of q, k and v: Qwen2.5.
constexpr LlamaConfig with_qkv_bias(LlamaConfig c) {
  c.qkv_bias = true;
  return c;
}
/// A Llama with norms of every query and key head: Qwen3.
constexpr LlamaConfig with_head_norms(LlamaConfig c) {
  c.qk_norm = QkNorm::per_head;
  return c;
}

inline constexpr LlamaConfig qwen25_0_5b =
    with_qkv_bias(LlamaConfig{896, 24, 14, 2, 64, 4864, 151936, true, rope(1e6), 1e-6});
inline constexpr LlamaConfig qwen25_7b =
    with_qkv_bias(LlamaConfig{3584, 28, 28, 4, 128, 18944, 152064, false, rope(1e6), 1e-6});
inline constexpr LlamaConfig qwen3_0_6b =
    with_head_norms(LlamaConfig{1024, 28, 16, 8, 128, 3072, 151936, true, rope(1e6), 1e-6});

}  // namespace dovetail::models
