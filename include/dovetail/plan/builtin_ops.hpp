// SPDX-License-Identifier: MIT
// The ops of the built-in layers, as constants alone: layer/ops.hpp has the functions that call them in a plan, and
// every device has a kernel for each. A user's op is one more constant like these.
#pragma once
#include <dovetail/plan/op.hpp>

namespace dovetail {

inline constexpr Op matmul{.name = "matmul", .linear = 0, .flops = 2};          ///< x[.., in] w[out, in]
inline constexpr Op lookup{.name = "lookup"};                                   ///< rows of a table, by token
inline constexpr Op add{.name = "add", .elementwise = true, .additive = true};  ///< x + y
inline constexpr Op multiply{.name = "multiply", .elementwise = true};          ///< x y, elementwise
inline constexpr Op silu{.name = "silu", .elementwise = true};                  ///< x / (1 + exp(-x))
inline constexpr Op gelu{.name = "gelu", .elementwise = true};                  ///< x Phi(x), by the error function
inline constexpr Op gelu_tanh{.name = "gelu_tanh", .elementwise = true};        ///< its approximation by tanh
inline constexpr Op scale{.name = "scale", .elementwise = true};                ///< x times a number
inline constexpr Op softcap{.name = "softcap", .elementwise = true};            ///< cap tanh(x / cap)
inline constexpr Op add_row{.name = "add_row", .elementwise = true, .additive = true};  ///< x + a parameter's row
inline constexpr Op element_sum{.name = "element_sum", .elementwise = true};  ///< sum of x over contracted dims
inline constexpr Op center{.name = "center", .elementwise = true};            ///< x - sum / count
inline constexpr Op square_sum{.name = "square_sum", .elementwise = true};    ///< sum of x^2 over contracted dims
inline constexpr Op rms_scale{.name = "rms_scale", .elementwise = true};  ///< x / sqrt(sum / count + epsilon) * weight
inline constexpr Op rotate{.name = "rotate", .elementwise = true};        ///< rotary embedding of heads, by position
inline constexpr Op append{.name = "append"};                             ///< new keys or values to those of the past
inline constexpr Op as_keys{.name = "as_keys"};                           ///< new rows as keys where there is no past
inline constexpr Op attend{.name = "attend", .flops = 4};                 ///< softmax(q k) v, for each query head
inline constexpr Op mean_rows{.name = "mean_rows"};                       ///< mean over the positions of a sequence
inline constexpr Op take_rows{.name = "take_rows"};                       ///< positions that get logits
inline constexpr Op choose{.name = "choose", .maximum = true};            ///< largest logit and its index

}  // namespace dovetail
