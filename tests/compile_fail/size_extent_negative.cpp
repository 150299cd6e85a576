// SPDX-License-Identifier: MIT
// A vocabulary of fewer words than none.
// expect: size/range
// expect: docs/errors/size-range\.md
// expect: in_layer<.*named<Embedding>::layer
// expect: named<dovetail::vocab>::dim\)?>?, (Number=)?-64L?, (Unit=)?1L?, (Leaders=)?-64L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
constexpr dt::i64 words = -64;
#else
constexpr dt::i64 words = 64;
#endif
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{words, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Layout : dt::Sequential<Embedding, Mlp> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
