// SPDX-License-Identifier: MIT
// Two siblings bring in different axes: each would be computed again by the other's ranks.
// expect: mesh/branches
// expect: docs/errors/mesh-branches\.md
// expect: named<Tp>::axis
// expect: named<Other>::axis
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Tp : dt::Axis<"tp", 3> {};
struct Other : dt::Axis<"other", 2> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};

#ifdef FAIL
struct Second : dt::TensorSharded<Other, Mlp> {};
#else
struct Second : dt::TensorSharded<Tp, Mlp> {};
#endif
struct Layout
    : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, dt::Cycle<2, dt::TensorSharded<Tp, Mlp>, Second>> {
};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 3);
static_assert(plan.count(dt::step::all_reduce) == 2 && plan.stage(0).ranks == 3);
