// SPDX-License-Identifier: MIT
// A share of less than nothing.
// expect: size/range
// expect: docs/errors/size-range\.md
// expect: on_axis<.*named<Tp>::axis\)?>, (Number=)?-1L?,
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
struct Tp : dt::Axis<"tp", dt::Shares<3, -1>{}> {};
#else
struct Tp : dt::Axis<"tp", dt::Shares<3, 1>{}> {};
#endif
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
struct Layout : dt::TensorSharded<Tp, Model> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 2);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
