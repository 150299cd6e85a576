// SPDX-License-Identifier: MIT
// The ops of the built-in layers, as constants alone: layer/ops.hpp has the functions that call them in a plan, and
// every device has a kernel for each. A user's op is one more constant like these.
#pragma once
#include <dovetail/plan/op.hpp>

namespace dovetail {

inline constexpr Op matmul{.name = "matmul", .linear = 0, .flops = 2};
inline constexpr Op lookup{.name = "lookup"};
inline constexpr Op add{.name = "add", .elementwise = true, .additive = true};
inline constexpr Op multiply{.name = "multiply", .elementwise = true};
inline constexpr Op silu{.name = "silu", .elementwise = true};
inline constexpr Op gelu{.name = "gelu", .elementwise = true};            ///< x Phi(x), by the error function
inline constexpr Op gelu_tanh{.name = "gelu_tanh", .elementwise = true};  ///< its approximation by tanh
inline constexpr Op scale{.name = "scale", .elementwise = true};
inline constexpr Op softcap{.name = "softcap", .elementwise = true};  ///< cap tanh(x / cap)
inline constexpr Op add_row{.name = "add_row", .elementwise = true, .additive = true};
inline constexpr Op element_sum{.name = "element_sum", .elementwise = true};
inline constexpr Op center{.name = "center", .elementwise = true};
inline constexpr Op square_sum{.name = "square_sum", .elementwise = true};
inline constexpr Op rms_scale{.name = "rms_scale", .elementwise = true};
inline constexpr Op rotate{.name = "rotate", .elementwise = true};
inline constexpr Op append{.name = "append"};
inline constexpr Op as_keys{.name = "as_keys"};
inline constexpr Op attend{.name = "attend", .flops = 4};
inline constexpr Op mean_rows{.name = "mean_rows"};
inline constexpr Op take_rows{.name = "take_rows"};
inline constexpr Op choose{.name = "choose", .maximum = true};

}  // namespace dovetail
