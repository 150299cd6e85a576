// SPDX-License-Identifier: MIT
// A dim without a name.
// expect: name/legal
// expect: docs/errors/name-legal\.md
// expect: in_layer<.*named<Up>::layer
// expect: of_dim<.*named<(Wide|wide)>::dim
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
struct wide : dt::Dim<""> {};
#else
struct wide : dt::Dim<"wide"> {};
#endif
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Up : dt::Linear<dt::LinearConfig{dt::dims(dt::extent<dt::embed>(8)), dt::dims(dt::extent<wide>(24))}> {};
struct Layout : dt::Sequential<Embedding, Up> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
