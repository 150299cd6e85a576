// SPDX-License-Identifier: MIT
// A call that reads more values than it has room for.
// expect: plan/room
// expect: docs/errors/plan-room\.md
// expect: in_layer<.*named<Half>::layer
// expect(g++): "max_operands"
// expect(clang++-19): "max_operands"
// expect: at<.*, (Most=)?4L?[>\]]
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
inline constexpr dt::Op merge{.name = "merge", .elementwise = true};
struct Half {
  static constexpr dt::Value apply([[maybe_unused]] dt::Builder& b, [[maybe_unused]] dt::Value x) {
#ifdef FAIL
    return b.apply(dt::Call(merge).reads(x).reads(x).reads(x).reads(x).reads(x).yields(b.dims(x)));
#else
    return b.apply(dt::Call(merge).reads(x).reads(x).reads(x).reads(x).yields(b.dims(x)));
#endif
  }
};
struct Layout : dt::Sequential<Embedding, Half> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
