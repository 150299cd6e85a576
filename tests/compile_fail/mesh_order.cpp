// SPDX-License-Identifier: MIT
// Two siblings nest the same two axes in opposite order, so a rank would have two coordinates on each.
// expect: mesh/order
// expect: docs/errors/mesh-order\.md
// expect: named<Dp>::axis
// expect: named<Tp>::axis
// expect: in_layer<
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Dp : dt::Axis<"dp", 2> {};
struct Tp : dt::Axis<"tp", 3> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};

struct First : dt::Replicated<Dp, dt::TensorSharded<Tp, Mlp>> {};
#ifdef FAIL
struct Second : dt::TensorSharded<Tp, dt::Replicated<Dp, Mlp>> {};
#else
struct Second : dt::Replicated<Dp, dt::TensorSharded<Tp, Mlp>> {};
#endif
struct Numbered : dt::Cycle<2, First, Second> {};
struct Layout : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Numbered> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 6);
