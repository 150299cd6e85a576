// SPDX-License-Identifier: MIT
// Two axes of one stage under one name: a printed plan could not tell them apart.
// expect: name/legal
// expect: docs/errors/name-legal\.md
// expect: named<(Dp|Tp)>::axis.*named<(Dp|Tp)>::axis
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Tp : dt::Axis<"tp", 3> {};
#ifdef FAIL
struct Dp : dt::Axis<"tp", 2> {};
#else
struct Dp : dt::Axis<"dp", 2> {};
#endif
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
struct Layout : dt::Replicated<Dp, dt::TensorSharded<Tp, Model>> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 6);
static_assert(plan.mesh(0).size() == 2);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
