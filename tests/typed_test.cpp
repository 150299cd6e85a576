// SPDX-License-Identifier: MIT
// The typed level: what ops make of placements, as types; and that the parts which ranks compute and exchange by hand
// are the parts of the whole result, exactly, on integer values. What must not compile is in compile_fail/typed_*.cpp.
#include <dovetail/comm/threads.hpp>
#include <dovetail/layer/mlp.hpp>
#include <dovetail/policy/mapped.hpp>
#include <dovetail/typed/typed.hpp>

#include "catch.hpp"
namespace dt = dovetail;
using namespace dovetail::typed;
using dt::batch, dt::embed, dt::ffn, dt::heads, dt::kv_heads;

namespace {

struct Tp2 : dt::Axis<"tp", 2> {};
struct Tp3 : dt::Axis<"tp", 3> {};
struct Tp5 : dt::Axis<"tp", 5> {};
struct Unequal : dt::Axis<"tp", dt::Shares<3, 0, 1>{}> {};
struct Dp : dt::Axis<"dp", 2> {};

template <class A, class P>
using Rows = Tensor<float, Shape<Of<batch, 4>, Of<embed, 6>>, On<A, P>>;
template <class A, class P>
using Inner = Tensor<float, Shape<Of<batch, 4>, Of<ffn, 15>>, On<A, P>>;
template <class A, class P>
using Up = Tensor<float, Shape<Of<ffn, 15>, Of<embed, 6>>, On<A, P>>;
template <class A, class P>
using Down = Tensor<float, Shape<Of<embed, 6>, Of<ffn, 15>>, On<A, P>>;

template <class... X>
using Contracted = decltype(contract(std::declval<X const&>()...));
template <class... X>
using Added = decltype(add(std::declval<X const&>()...));

std::vector<float> integers(dt::i64 count, int seed) {
  std::vector<float> values;
  for (dt::i64 i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7 + seed * 5) % 9 - 4));
  return values;
}
std::vector<float> copy_of(std::span<float const> values) { return {values.begin(), values.end()}; }

dt::Coordinate at(std::initializer_list<int> coordinates) {
  dt::Coordinate c;
  for (int i : coordinates) c.push(i);
  return c;
}
std::vector<int> ranks_of(int first, int count, int stride = 1) {
  std::vector<int> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(first + r * stride);
  return ranks;
}

/// f(communicator) on every rank; what each rank returned.
template <class F>
auto on_ranks(int ranks, F const& f) {
  dt::ThreadWorld world(ranks);
  std::vector<decltype(f(world.communicator(0)))> results(static_cast<std::size_t>(ranks));
  world.run([&](dt::ThreadCommunicator& c) { results[static_cast<std::size_t>(c.rank())] = f(c); });
  return results;
}

std::vector<float> whole_product(std::vector<float> const& x, std::vector<float> const& w, std::size_t depth) {
  std::vector<float> y;
  for (std::size_t m = 0; m < x.size(); m += depth)
    for (std::size_t n = 0; n < w.size(); n += depth) {
      float sum = 0;
      for (std::size_t k = 0; k < depth; ++k) sum += x[m + k] * w[n + k];
      y.push_back(sum);
    }
  return y;
}

}  // namespace

// Placements of results.
static_assert(std::is_same_v<Contracted<Rows<Tp3, Whole>, Up<Tp3, Split<ffn>>>, Inner<Tp3, Split<ffn>>>);
static_assert(std::is_same_v<Contracted<Rows<Tp3, Whole>, Up<Tp3, Whole>>, Inner<Tp3, Whole>>);
static_assert(std::is_same_v<Contracted<Rows<Tp3, Split<embed>>, Up<Tp3, Split<embed>>>, Inner<Tp3, Partial>>);
static_assert(std::is_same_v<Contracted<Rows<Tp3, Split<batch>>, Up<Tp3, Whole>>, Inner<Tp3, Split<batch>>>);
static_assert(std::is_same_v<Contracted<Inner<Tp3, Split<ffn>>, Down<Tp3, Split<ffn>>>, Rows<Tp3, Partial>>);
static_assert(std::is_same_v<Added<Rows<Tp3, Partial>, Rows<Tp3, Partial>>, Rows<Tp3, Partial>>);
static_assert(std::is_same_v<Added<Rows<Tp3, Split<embed>>, Rows<Tp3, Split<embed>>>, Rows<Tp3, Split<embed>>>);

// A bias has the last dims only, and is split where they are.
template <class P>
using Bias = Tensor<float, Shape<Of<ffn, 15>>, On<Tp3, P>>;
static_assert(std::is_same_v<Added<Inner<Tp3, Split<ffn>>, Bias<Split<ffn>>>, Inner<Tp3, Split<ffn>>>);
static_assert(std::is_same_v<Added<Inner<Tp3, Split<batch>>, Bias<Whole>>, Inner<Tp3, Split<batch>>>);

