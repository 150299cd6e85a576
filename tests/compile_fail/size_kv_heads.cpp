// SPDX-License-Identifier: MIT
// 10 heads of keys and values for 9 of queries: one would be read by none.
// expect: size/range
// expect: docs/errors/size-range\.md
// expect: in_layer<.*named<SelfAttention>::layer
// expect: named<dovetail::kv_heads>::dim\)?>?, (Number=)?10L?, (Unit=)?1L?, (Leaders=)?9L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
constexpr dt::i64 kv_heads = 10;
#else
constexpr dt::i64 kv_heads = 9;
#endif
struct Tp : dt::Axis<"tp", 3> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct SelfAttention : dt::Attention<dt::AttentionConfig{8, 9, kv_heads, 8}> {};
struct Layout : dt::TensorSharded<Tp, dt::Sequential<Embedding, dt::Residual<SelfAttention>>> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 3);
static_assert(plan.count(dt::step::all_reduce) == 2);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
