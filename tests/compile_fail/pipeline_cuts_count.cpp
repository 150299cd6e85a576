// SPDX-License-Identifier: MIT
// Cuts for three stages on an axis of two ranks.
// expect: pipeline/units
// expect: docs/errors/pipeline-units\.md
// expect: on_axis<.*named<Pp>::axis\)?>, (Layers=)?4L?, (Stated=)?4L?, (Stages=)?2L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Pp : dt::Axis<"pp", 2> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
#ifdef FAIL
struct Layout : dt::Pipelined<Pp, dt::Cuts<2, 1, 1>, Model> {};
#else
struct Layout : dt::Pipelined<Pp, dt::Cuts<3, 1>, Model> {};
#endif

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 2);
static_assert(plan.stages() == 2);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
