// SPDX-License-Identifier: MIT
// What a plan says of itself to people: the notation of values, the reasons of its steps, the screen that explains it.
#include <dovetail/plan/print.hpp>
#include <set>
#include <sstream>

#include "catch.hpp"
#include "golden.hpp"
#include "printed_plans.hpp"
using namespace printed;

namespace {

std::set<std::string> values_of(dt::Plan const& plan) {
  std::set<std::string> all;
  for (dt::i32 v = 0; v < plan.values.size(); ++v) all.insert(dt::describe(plan, v));
  return all;
}
std::set<std::string> reasons_of(dt::Plan const& plan) {
  std::set<std::string> all;
  for (dt::i32 i = 0; i < plan.steps.size(); ++i)
    if (dt::communicates(plan.steps[i].kind) || plan.steps[i].kind == dt::StepKind::send)
      all.insert(dt::reason(plan, i));
  return all;
}
}  // namespace

TEST_CASE("values are written in one notation") {
  auto const owned = planned<Layout>();
  auto const values = values_of(owned.view());
  CHECK(values.count("i32[batch/dp,sequence]"));
  CHECK(values.count("f32[batch/dp,sequence,embed]"));
  CHECK(values.count("f32[batch/dp,sequence,embed]+tp"));
  CHECK(values.count("f32[batch/dp,sequence,heads/tp,64]"));
  CHECK(values.count("f32[batch/dp,keys,kv_heads/tp,64]"));
  CHECK(values.count("f32[ffn/tp,embed]"));
  CHECK(values.count("choice[batch/dp,rows]^tp"));
  auto const shared = planned<dt::TensorSharded<Tp2, dt::Sequential<Embedding, Attention>>>();
  CHECK(values_of(shared.view()).count("f32[batch,sequence,kv_heads~tp,2]"));
}

TEST_CASE("two axes on one dim stand outermost first, and element types follow the device") {
  struct Inner : dt::Axis<"inner", 2> {};
  auto const owned = planned<dt::Mapped<Dp, dt::Mapped<Inner, dt::Sequential<Embedding, Mlp>, dt::ffn>, dt::ffn>>();
  dt::Plan const plan = owned.view();
  CHECK(values_of(plan).count("f32[ffn/dp/inner,embed]"));
  CHECK(dt::describe(plan, plan.result, dt::f64_storage).rfind("f64[", 0) == 0);
  CHECK(dt::element_word(dt::Storage::cache, dt::StorageBytes{{4, 4, 2, 4, 16, 8}}) == "half");
  CHECK(dt::element_word(dt::Storage::count, dt::f32_storage) == "i64");
}

TEST_CASE("reasons are found from the steps around") {
  auto const owned = planned<Layout>();
  auto const reasons = reasons_of(owned.view());
  CHECK(reasons.count("add (layers.*) needs it whole: sum over tp of a contraction over heads (matmul)"));
  CHECK(reasons.count("add (layers.*) needs it whole: sum over tp of a contraction over ffn (matmul)"));
  CHECK(reasons.count("output choice needs it whole: maximum over tp of a contraction over vocab (choose)"));
}

TEST_CASE("reasons of sequence parallelism: scatter and gather") {
  auto const owned = planned<dt::TensorSharded<Tp, dt::Sequential<Embedding, dt::Repeat<2, SequenceNorms<Tp>>>>>();
  auto const reasons = reasons_of(owned.view());
  CHECK(reasons.count("matmul (layers.*.attention.q) needs it whole: rms_scale leaves it split by sequence"));
  bool scatters = false;
  for (auto const& r : reasons)
    scatters = scatters || contains(r, "takes it split by sequence: sum over tp of a contraction over heads (matmul)");
  CHECK(scatters);
}

TEST_CASE("a user's op and layer are explained like the built-in ones") {
  static constexpr dt::Op mix{.name = "mix"};
  struct Mixer {
    static constexpr dt::Value apply(dt::Builder& b, dt::Value x) {
      return b.in_layer(nullptr, "mixer", x, [](dt::Builder& inner, dt::Value v) {
        return inner.apply(
            dt::Call(mix).reads(v).maps<dt::batch, dt::embed>().needs_whole<dt::sequence>().yields(inner.dims(v)));
      });
    }
  };
  auto const owned = planned<dt::SequenceSharded<Tp, dt::Sequential<Embedding, Mixer>>>();
  CHECK(reasons_of(owned.view()) ==
        std::set<std::string>{"mix (mixer) needs it whole: lookup leaves it split by sequence"});
}

TEST_CASE("a partial sum is traced through the ops that let it through") {
  struct Biased : dt::Linear<dt::LinearConfig{dt::dims(dt::extent<dt::ffn>(27)), dt::dims(dt::extent<dt::embed>(18)),
                                              true, dt::Name{"down"}}> {};
  struct Up : dt::Linear<dt::LinearConfig{dt::dims(dt::extent<dt::embed>(18)), dt::dims(dt::extent<dt::ffn>(27)), false,
                                          dt::Name{"up"}}> {};
  auto const owned = planned<dt::TensorSharded<Tp, dt::Sequential<Embedding, Norm, Up, Biased>>>();
  CHECK(reasons_of(owned.view()).count("the result needs it whole: sum over tp of a contraction over ffn (matmul)"));
}

