// SPDX-License-Identifier: MIT
// A role of 100 characters.
// expect: plan/room
// expect: docs/errors/plan-room\.md
// expect: in_layer<.*named<Half>::layer
// expect(g++): "max_name"
// expect(clang++-19): "max_name"
// expect: at<.*, (Most=)?79L?[>\]]
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
#ifdef FAIL
constexpr char const* role =
    "the_projection_that_brings_what_the_attention_of_a_layer_has_mixed_back_to_the_full_width_of_a_model";
#else
constexpr char const* role = "half";
#endif
struct Half {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) { return b.in_layer(nullptr, role, x, &Mlp::apply); }
};
struct Layout : dt::Sequential<Embedding, Half> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
static_assert(plan.count(dt::step::all_reduce) >= 0);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
