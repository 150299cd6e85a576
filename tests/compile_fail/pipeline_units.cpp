// SPDX-License-Identifier: MIT
// More stages than layers.
// expect: pipeline/units
// expect: docs/errors/pipeline-units\.md
// expect: on_axis<.*named<Pp>::axis
// expect: (Layers=)?4L?, (Stated=)?0L?, (Stages=)?5L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
struct Pp : dt::Axis<"pp", 5> {};
#else
struct Pp : dt::Axis<"pp", 4> {};
#endif
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, dt::Repeat<4, Mlp>> {};
struct Layout : dt::Pipelined<Pp, Model> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.stages() == 4 && plan.ranks() == 4);
static_assert(plan.edges.size() == 3 && plan.edges[0].to_stage == 1);

constexpr dt::SequenceRun prompt[] = {{0, 5, 1}};
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) < 4 * dt::KiB + 2 * dt::MiB);
static_assert(dt::traffic(plan, 1, {prompt, 1}, dt::f32_storage).total.bytes == 4 * 5 * 8);
static_assert(dt::arena_of(plan, 0, {prompt, 1}, dt::f32_storage).bytes > 0 && dt::coverage(plan).ok());
static_assert(dt::total_parameters(plan) == 64 * 8 + 4 * 3 * 8 * 24 && dt::same_plan(plan, plan));
constexpr dt::i64 received = dt::total_traffic(plan, {prompt, 1}, dt::f32_storage).of(dt::step::send).bytes;
static_assert(received >= 0);
