// SPDX-License-Identifier: MIT
// A pipeline is given its cuts after its layer.
// expect: policy/arguments
// expect: docs/errors/policy-arguments\.md
// expect: in_layer<.*named<dovetail::Pipelined<Pp, Model, dovetail::Cuts<3, 1>\s?>\s?>::layer
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Pp : dt::Axis<"pp", 2> {};
struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<Embedding, dt::Repeat<4, Mlp>> {};
#ifdef FAIL
struct Layout : dt::Pipelined<Pp, Model, dt::Cuts<3, 1>> {};
#else
struct Layout : dt::Pipelined<Pp, dt::Cuts<3, 1>, Model> {};
#endif

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 2);
static_assert(plan.stages() == 2 && plan.stage(0).layers == 3);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
