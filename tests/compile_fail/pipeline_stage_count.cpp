// SPDX-License-Identifier: MIT
// Two stages spelt out on an axis of three ranks.
// expect: pipeline/units
// expect: docs/errors/pipeline-units\.md
// expect: on_axis<.*named<Pp>::axis\)?>, (Layers=)?2L?, (Stated=)?2L?, (Stages=)?3L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
struct Pp : dt::Axis<"pp", 3> {};
#else
struct Pp : dt::Axis<"pp", 2> {};
#endif
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
struct Layout : dt::Pipelined<Pp, dt::PipelineStage<Model>, dt::PipelineStage<Mlp>> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 2);
static_assert(plan.stages() == 2);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
