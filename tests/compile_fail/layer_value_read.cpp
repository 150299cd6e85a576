// SPDX-License-Identifier: MIT
// An op reads a value that no builder made.
// expect: layer/value
// expect: docs/errors/layer-value\.md
// expect: in_layer<.*named<Half>::layer
// expect(g++): "add"
// expect(clang++-19): "add"
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Half {
  static constexpr dt::Value apply([[maybe_unused]] dt::Builder& b, [[maybe_unused]] dt::Value x) {
#ifdef FAIL
    return dt::ops::add(b, x, dt::Value{});
#else
    return dt::ops::add(b, x, x);
#endif
  }
};
struct Layout : dt::Sequential<Embedding, Half> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
