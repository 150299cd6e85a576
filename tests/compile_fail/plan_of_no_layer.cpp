// SPDX-License-Identifier: MIT
// The plan of a number.
// expect: layer/apply
// expect: docs/errors/layer-apply\.md
// expect: in_layer<.*named<int>::layer
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};

#ifdef FAIL
constexpr auto& plan = dt::plan_of<int>;
#else
constexpr auto& plan = dt::plan_of<Embedding>;
#endif
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
