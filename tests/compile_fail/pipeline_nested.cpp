// SPDX-License-Identifier: MIT
// A pipeline inside a stage of another.
// expect: pipeline/nested
// expect: docs/errors/pipeline-nested\.md
// expect: on_axis<.*named<Inner>::axis
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Outer : dt::Axis<"outer", 2> {};
struct Inner : dt::Axis<"inner", 2> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Half : dt::Repeat<2, Mlp> {};

struct First : dt::PipelineStage<dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Half>> {};
#ifdef FAIL
struct Second : dt::PipelineStage<dt::Pipelined<Inner, Half>> {};
#else
struct Second : dt::PipelineStage<Half> {};
#endif
struct Layout : dt::Pipelined<Outer, First, Second> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 2);
static_assert(plan.on_stage(1).count(dt::step::all_reduce) == 0);
