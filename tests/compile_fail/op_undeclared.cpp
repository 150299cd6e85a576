// SPDX-License-Identifier: MIT
// A user's op meets a dim that a policy split, and does not say what it does with it. It is never gathered silently.
// expect: op/undeclared
// expect: docs/errors/op-undeclared\.md
// expect: named<dovetail::ffn>::dim
// expect: named<Tp>::axis
// expect: in_layer<.*named<Reorder>::layer
// expect(g++): "reorder"
// expect(clang++-19): "reorder"
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Tp : dt::Axis<"tp", 2> {};
inline constexpr dt::Op reorder{.name = "reorder"};

struct Up : dt::Linear<dt::LinearConfig{dt::dims(dt::extent<dt::embed>(8)), dt::dims(dt::extent<dt::ffn>(24))}> {};
struct Reorder {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    dt::Call call(reorder);
    call.reads(x).maps<dt::batch, dt::sequence>().yields(b.dims(x));
#ifndef FAIL
    call.needs_whole<dt::ffn>();
#endif
    return b.apply(call);
  }
};
struct Layout : dt::TensorSharded<Tp, dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Up, Reorder>> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 2 && plan.count(dt::step::all_gather) == 1);
