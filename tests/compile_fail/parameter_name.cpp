// SPDX-License-Identifier: MIT
// Two parameters of one layer under one role: a checkpoint could not tell them apart.
// expect: parameter/name
// expect: docs/errors/parameter-name\.md
// expect: in_layer<.*named<Twice>::layer
// expect(g++): up\.weight
// expect(clang++-19): up\.weight
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Twice {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    dt::Dims const width = dt::dims(dt::extent<dt::embed>(8)), hidden = dt::dims(dt::extent<dt::ffn>(24));
    dt::Value const gate = dt::linear(b, x, dt::LinearConfig{width, hidden, false, dt::Name{"up"}});
#ifdef FAIL
    dt::Value const up = dt::linear(b, x, dt::LinearConfig{width, hidden, false, dt::Name{"up"}});
#else
    dt::Value const up = dt::linear(b, x, dt::LinearConfig{width, hidden, false, dt::Name{"gate"}});
#endif
    return dt::ops::multiply(b, gate, up);
  }
};
struct Layout : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Twice> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.parameters.size() == 3);
