// SPDX-License-Identifier: MIT
// The same axis with the same dims, one inside the other: the inner one would change nothing.
// expect: policy/twice
// expect: docs/errors/policy-twice\.md
// expect: named<Tp>::axis
// expect: named<dovetail::heads>::dim
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Tp : dt::Axis<"tp", 3> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};

#ifdef FAIL
struct Inner : dt::TensorSharded<Tp, Mlp> {};
#else
struct Inner : Mlp {};
#endif
struct Layout : dt::TensorSharded<Tp, dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Inner>> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 3 && plan.verdict.ok());
