// SPDX-License-Identifier: MIT
// What Reference promises: any split of any dim gives the bits of the whole, contracted dims by adding the parts, and
// what its grid cannot hold exactly is an error that names kernel, place, number and limit.
#include <dovetail/device/reference.hpp>
#include "catch.hpp"
#include "kernel_case.hpp"

using namespace kernel_case;
using Catch::Matchers::Contains;

namespace {

std::vector<SequenceRun> const ragged{{5, 3, 2}, {0, 4, 1}, {7, 0, 0}, {2, 1, 1}};
Extent const batches = extent<batch>(Symbol::batch), tokens = extent<sequence>(Symbol::tokens),
             context = extent<keys>(Symbol::context), asked = extent<rows>(Symbol::rows);
Dims const trunk = dims(batches, tokens, extent<embed>(97));

/// Values that use every bit of the grid, so that their products do not fit it.
Whole on_grid(Dims const& d, std::vector<SequenceRun> const& run, test::Random& random, double scale = 1) {
  Whole w{d, std::vector<double>(size_of(d, run))};
  for (double& v : w.values) v = std::nearbyint(test::signed_unit(random.next()) * 2 * scale * 0x1p30) * 0x1p-30;
  return w;
}

/// Even splits, more ranks than most extents have units of, and stated shares with an empty one.
void same_bits(KernelCase const& c, DimInfo const* dim, Meets meets) {
  Reference device;
  auto const whole = run_whole(c, device);
  INFO(c.op->name << " split on " << dim->name);
  CHECK(std::all_of(whole.begin(), whole.end(), [](double v) { return v * 0x1p30 == std::nearbyint(v * 0x1p30); }));
  static constexpr i64 shares[] = {5, 0, 2, 9};
  for (AxisInfo const axis :
       {AxisInfo{"a", 2}, AxisInfo{"a", 3}, AxisInfo{"a", 7}, AxisInfo{"a", 101}, AxisInfo{"a", 4, shares}}) {
    INFO("over " << axis.size);
    auto const parts = run_split(c, device, dim, axis, meets);
    CHECK(std::memcmp(parts.data(), whole.data(), whole.size() * sizeof(double)) == 0);
  }
}

KernelCase matmul_case(std::vector<double> x, std::vector<double> w, i64 outputs) {
  auto const inputs = static_cast<i64>(x.size());
  KernelCase c{.op = &matmul, .run = {{0, 1, 1}}, .result = dims(batches, tokens, extent<ffn>(outputs))};
  c.operands = {{dims(batches, tokens, extent<embed>(inputs)), std::move(x)}};
  c.parameters = {{dims(extent<ffn>(outputs), extent<embed>(inputs)), std::move(w), 1}};
  return c;
}

KernelCase attend_case(Numbers const& numbers, double scale, test::Random& random) {
  Dims const q = dims(batches, tokens, extent<heads>(9), extent<head_dim>(16));
  Dims const kv = dims(batches, context, extent<kv_heads>(3, 9), extent<head_dim>(16));
  KernelCase c{.op = &attend, .run = ragged, .result = q, .numbers = numbers};
  c.operands = {on_grid(q, ragged, random, scale), on_grid(kv, ragged, random, scale), on_grid(kv, ragged, random)};
  return c;
}

/// The range error of a call, as text; empty where there is none.
std::string range_error(KernelCase const& c, double limit) {
  Reference device;
  try {
    run_whole(c, device);
  } catch (RangeError const& e) {
    CHECK(e.kernel == std::string(c.op->name));
    CHECK(e.limit == limit);
    CHECK(!(e.magnitude <= limit));
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("matmul has the bits of the whole under any split") {
  test::Random random(1);
  KernelCase c{.op = &matmul, .run = ragged, .result = dims(batches, tokens, extent<ffn>(13))};
  c.operands = {on_grid(trunk, ragged, random, 2)};
  c.parameters = {on_grid(dims(extent<ffn>(13), extent<embed>(97)), ragged, random)};
  c.parameters[0].inputs = 1;
  same_bits(c, dim_of<embed>, Meets::as_sum);
  for (auto const* dim : {dim_of<ffn>, dim_of<batch>, dim_of<sequence>}) same_bits(c, dim, Meets::side_by_side);

  // Without a grid the same split gives other bits: the values above are not so round that anything would pass.
  int differ = 0;
  for (std::size_t r = 0; r < 8; ++r)
    for (std::size_t o = 0; o < 13; ++o) {
      double whole = 0, halves[2]{};
      for (std::size_t i = 0; i < 97; ++i) {
        double const term = c.operands[0].values[r * 97 + i] * c.parameters[0].values[o * 97 + i];
        whole += term, halves[i / 49] += term;
      }
      differ += halves[0] + halves[1] != whole;
    }
  CHECK(differ > 20);
}

TEST_CASE("embedding kernels have the bits of the whole under any split") {
  test::Random random(2);
  KernelCase look{.op = &lookup, .run = ragged, .result = dims(batches, tokens, extent<embed>(6))};
  look.operands = {{dims(batches, tokens), {0, 10, 3, 3, 9, 1, 2, 10}}};
  look.parameters = {on_grid(dims(extent<vocab>(11), extent<embed>(6)), ragged, random)};
  same_bits(look, dim_of<vocab>, Meets::as_sum);
  for (auto const* dim : {dim_of<embed>, dim_of<batch>, dim_of<sequence>}) same_bits(look, dim, Meets::side_by_side);

  KernelCase take{.op = &take_rows, .run = ragged, .result = dims(batches, asked, extent<embed>(97))};
  take.operands = {on_grid(trunk, ragged, random)};
  same_bits(take, dim_of<sequence>, Meets::as_sum);
  for (auto const* dim : {dim_of<embed>, dim_of<batch>}) same_bits(take, dim, Meets::side_by_side);
}

TEST_CASE("elementwise kernels and norms have the bits of the whole under any split") {
  test::Random random(3);
  KernelCase c{.run = ragged, .result = trunk};
  c.operands = {on_grid(trunk, ragged, random), on_grid(trunk, ragged, random)};
  auto const each = [&](Op const& op) {
    c.op = &op;
    for (auto const* dim : {dim_of<embed>, dim_of<batch>, dim_of<sequence>}) same_bits(c, dim, Meets::side_by_side);
  };
  each(dovetail::add);
  each(multiply);
  c.operands.pop_back();
  each(silu);
  c.parameters = {on_grid(dims(extent<embed>(97)), ragged, random)};
  each(dovetail::add);

  c.parameters.clear(), c.op = &square_sum, c.result = dims(batches, tokens);
  same_bits(c, dim_of<embed>, Meets::as_sum);
  for (auto const* dim : {dim_of<batch>, dim_of<sequence>}) same_bits(c, dim, Meets::side_by_side);

  c.operands.push_back({c.result, std::vector<double>(size_of(c.result, ragged), 90.25)});
  c.parameters = {on_grid(dims(extent<embed>(97)), ragged, random)};
  c.numbers = {{97, 1e-5}}, c.result = trunk;
  each(rms_scale);
}

TEST_CASE("attention kernels have the bits of the whole under any split of heads, batch and queries") {
  test::Random random(4);
  for (auto const& numbers : {Numbers{}, Numbers{{0.37, 4, 0}}, Numbers{{0, 0, 7.3}}}) {
    auto const c = attend_case(numbers, 2, random);
    for (auto const* dim : {dim_of<heads>, dim_of<batch>, dim_of<sequence>}) same_bits(c, dim, Meets::side_by_side);
  }
  Dims const kv = dims(batches, tokens, extent<kv_heads>(3, 9), extent<head_dim>(16));
  KernelCase turn{.op = &rotate, .run = ragged, .result = kv, .numbers = {{10000, 0, 0, 1, 1, 4, 0}}};
  turn.operands = {on_grid(kv, ragged, random)};
  for (auto const* dim : {dim_of<heads>, dim_of<batch>, dim_of<sequence>}) same_bits(turn, dim, Meets::side_by_side);

  KernelCase keep{.op = &append, .run = ragged};
  keep.state = on_grid(dims(batches, context, extent<kv_heads>(3, 9), extent<head_dim>(16)), ragged, random);
  keep.operands = turn.operands;
  for (auto const* dim : {dim_of<heads>, dim_of<batch>}) same_bits(keep, dim, Meets::side_by_side);
}

TEST_CASE("attention does not depend on the order of the keys that a query sees") {
  test::Random random(6);
  std::vector<SequenceRun> const run{{40, 1, 1}};  // the last position sees them all
  Dims const q = dims(batches, tokens, extent<heads>(2), extent<head_dim>(8));
  Dims const kv = dims(batches, context, extent<kv_heads>(1, 2), extent<head_dim>(8));
  KernelCase c{.op = &attend, .run = run, .result = q};
  c.operands = {on_grid(q, run, random), on_grid(kv, run, random), on_grid(kv, run, random)};
  Reference device;
  auto const forward = run_whole(c, device);
  for (std::size_t operand : {1, 2}) {
    auto& rows = c.operands[operand].values;
    for (std::size_t i = 0; i < 41 / 2; ++i)
      std::swap_ranges(rows.begin() + 8 * static_cast<i64>(i), rows.begin() + 8 * static_cast<i64>(i + 1),
                       rows.begin() + 8 * static_cast<i64>(40 - i));
  }
  CHECK(run_whole(c, device) == forward);
}

TEST_CASE("matmul leaves its range with an error, never with a wrong result") {
  CHECK_THAT(range_error(matmul_case({0x1p10, 0}, {0, 0, 0x1p16, 0}, 2), 0x1p21),
             Contains("matmul: a product of row 0, output 1 is 67108864"));
  std::vector<double> const many(20, 0x1p10);
  std::vector<double> cancelling(20, 0x1p10);
  for (std::size_t i = 0; i < 20; i += 2) cancelling[i] = -0x1p10;
  CHECK_THAT(range_error(matmul_case(many, cancelling, 1), 0x1p23),
             Contains("matmul: the sum of magnitudes of row 0, output 0 is 20971520"));
  CHECK_THAT(range_error(matmul_case({512, 512}, {512, 512}, 1), 0x1p17),
             Contains("matmul: the value at row 0, element 0 is 524288"));
  CHECK_THAT(range_error(matmul_case({1, NAN}, {1, 1}, 1), 0x1p21), Contains("matmul: ") && Contains("not finite"));
  CHECK_THAT(range_error(matmul_case({1, INFINITY}, {1, 0}, 1), 0x1p21),
             Contains("matmul: ") && Contains("not finite"));

  Reference device;  // the cheap bound fails, the exact one does not
  CHECK(run_whole(matmul_case({0x1p16, 0x1p-30, 0}, {0.5, 0x1p16, 0x1p17}, 1), device)[0] == 0x1p15 + 0x1p-14);
}

TEST_CASE("weights that the grid does not hold are refused when they are finished") {
  Reference device;
  CHECK_THROWS_WITH(run_whole(matmul_case({1, 1}, {1, 1, 1, 2e5}, 2), device),
                    Contains("weight: the value at row 1, element 1 is 200000") && Contains("131072"));
  CHECK_THROWS_WITH(run_whole(matmul_case({1, 1}, {1, NAN}, 1), device),
                    Contains("weight: ") && Contains("not finite"));
}

TEST_CASE("elementwise kernels and norms name what leaves the range") {
  KernelCase c{.run = {{0, 1, 1}}, .result = dims(batches, tokens, extent<embed>(3))};
  auto const with = [&](Op const& op, std::vector<double> x, std::vector<double> y = {}) {
    c.op = &op, c.operands = {{dims(batches, tokens, extent<embed>(3)), std::move(x)}};
    if (!y.empty()) c.operands.push_back({c.operands[0].dims, std::move(y)});
    return c;
  };
  CHECK_THAT(range_error(with(dovetail::add, {0, 100000, 0}, {0, 50000, 0}), 0x1p17),
             Contains("add: the value at row 0, element 1 is 150000"));
  CHECK_THAT(range_error(with(dovetail::add, {0, NAN, 0}, {0, 0, 0}), 0x1p17), Contains("add: ") && Contains("finite"));
  CHECK_THAT(range_error(with(multiply, {0, 0, -4000}, {0, 0, 4000}), 0x1p17),
             Contains("multiply: the value at row 0, element 2 is 16000000"));
  CHECK_THAT(range_error(with(silu, {NAN, 0, 0}), 0x1p17), Contains("silu: ") && Contains("not finite"));
  CHECK(range_error(with(silu, {-1000, 0, 0}), 0) == "");

  c.result = dims(batches, tokens);
  CHECK(range_error(with(square_sum, {30000, 30000, 0}), 0) == "");
  CHECK_THAT(range_error(with(square_sum, {0, 40000, 0}), 0x1p30),
             Contains("square_sum: the square at row 0, element 1 is 1600000000"));
  CHECK_THAT(range_error(with(square_sum, {30000, 30000, 30000}), 0x1p31),
             Contains("square_sum: the sum of row 0 is 2700000000"));
  CHECK_THAT(range_error(with(square_sum, {0, NAN, 0}), 0x1p30), Contains("square_sum: ") && Contains("not finite"));

  c = with(rms_scale, {1, 1, 1});
  c.operands.push_back({c.result, {4e9}}), c.parameters = {{dims(extent<embed>(3)), {1, 1, 1}}};
  c.numbers = {{3, 1e-5}}, c.result = c.operands[0].dims;
  CHECK_THAT(range_error(c, 0x1p31), Contains("rms_scale: the sum of squares of row 0 is 4000000000"));
  c.operands[1].values = {0}, c.numbers = {{3, 0}};
  CHECK_THAT(range_error(c, 0x1p17), Contains("rms_scale: ") && Contains("not finite"));
}

TEST_CASE("attention names what leaves the range") {
  test::Random random(5);
  auto c = attend_case(Numbers{}, 1, random);
  std::fill_n(c.operands[0].values.begin(), 16, 60000.0);
  std::fill_n(c.operands[1].values.begin(), 16, 60000.0);
  CHECK_THAT(range_error(c, 0x1p21), Contains("attend: a product of row 0"));
  c = attend_case(Numbers{{100, 0, 0}}, 100, random);
  CHECK_THAT(range_error(c, 0x1p21), Contains("attend: the score of row "));
  c = attend_case(Numbers{}, 1, random);
  c.operands[2].values[2] = NAN;
  CHECK_THAT(range_error(c, 0x1p21), Contains("attend: ") && Contains("is not finite"));
  c.numbers = {{0, 2, 0}};  // the first sequence's queries begin at 5: a window of 2 does not reach position 0
  CHECK(range_error(c, 0) == "");
  c = attend_case(Numbers{}, 1, random);
  std::fill(c.operands[2].values.begin(), c.operands[2].values.end(),
            120000.0);  // their bound fails, their sum does not
  CHECK(range_error(c, 0) == "");
}
