// SPDX-License-Identifier: MIT
// A policy splits heads, and nothing inside has any.
// expect: policy/unused
// expect: docs/errors/policy-unused\.md
// expect: named<Tp>::axis
// expect: named<dovetail::heads>::dim
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Tp : dt::Axis<"tp", 3> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
#ifdef FAIL
struct Layout : dt::Mapped<Tp, Embedding, dt::heads> {};
#else
struct Layout : dt::Mapped<Tp, Embedding, dt::vocab> {};
#endif

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 3);
static_assert(plan.count(dt::step::all_reduce) == 1);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
