// SPDX-License-Identifier: MIT
// Mistral (Jiang et al., 2023): a Llama with grouped queries and, in its first version, a sliding window in every
// layer.
#pragma once
#include <dovetail/models/llama.hpp>

namespace dovetail::models {

inline constexpr LlamaConfig mistral_7b_v01{
    4096, 32, 32, 8, 128, 14336, 32000, false, rope(1e4), 1e-5, LayerWindows{4096}};
inline constexpr LlamaConfig mistral_7b_v03{4096, 32, 32, 8, 128, 14336, 32768, false, rope(1e6)};

}  // namespace dovetail::models
