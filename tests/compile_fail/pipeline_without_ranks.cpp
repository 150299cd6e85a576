// SPDX-License-Identifier: MIT
// A pipeline of no stages.
// expect: size/range
// expect: docs/errors/size-range\.md
// expect: on_axis<.*named<Pp>::axis\)?>, (Number=)?0L?,
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
struct Pp : dt::Axis<"pp", 0> {};
#else
struct Pp : dt::Axis<"pp", 1> {};
#endif
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
struct Layout : dt::Pipelined<Pp, Model> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.stages() == 1);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
