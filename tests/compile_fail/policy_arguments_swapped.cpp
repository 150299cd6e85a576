// SPDX-License-Identifier: MIT
// A policy is given its layer first.
// expect: policy/arguments
// expect: docs/errors/policy-arguments\.md
// expect: in_layer<.*named<Model>::layer
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Tp : dt::Axis<"tp", 3> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
#ifdef FAIL
struct Layout : dt::TensorSharded<Model, Tp> {};
#else
struct Layout : dt::TensorSharded<Tp, Model> {};
#endif

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 3);
static_assert(plan.count(dt::step::all_reduce) == 2);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
