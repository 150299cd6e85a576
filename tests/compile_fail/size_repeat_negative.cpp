// SPDX-License-Identifier: MIT
// A model of -1 layers. None is legal.
// expect: size/range
// expect: docs/errors/size-range\.md
// expect: in_layer<.*named<Blocks>::layer
// expect: no_axis, (Number=)?-1L?,
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
#ifdef FAIL
struct Blocks : dt::Repeat<-1, Mlp> {};
#else
struct Blocks : dt::Repeat<0, Mlp> {};
#endif
struct Layout : dt::Sequential<Embedding, Blocks> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.stage(0).layers == 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