TEST_CASE("types and plans are placed by one rule") {
  struct Mlp : dt::GatedMlp<dt::MlpConfig{6, 15}> {};
  auto const owned = dt::build([](dt::Builder& b, dt::Value) {
    dt::Value const x = b.input(dt::dims(dt::extent<batch>(4), dt::extent<embed>(6)), dt::Storage::activation);
    return dt::apply_layer<dt::TensorSharded<Tp3, Mlp>>(b, x);
  });
  dt::Plan const plan = owned.view();
  std::vector<dt::Places> products;
  for (auto const& s : plan.steps)
    if (s.op == &dt::matmul) products.push_back(plan.values[s.results[0]].places);
  REQUIRE(products.size() == 3);
  CHECK(products[0] == Contracted<Rows<Tp3, Whole>, Up<Tp3, Split<ffn>>>::places);
  CHECK(products[2] == Contracted<Inner<Tp3, Split<ffn>>, Down<Tp3, Split<ffn>>>::places);
}

namespace {

/// Every rank's result of an MLP by hand.
template <class Tp>
std::vector<std::vector<float>> mlp_on_ranks(std::vector<float> const& x_whole, std::vector<float> const& up_whole,
                                             std::vector<float> const& down_whole) {
  int const ranks = dt::axis_of<Tp>->size;
  return on_ranks(ranks, [&](dt::ThreadCommunicator& c) {
    auto const group = c.group(ranks_of(0, ranks));
    auto const here = at({c.rank()});
    auto const x = Rows<Tp, Whole>::part_of(x_whole, here);
    auto const up = Up<Tp, Split<ffn>>::part_of(up_whole, here);
    auto const down = Down<Tp, Split<ffn>>::part_of(down_whole, here);
    auto const gate = map([](float v) { return v > 0 ? v : 0; }, contract(x, up));
    auto const h = map([](float a, float b) { return a * b; }, gate, contract(x, up));
    return copy_of(add(x, all_reduce<Tp>(c, group, contract(h, down))).local());
  });
}

}  // namespace

TEST_CASE("an MLP by hand equals the whole one on every rank, evenly split or not") {
  auto const x = integers(4 * 6, 1), up = integers(15 * 6, 2), down = integers(6 * 15, 3);
  auto h = whole_product(x, up, 6);
  for (auto& v : h) v = v > 0 ? v * v : 0;
  auto expected = whole_product(h, down, 15);
  for (std::size_t i = 0; i < x.size(); ++i) expected[i] += x[i];
  for (auto const& got : mlp_on_ranks<Tp2>(x, up, down)) CHECK(got == expected);
  for (auto const& got : mlp_on_ranks<Tp3>(x, up, down)) CHECK(got == expected);
  for (auto const& got : mlp_on_ranks<Tp5>(x, up, down)) CHECK(got == expected);
  for (auto const& got : mlp_on_ranks<Unequal>(x, up, down)) CHECK(got == expected);
}

TEST_CASE("scatter then gather is a reduction, along the first dim and along the last") {
  auto const h = integers(4 * 15, 4), down = integers(6 * 15, 5);
  auto const expected = whole_product(h, down, 15);
  auto const results = on_ranks(3, [&](dt::ThreadCommunicator& c) {
    auto const group = c.group(ranks_of(0, 3));
    auto const part = contract(Inner<Tp3, Split<ffn>>::part_of(h, at({c.rank()})),
                               Down<Tp3, Split<ffn>>::part_of(down, at({c.rank()})));
    auto const by_rows = reduce_scatter<Tp3, batch>(c, group, part);
    auto const by_columns = reduce_scatter<Tp3, embed>(c, group, part);
    static_assert(std::is_same_v<decltype(by_rows), Rows<Tp3, Split<batch>> const>);
    return std::pair(copy_of(all_gather<Tp3>(c, group, by_rows).local()),
                     copy_of(all_gather<Tp3>(c, group, by_columns).local()));
  });
  for (auto const& [rows, columns] : results) {
    CHECK(rows == expected);
    CHECK(columns == expected);
  }
}

