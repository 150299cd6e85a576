// SPDX-License-Identifier: MIT
// Heads of 3 elements, which rotary positions are to rotate in pairs.
// expect: size/range
// expect: docs/errors/size-range\.md
// expect: in_layer<.*named<SelfAttention>::layer
// expect: named<dovetail::head_dim>::dim\)?>?, (Number=)?3L?, (Unit=)?2L?, (Leaders=)?0L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
constexpr dt::i64 head_size = 3;
#else
constexpr dt::i64 head_size = 4;
#endif
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct SelfAttention : dt::Attention<dt::AttentionConfig{8, 2, 1, head_size}> {};
struct Layout : dt::Sequential<Embedding, SelfAttention> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
