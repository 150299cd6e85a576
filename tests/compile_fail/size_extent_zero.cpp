// SPDX-License-Identifier: MIT
// A vocabulary of no words.
// expect: size/range
// expect: docs/errors/size-range\.md
// expect: in_layer<.*named<Embedding>::layer
// expect: named<dovetail::vocab>::dim\)?>?, (Number=)?0L?, (Unit=)?1L?, (Leaders=)?0L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
constexpr dt::i64 words = 0;
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
