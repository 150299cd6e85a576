// SPDX-License-Identifier: MIT
// A user's op says that it contracts a dim, and yields it.
// expect: op/roles
// expect: docs/errors/op-roles\.md
// expect: named<dovetail::embed>::dim
// expect: in_layer<.*named<Shift>::layer
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

inline constexpr dt::Op shift{.name = "shift", .elementwise = true};
struct Shift {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
    dt::Call call(shift);
    call.reads(x).yields(b.dims(x));
#ifdef FAIL
    call.contracts<dt::embed>();
#endif
    return b.apply(call);
  }
};
struct Layout : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Shift> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 1);
