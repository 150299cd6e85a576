// SPDX-License-Identifier: MIT
// A layer that repeats takes rows of 8 and yields rows of 24.
// expect: loop/dims
// expect: docs/errors/loop-dims\.md
// expect: named<dovetail::embed>::dim\)?.*8L?.*named<dovetail::ffn>::dim\)?.*24L?
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Embedding : dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}> {};
struct Widen : dt::Linear<dt::LinearConfig{dt::dims(dt::extent<dt::embed>(8)), dt::dims(dt::extent<dt::ffn>(24))}> {};
#ifdef FAIL
struct Layout : dt::Sequential<Embedding, dt::Repeat<3, Widen>> {};
#else
struct Layout : dt::Sequential<Embedding, Widen> {};
#endif

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.values[plan.result].dims.size() == 3);