TEST_CASE("gather after split is the identity: followers that ranks share, ranks without a part, slices") {
  using Kv = Shape<Of<batch, 2>, Of<kv_heads, 3, 9>, Of<dt::head_dim, 2>>;
  auto const kv = integers(2 * 3 * 2, 6), rows = integers(2 * 5, 7);
  auto const results = on_ranks(5, [&](dt::ThreadCommunicator& c) {
    auto const group = c.group(ranks_of(0, 5));
    auto const here = at({c.rank()});
    auto const split = Tensor<float, Kv, On<Tp5, Split<heads>>>::part_of(kv, here);
    using Few = Tensor<float, Shape<Of<batch, 2>, Of<embed, 5>>, On<Tp5, Whole>>;
    auto const mine = slice<Tp5, batch>(Few::part_of(rows, here));  // three of five ranks have no row
    return std::tuple(copy_of(all_gather<Tp5>(c, group, split).local()), split.local().size(),
                      copy_of(all_gather<Tp5>(c, group, mine).local()), mine.local().size());
  });
  std::size_t held = 0, had = 0;
  for (auto const& [all_kv, held_here, all_rows, rows_here] : results) {
    CHECK(all_kv == kv);
    CHECK(all_rows == rows);
    held += held_here, had += rows_here;
  }
  CHECK(held > kv.size());  // 9 heads on 5 ranks: some KV heads are held twice
  CHECK(had == rows.size());
}

TEST_CASE("two axes: each reduces and gathers along its own, and splits of one dim stack") {
  using Mesh = Shape<Of<batch, 4>, Of<embed, 6>>;
  auto const h = integers(4 * 15, 8), down = integers(6 * 15, 9), stacked = integers(4 * 6, 10);
  auto const expected = whole_product(h, down, 15);
  auto const results = on_ranks(6, [&](dt::ThreadCommunicator& c) {
    int const dp = c.rank() / 3, tp = c.rank() % 3;
    auto const along_tp = c.group(ranks_of(3 * dp, 3)), along_dp = c.group(ranks_of(tp, 2, 3));
    auto const here = at({dp, tp});
    using InnerHere = Tensor<float, Shape<Of<batch, 4>, Of<ffn, 15>>, On<Dp, Split<batch>>, On<Tp3, Split<ffn>>>;
    using DownHere = Tensor<float, Shape<Of<embed, 6>, Of<ffn, 15>>, On<Dp, Whole>, On<Tp3, Split<ffn>>>;
    auto const part = contract(InnerHere::part_of(h, here), DownHere::part_of(down, here));
    static_assert(std::is_same_v<decltype(part), Tensor<float, Mesh, On<Dp, Split<batch>>, On<Tp3, Partial>> const>);
    auto const whole = all_gather<Dp>(c, along_dp, all_reduce<Tp3>(c, along_tp, part));
    using Stack = Tensor<float, Mesh, On<Dp, Split<embed>>, On<Tp3, Split<embed>>>;
    auto const inner_first = all_gather<Tp3>(c, along_tp, Stack::part_of(stacked, here));
    return std::pair(copy_of(whole.local()), copy_of(all_gather<Dp>(c, along_dp, inner_first).local()));
  });
  for (auto const& [product, gathered] : results) {
    CHECK(product == expected);
    CHECK(gathered == stacked);
  }
}

TEST_CASE("a partial maximum is reduced by maximum, and integers are exchanged as they are") {
  using Largest = Tensor<dt::i64, Shape<Of<batch, 3>>, On<Tp3, PartialMax>>;
  auto const results = on_ranks(3, [](dt::ThreadCommunicator& c) {
    dt::i64 const rank = c.rank();
    auto const y = all_reduce<Tp3>(c, c.group(ranks_of(0, 3)), Largest(at({c.rank()}), {rank, -rank, 5 * rank % 4}));
    return std::vector<dt::i64>(y.local().begin(), y.local().end());
  });
  for (auto const& got : results) CHECK(got == std::vector<dt::i64>{2, 0, 2});
}

TEST_CASE("what a rank is given must fit its type") {
  using Catch::Contains;
  using Here = Rows<Tp3, Whole>;
  CHECK_THROWS_WITH(Here(at({0}), std::vector<float>(23)), Contains("24 elements") && Contains("23 were given"));
  CHECK_THROWS_WITH(Here::part_of(std::vector<float>(25), at({0})), Contains("24 elements") && Contains("25"));
  CHECK_THROWS_WITH(Here(at({3})), Contains("axis tp has 3 ranks"));
  CHECK_THROWS_WITH(Here(at({-1})), Contains("axis tp has 3 ranks"));
  CHECK_THROWS_AS(Here(at({})), std::invalid_argument);
}

TEST_CASE("a group of other ranks than the axis has is refused before anything is sent") {
  auto const said = on_ranks(2, [](dt::ThreadCommunicator& c) {
    try {
      all_reduce<Tp3>(c, c.group(ranks_of(0, 2)), Rows<Tp3, Partial>(at({c.rank()})));
    } catch (std::invalid_argument const& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  });
  CHECK(said[0] == "dovetail: axis tp has 3 ranks and this is 0, but the group has 2 and it is 0 there");
  CHECK(said[1] == "dovetail: axis tp has 3 ranks and this is 1, but the group has 2 and it is 1 there");
}
