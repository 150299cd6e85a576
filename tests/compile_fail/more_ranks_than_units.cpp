// SPDX-License-Identifier: MIT
// Twelve ranks for nine heads. What is asserted of the refused plan afterwards stays silent, whatever it says.
// expect: placement/split
// expect: docs/errors/placement-split\.md
// expect: in_layer<.*named<SelfAttention>::layer
// expect(g++): layers\.\*\.attention\.q
// expect(clang++-19): layers\.\*\.attention\.q
// expect: named<dovetail::heads>::dim\)?, (Units=)?9L?,
// expect: named<Tp>::axis\)?, (Ranks=)?12L?,
// expect: sizes<1L?, 9L?>
// expect(g++): planned<Layout>
// expect(clang++-19): planned<Layout>
// expect(nvcc): planned<Layout> \[with Layout=Layout\]
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

#ifdef FAIL
struct Tp : dt::Axis<"tp", 12> {};
#else
struct Tp : dt::Axis<"tp", 9> {};
#endif

constexpr dt::AttentionConfig attention{.embed_size = 576, .head_count = 9, .kv_head_count = 3, .head_size = 64};
struct SelfAttention : dt::Attention<attention> {};
struct Block : dt::Residual<SelfAttention> {};
struct Model : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{512, 576}>, dt::Repeat<30, Block>> {};
struct Layout : dt::TensorSharded<Tp, Model> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 9);
static_assert(plan.ok() && plan.count(dt::step::all_reduce) == 2 && 30 < plan.executed(dt::step::all_reduce));
static_assert(!(plan.stages() > 1) && plan.within<Block>().count(dt::step::all_reduce) == 1);
static_assert(plan.mesh(0)[0]->size == 9 && plan.edges.size() == 0 && plan.stage(0).layers == 30);
static_assert(plan.weight_bytes_per_rank() < 100 * dt::MiB);
