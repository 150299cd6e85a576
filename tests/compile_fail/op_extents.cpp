// SPDX-License-Identifier: MIT
// A matrix for rows of 16 meets rows of 8.
// expect: op/extents
// expect: docs/errors/op-extents\.md
// expect: named<dovetail::embed>::dim\)?, (One=)?(8|16)L?, (Other=)?(8|16)L?
// expect: in_layer<.*named<Up>::layer
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
constexpr dt::i64 width = 16;
#else
constexpr dt::i64 width = 8;
#endif
struct Up : dt::Linear<dt::LinearConfig{dt::dims(dt::extent<dt::embed>(width)), dt::dims(dt::extent<dt::ffn>(24))}> {};
struct Layout : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Up> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
