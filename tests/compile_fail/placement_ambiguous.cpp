// SPDX-License-Identifier: MIT
// One axis is given both dims of one matrix; it can split only one of them.
// expect: placement/ambiguous
// expect: docs/errors/placement-ambiguous\.md
// expect: named<Tp>::axis
// expect: named<dovetail::ffn>::dim
// expect: named<dovetail::embed>::dim
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Tp : dt::Axis<"tp", 2> {};
struct Mlp : dt::GatedMlp<dt::MlpConfig{8, 24}> {};
struct Model : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Mlp> {};
#ifdef FAIL
struct Layout : dt::Mapped<Tp, Model, dt::ffn, dt::embed> {};
#else
struct Layout : dt::Mapped<Tp, Model, dt::ffn> {};
#endif

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 2 && plan.count(dt::step::all_reduce) == 1);