TEST_CASE("what an axis does not divide is named") {
  auto const smol = planned<Layout>();
  auto const alike = dt::computed_alike(smol.view(), 0, 1);
  CHECK(alike == std::vector<std::string>{"layers.*.attention_norm", "add (layers.*)", "layers.*.mlp_norm"});
  CHECK(dt::computed_alike(smol.view(), 0, 0).empty());
  struct Fresh : dt::Sequential<Embedding, dt::Repeat<2, dt::Sequential<Norm, dt::TensorSharded<Tp, Mlp>>>> {};
  auto const fresh = planned<Fresh>();
  CHECK(dt::computed_alike(fresh.view(), 0, 0) == std::vector<std::string>{"lookup", "layers.*.norm"});
  struct Idle : dt::Mapped<Tp, dt::Sequential<Embedding, Norm>> {};
  auto const idle = planned<Idle>();
  CHECK(dt::computed_alike(idle.view(), 0, 0) == std::vector<std::string>{"everything"});
}

TEST_CASE("the screen of a plan, with a run") {
  auto const owned = planned<Layout>();
  auto const text = dt::explain(owned.view(), run, dt::f32_storage);
  test::Golden const golden("explain-smollm2-dp2-pp2-tp3", "explain() of SmolLM2-135M at dp 2, pp 2, tp 3", text);
  INFO(golden.path);
  CHECK(text == golden.expected);
}

TEST_CASE("the screen of a plan, without a run, with unequal shares and stages that say the same") {
  auto const owned = planned<dt::Pipelined<Pp5, dt::TensorSharded<Unequal, SmolLM2>>>();
  auto const text = dt::explain(owned.view());
  test::Golden const golden("explain-smollm2-pp5-tp2to1",
                            "explain() of SmolLM2-135M at pp 5, tp 2 with shares of 2 to 1", text);
  INFO(golden.path);
  CHECK(text == golden.expected);
  CHECK(contains(text, "stages 1 to 3, ranks 2 to 7, each: 2 ranks (tp 2 as 2:1), 6 layers\n"));
}

TEST_CASE("the screen of sequence parallelism") {
  auto const owned = planned<dt::TensorSharded<Tp, dt::Sequential<Embedding, dt::Repeat<2, SequenceNorms<Tp>>>>>();
  auto const text = dt::explain(owned.view(), run, dt::f64_storage);
  test::Golden const golden("explain-sequence-tp3", "explain() of two blocks with norms on parts of the sequence, tp 3",
                            text);
  INFO(golden.path);
  CHECK(text == golden.expected);
}

TEST_CASE("a screen is a screen: lines fit, and the numbers are the predictions") {
  auto const owned = planned<Layout>();
  dt::Plan const plan = owned.view();
  auto const text = dt::explain(plan, run, dt::f32_storage);
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(line.size() <= 130);
  CHECK(count <= 40);
  CHECK(contains(text, dt::readable_bytes(dt::weight_bytes(plan, 0, dt::f32_storage)) + " of weights (f32)"));
  CHECK(contains(text, dt::readable_bytes(dt::kv_bytes_per_token(plan, 0, dt::f32_storage)) + " of cache (f32)"));
  for (dt::i64 rank = 0; rank < plan.ranks(); rank += plan.ranks_per_replica()) {  // least and most of stage 0
    auto const received = dt::readable_bytes(dt::traffic(plan, rank, run, dt::f32_storage).total.bytes);
    CHECK(contains(text, received.substr(0, received.find(' '))));
  }
}

TEST_CASE("a refused plan is told in one sentence") {
  struct Twelve : dt::Axis<"tp", 12> {};
  auto const owned = planned<dt::TensorSharded<Twelve, SmolLM2>>();
  dt::Plan const plan = owned.view();
  auto const sentence = dt::sentence(plan.verdict);
  CHECK(dt::explain(plan) == "refused: placement/split: " + sentence + "\n");
  CHECK(dt::explain(plan, run, dt::f32_storage) == dt::explain(plan));
}

TEST_CASE("numbers as people read them") {
  CHECK(dt::readable_bytes(0) == "0 B");
  CHECK(dt::readable_bytes(999) == "999 B");
  CHECK(dt::readable_bytes(1000) == "1.0 kB");
  CHECK(dt::readable_bytes(1049) == "1.0 kB");
  CHECK(dt::readable_bytes(1050) == "1.1 kB");
  CHECK(dt::readable_bytes(94'371'840) == "94.4 MB");
  CHECK(dt::readable_bytes(811'706'777'600) == "811.7 GB");
  CHECK(dt::counted(1, "rank") == "1 rank");
  CHECK(dt::counted(0, "rank") == "0 ranks");
}
