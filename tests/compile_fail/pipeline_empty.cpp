// SPDX-License-Identifier: MIT
// A stage between two others runs no layer.
// expect: pipeline/empty
// expect: docs/errors/pipeline-empty\.md
// expect: on_axis<.*named<Pp>::axis\)?>, (Stage=)?1L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Pp : dt::Axis<"pp", 3> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<30, Mlp>> {};
#ifdef FAIL
struct Layout : dt::Pipelined<Pp, dt::Cuts<15, 0, 15>, Model> {};
#else
struct Layout : dt::Pipelined<Pp, dt::Cuts<14, 2, 14>, Model> {};
#endif

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 3);
static_assert(plan.stages() == 3 && plan.stage(1).layers == 2);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
