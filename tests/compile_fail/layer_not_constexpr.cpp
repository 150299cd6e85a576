// SPDX-License-Identifier: MIT
// A layer whose apply is a function for run time only.
// expect: layer/constant
// expect: docs/errors/layer-constant\.md
// expect(g++): layer_constant<Layout>
// expect(clang++-19): layer_constant<Layout>
// expect(nvcc): layer_constant<Layout> \[with Layout=Layout\]
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Twice {
#ifdef FAIL
  static dt::Value apply(dt::Builder& b, dt::Value x) { return dt::ops::add(b, x, x); }
#else
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) { return dt::ops::add(b, x, x); }
#endif
};
struct Layout : dt::Sequential<Embedding, Twice> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
