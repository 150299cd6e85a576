// SPDX-License-Identifier: MIT
// Shares so unequal that the second rank would get no head.
// expect: placement/split
// expect: docs/errors/placement-split\.md
// expect: named<dovetail::heads>::dim\)?, (Units=)?9L?,
// expect: larger_shares
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
struct Tp : dt::Axis<"tp", dt::Shares<30, 1>{}> {};
#else
struct Tp : dt::Axis<"tp", dt::Shares<30, 3>{}> {};
#endif
struct Model : dt::Llama<dt::models::smollm2_135m> {};
struct Layout : dt::TensorSharded<Tp, Model> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 400 * dt::MiB);
