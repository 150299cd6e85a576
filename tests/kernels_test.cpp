// SPDX-License-Identifier: MIT
// Every kernel of every host device against a plain computation in doubles written here, on small random tensors with
// ragged sequences; shapes without elements; what kernels say about bad input; and what every device must be.
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <set>
#include "catch.hpp"
#include "kernel_case.hpp"

using namespace kernel_case;
using Catch::Matchers::Contains;

namespace {

template <class D>
constexpr double tolerance = std::is_same_v<D, Reference> ? 1e-7 : 2e-5;

std::vector<SequenceRun> const ragged{{5, 3, 2}, {0, 4, 1}, {7, 0, 0}, {2, 1, 1}};

Extent const batches = extent<batch>(Symbol::batch), tokens = extent<sequence>(Symbol::tokens),
             context = extent<keys>(Symbol::context), asked = extent<rows>(Symbol::rows);

/// Largest difference relative to 1 + |expected|; NaN anywhere is infinite.
double distance(std::vector<double> const& made, std::vector<double> const& expected) {
  if (made.size() != expected.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    double const d = std::abs(made[i] - expected[i]) / (1 + std::abs(expected[i]));
    worst = d <= worst ? worst : (std::isnan(d) ? INFINITY : d);
  }
  return worst;
}

i64 rows_of(KernelCase const& c, Dims const& d) { return local_rows(d, Places{}, Mesh{}, Coordinate{}, c.shape()); }

/// By position: the sequence and the position in it of every new token.
std::vector<std::pair<i64, i64>> new_tokens(std::vector<SequenceRun> const& run) {
  std::vector<std::pair<i64, i64>> at;
  for (std::size_t s = 0; s < run.size(); ++s)
    for (i64 j = 0; j < run[s].tokens; ++j) at.push_back({static_cast<i64>(s), run[s].past + j});
  return at;
}

std::vector<double> matmul_oracle(KernelCase const& c) {
  auto const &x = c.operands[0].values, &w = c.parameters[0].values;
  std::vector<double> y(size_of(c.result, c.run));
  std::size_t const rows = static_cast<std::size_t>(rows_of(c, c.result)), outs = rows ? y.size() / rows : 0,
                    ins = rows ? x.size() / rows : 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < outs; ++o)
      for (std::size_t i = 0; i < ins; ++i) y[r * outs + o] += x[r * ins + i] * w[o * ins + i];
  return y;
}

struct Head {
  i64 heads, key_heads, size;
};

std::vector<double> attend_oracle(KernelCase const& c, Head h) {
  auto const &q = c.operands[0].values, &k = c.operands[1].values, &v = c.operands[2].values;
  double const scale = c.numbers[0] != 0 ? c.numbers[0] : 1 / std::sqrt(h.size), window = c.numbers[1],
               cap = c.numbers[2];
  auto const key_at = [&](i64 s, i64 p, i64 head) {
    for (i64 before = 0; before < s; ++before)
      p += c.run[static_cast<std::size_t>(before)].past + c.run[static_cast<std::size_t>(before)].tokens;
    return static_cast<std::size_t>((p * h.key_heads + head * h.key_heads / h.heads) * h.size);
  };
  std::vector<double> y(q.size());
  std::size_t at = 0;
  for (auto const& [s, p] : new_tokens(c.run))
    for (i64 head = 0; head < h.heads; ++head, at += static_cast<std::size_t>(h.size)) {
      double total = 0;
      i64 const last = c.numbers[3] == 0
                           ? p
                           : c.run[static_cast<std::size_t>(s)].past + c.run[static_cast<std::size_t>(s)].tokens - 1;
      for (i64 j = 0; j <= last; ++j) {
        if (window > 0 && !(j > p - window)) continue;
        double score = 0;
        for (std::size_t d = 0; d < static_cast<std::size_t>(h.size); ++d)
          score += q[at + d] * k[key_at(s, j, head) + d] * scale;
        if (cap > 0) score = cap * std::tanh(score / cap);
        total += std::exp(score);
        for (std::size_t d = 0; d < static_cast<std::size_t>(h.size); ++d)
          y[at + d] += std::exp(score) * v[key_at(s, j, head) + d];
      }
      for (std::size_t d = 0; d < static_cast<std::size_t>(h.size); ++d) y[at + d] /= total;
    }
  return y;
}

KernelCase attend_case(Head h, std::vector<SequenceRun> const& run, Numbers const& numbers, test::Random& random) {
  Dims const q = dims(batches, tokens, extent<heads>(h.heads), extent<head_dim>(h.size));
  Dims const kv = dims(batches, context, extent<kv_heads>(h.key_heads, h.heads), extent<head_dim>(h.size));
  KernelCase c{.op = &attend, .run = run, .result = q, .numbers = numbers};
  c.operands = {random_whole(q, run, random), random_whole(kv, run, random), random_whole(kv, run, random)};
  return c;
}

std::vector<double> rotate_oracle(KernelCase const& c, Head h) {
  Numbers const& n = c.numbers;
  i64 const rotated = n[1] == 0 ? h.size : static_cast<i64>(n[1]);
  auto const& x = c.operands[0].values;
  std::vector<double> y = x;
  std::size_t at = 0;
  for (auto const& [s, p] : new_tokens(c.run))
    for (i64 head = 0; head < h.heads; ++head, at += static_cast<std::size_t>(h.size))
      for (i64 i = 0; i < rotated / 2; ++i) {
        double frequency = 1 / std::pow(n[0], 2.0 * static_cast<double>(i) / static_cast<double>(rotated));
        if (n[3] != 1) {  // as Llama 3.1 publishes it
          double const wavelength = 2 * 3.14159265358979323846 / frequency;
          if (wavelength > n[6] / n[4]) frequency /= n[3];
          else if (wavelength >= n[6] / n[5]) {
            double const smooth = (n[6] / wavelength - n[4]) / (n[5] - n[4]);
            frequency = (1 - smooth) * frequency / n[3] + smooth * frequency;
          }
        }
        double const angle = static_cast<double>(p) * frequency;
        auto const first = at + static_cast<std::size_t>(n[2] != 0 ? 2 * i : i),
                   second = first + static_cast<std::size_t>(n[2] != 0 ? 1 : rotated / 2);
        y[first] = x[first] * std::cos(angle) - x[second] * std::sin(angle);
        y[second] = x[second] * std::cos(angle) + x[first] * std::sin(angle);
      }
  return y;
}

KernelCase lookup_case(std::vector<double> ids, std::vector<SequenceRun> const& run, test::Random& random) {
  Dims const table = dims(extent<vocab>(11), extent<embed>(5));
  KernelCase c{.op = &lookup, .run = run, .result = dims(batches, tokens, extent<embed>(5))};
  c.operands = {Whole{dims(batches, tokens), std::move(ids)}};
  c.parameters = {random_whole(table, run, random)};
  return c;
}

KernelCase choose_case(std::vector<double> logits, i64 width, std::vector<SequenceRun> const& run) {
  KernelCase c{.op = &choose, .run = run, .result = dims(batches, asked)};
  c.operands = {Whole{dims(batches, asked, extent<vocab>(width)), std::move(logits)}};
  return c;
}

template <class D>
std::vector<Choice> choices(KernelCase const& c, D& device, Part const& p = {}) {
  std::vector<Choice> made(size_of(c.result, c.run));
  run_part<Choice>(c, device, p, [&](i64 i, Choice v) { made[static_cast<std::size_t>(i)] = v; });
  return made;
}

}  // namespace

TEMPLATE_TEST_CASE("a device keeps what the concept says", "", Reference, Cpu) {
  TestType device;
  STATIC_REQUIRE(Device<TestType>);
  auto const memory = device.memory(1000);
  REQUIRE(memory.get() != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0);
  CHECK(std::all_of(static_cast<char*>(memory.get()), static_cast<char*>(memory.get()) + 1000,
                    [](char c) { return !c; }));
  CHECK_NOTHROW(device.memory(0));
  CHECK_THROWS_WITH(device.memory(-1), Contains("-1 bytes"));

  CHECK(TestType::bytes_of(Storage::activation) == bytes_of(TestType::element));
  CHECK(TestType::bytes_of(Storage::weight) == sizeof(typename TestType::Scalar));
  CHECK(TestType::bytes_of(Storage::token) == sizeof(i32));
  CHECK(TestType::bytes_of(Storage::choice) == sizeof(Choice));

  std::set<Op const*> ops;
  for (auto const& row : TestType::kernels()) {
    CHECK(row.run != nullptr);
    CHECK(ops.insert(row.op).second);
  }
  for (Op const* op : {&matmul,          &lookup,  &dovetail::add, &multiply,    &silu,      &gelu,       &gelu_tanh,
                       &dovetail::scale, &softcap, &add_row,       &element_sum, &center,    &square_sum, &rms_scale,
                       &rotate,          &append,  &as_keys,       &attend,      &mean_rows, &take_rows,  &choose})
    CHECK(ops.count(op) == 1);
}

TEMPLATE_TEST_CASE("a weight holds what is filled in and counts its bytes", "", Reference, Cpu) {
  TestType device;
  WeightShape shape;
  shape.dims = dims(extent<ffn>(7), extent<embed>(5));
  shape.ranges[0] = {2, 5}, shape.ranges[1] = {0, 5};
  shape.inputs = GENERATE(0, 1);
  shape.read_plainly = GENERATE(false, true);
  if (GENERATE(false, true)) shape.ranges[0] = {5, 5};
  auto weight = device.make_weight(shape);
  REQUIRE(weight.fill_target().size() == static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < weight.fill_target().size(); ++i)
    weight.fill_target()[i] = static_cast<typename TestType::Scalar>(i);
  device.finish(weight);
  CHECK(weight.packed_bytes() >= 0);
  if (!shape.inputs) CHECK(weight.packed_bytes() == 0);
  if (shape.read_plainly || !shape.inputs)
    for (i64 i = 0; i < shape.elements(); ++i) CHECK(weight.plain()[i] == static_cast<double>(i));
}

TEMPLATE_TEST_CASE("matmul multiplies by the rows of the weight", "", Reference, Cpu) {
  TestType device;
  test::Random random(1);
  auto const [in, out] = GENERATE(table<i64, i64>({{1, 1}, {37, 5}, {64, 48}, {130, 67}, {0, 3}, {3, 0}}));
  bool const read_plainly = GENERATE(false, true), moved = GENERATE(false, true);
  for (auto const& run : {ragged, std::vector<SequenceRun>{{0, 1, 1}}, std::vector<SequenceRun>{}}) {
    Dims const x = dims(batches, tokens, extent<embed>(in)), w = dims(extent<ffn>(out), extent<embed>(in));
    KernelCase c{.op = &matmul, .run = run, .result = dims(batches, tokens, extent<ffn>(out))};
    c.operands = {random_whole(x, run, random)};
    c.parameters = {random_whole(w, run, random)};
    c.parameters[0].inputs = 1, c.parameters[0].read_plainly = read_plainly, c.moved = moved;
    auto const first = run_whole(c, device);
    CHECK(distance(first, matmul_oracle(c)) < tolerance<TestType>);
    CHECK(run_whole(c, device) == first);  // primitives that were kept do the same again
  }
}

TEST_CASE("products of Cpu are the same with more threads") {
  test::Random random(13);
  KernelCase c{.op = &matmul, .run = {{0, 33, 1}}, .result = dims(batches, tokens, extent<ffn>(150))};
  c.operands = {random_whole(dims(batches, tokens, extent<embed>(70)), c.run, random)};
  c.parameters = {random_whole(dims(extent<ffn>(150), extent<embed>(70)), c.run, random)};
  c.parameters[0].inputs = 1;
  Cpu one, two(CpuOptions{2});
  CHECK(distance(run_whole(c, two), run_whole(c, one)) < 1e-6);
  CHECK_THROWS_WITH(Cpu(CpuOptions{0}), Contains("threads is 1 or more, not 0"));
}

TEMPLATE_TEST_CASE("matmul contracts and makes several dims", "", Reference, Cpu) {
  TestType device;
  test::Random random(2);
  Dims const in = dims(extent<heads>(6), extent<head_dim>(4)), out = dims(extent<ffn>(3), extent<experts>(5));
  KernelCase c{.op = &matmul, .run = ragged, .result = with(dims(batches, tokens), out)};
  c.operands = {random_whole(with(dims(batches, tokens), in), ragged, random)};
  c.parameters = {random_whole(with(out, in), ragged, random)};
  c.parameters[0].inputs = 2, c.parameters[0].read_plainly = false;
  CHECK(distance(run_whole(c, device), matmul_oracle(c)) < tolerance<TestType>);
}

TEMPLATE_TEST_CASE("elementwise ops, in place too", "", Reference, Cpu) {
  TestType device;
  test::Random random(3);
  i64 const width = GENERATE(1, 6, 35, 0);
  Dims const shape = dims(batches, tokens, extent<heads>(3), extent<head_dim>(width));
  KernelCase c{.run = ragged, .result = shape};
  c.operands = {random_whole(shape, ragged, random, 9), random_whole(shape, ragged, random, 9)};
  c.in_place = GENERATE(false, true);
  auto const &x = c.operands[0].values, &y = c.operands[1].values;
  std::vector<double> sum = x, product = x, gated = x, biased = x;
  Whole const bias = random_whole(dims(extent<head_dim>(width)), ragged, random);
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum[i] = x[i] + y[i], product[i] = x[i] * y[i], gated[i] = x[i] / (1 + std::exp(-x[i]));
    biased[i] = x[i] + bias.values[i % static_cast<std::size_t>(width)];
  }
  c.op = &dovetail::add;
  CHECK(distance(run_whole(c, device), sum) < tolerance<TestType>);
  c.op = &multiply;
  CHECK(distance(run_whole(c, device), product) < tolerance<TestType>);
  c.operands.pop_back();
  c.op = &silu;
  CHECK(distance(run_whole(c, device), gated) < tolerance<TestType>);
  c.op = &dovetail::add, c.parameters = {bias}, c.moved = GENERATE(false, true);
  CHECK(distance(run_whole(c, device), biased) < tolerance<TestType>);
}

TEMPLATE_TEST_CASE("activations, scales and caps, in place too", "", Reference, Cpu) {
  TestType device;
  test::Random random(21);
  Dims const shape = dims(batches, tokens, extent<ffn>(GENERATE(1, 9, 700, 0)));
  KernelCase c{.run = ragged, .result = shape};
  c.operands = {random_whole(shape, ragged, random, 9)};
  c.in_place = GENERATE(false, true);
  auto const check = [&](Op const& op, Numbers const& numbers, auto const& value) {
    c.op = &op, c.numbers = numbers;
    std::vector<double> expected = c.operands[0].values;
    for (double& v : expected) v = value(v);
    INFO(op.name);
    CHECK(distance(run_whole(c, device), expected) < tolerance<TestType>);
  };
  check(gelu, {}, [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; });
  check(gelu_tanh, {}, [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  });
  check(dovetail::scale, {{-2.5}}, [](double x) { return -2.5 * x; });
  check(softcap, {{3}}, [](double x) { return 3 * std::tanh(x / 3); });
}

TEST_CASE("the exponentials of Cpu are within what they state") {
  std::vector<float> x, powers;
  for (float v = -87; v < 88; v += 0.01f) x.push_back(v);
  powers = x;
  kernels::cpu::exponentials(powers.data(), static_cast<i64>(powers.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const exact = std::exp(static_cast<double>(x[i]));
    worst = std::max(worst, std::abs(static_cast<double>(powers[i]) - exact) / exact);
  }
  CHECK(worst < 2e-7);
  float ends[] = {0, -INFINITY, -1000, 1000, INFINITY, NAN};
  kernels::cpu::exponentials(ends, 6);
  CHECK(ends[0] == 1);
  CHECK((ends[1] < 2e-38f && ends[2] < 2e-38f));
  CHECK((std::isfinite(ends[3]) && ends[3] > 1e38f && ends[4] == ends[3]));
  CHECK(std::isnan(ends[5]));
}

TEMPLATE_TEST_CASE("a norm sums squares and scales, over one dim or several", "", Reference, Cpu) {
  TestType device;
  test::Random random(4);
  Dims const x = dims(batches, tokens, extent<heads>(3), extent<head_dim>(10));
  bool const over_heads = GENERATE(false, true);
  Dims const kept = over_heads ? dims(batches, tokens) : dims(batches, tokens, extent<heads>(3));
  Dims const over = over_heads ? dims(extent<heads>(3), extent<head_dim>(10)) : dims(extent<head_dim>(10));
  std::size_t const inner = over_heads ? 30 : 10;
  KernelCase c{.op = &square_sum, .run = ragged, .result = kept};
  c.operands = {random_whole(x, ragged, random)};
  std::vector<double> sums(size_of(kept, ragged)), scaled = c.operands[0].values;
  for (std::size_t i = 0; i < scaled.size(); ++i) sums[i / inner] += scaled[i] * scaled[i];
  CHECK(distance(run_whole(c, device), sums) < 1e-6);

  Whole const weight = random_whole(over, ragged, random);
  for (std::size_t i = 0; i < scaled.size(); ++i)
    scaled[i] *= weight.values[i % inner] / std::sqrt(sums[i / inner] / static_cast<double>(inner) + 0.25);
  c.op = &rms_scale, c.result = x, c.numbers = {{static_cast<double>(inner), 0.25}};
  c.operands.push_back({kept, sums}), c.parameters = {weight}, c.moved = GENERATE(false, true);
  c.in_place = GENERATE(false, true);
  CHECK(distance(run_whole(c, device), scaled) < tolerance<TestType>);

  c.numbers = {{static_cast<double>(inner), 0.25, 1}};  // weights are added to 1
  for (std::size_t i = 0; i < scaled.size(); ++i)
    scaled[i] = c.operands[0].values[i] * (1 + weight.values[i % inner]) /
                std::sqrt(sums[i / inner] / static_cast<double>(inner) + 0.25);
  CHECK(distance(run_whole(c, device), scaled) < tolerance<TestType>);
  c.parameters.clear();  // and without them it is the norm alone
  for (std::size_t i = 0; i < scaled.size(); ++i)
    scaled[i] = c.operands[0].values[i] / std::sqrt(sums[i / inner] / static_cast<double>(inner) + 0.25);
  CHECK(distance(run_whole(c, device), scaled) < tolerance<TestType>);
}

TEMPLATE_TEST_CASE("a mean is summed and taken away, over one dim or several", "", Reference, Cpu) {
  TestType device;
  test::Random random(22);
  Dims const x = dims(batches, tokens, extent<heads>(3), extent<head_dim>(10));
  bool const over_heads = GENERATE(false, true);
  Dims const kept = over_heads ? dims(batches, tokens) : dims(batches, tokens, extent<heads>(3));
  std::size_t const inner = over_heads ? 30 : 10;
  KernelCase c{.op = &element_sum, .run = ragged, .result = kept};
  c.operands = {random_whole(x, ragged, random)};
  std::vector<double> sums(size_of(kept, ragged)), centered = c.operands[0].values;
  for (std::size_t i = 0; i < centered.size(); ++i) sums[i / inner] += centered[i];
  CHECK(distance(run_whole(c, device), sums) < tolerance<TestType>);
  for (i32 ranks : {2, 3})
    if (over_heads)
      CHECK(distance(run_split(c, device, dim_of<heads>, AxisInfo{"tp", ranks}, Meets::as_sum), sums) < 1e-5);
  for (std::size_t i = 0; i < centered.size(); ++i) centered[i] -= sums[i / inner] / static_cast<double>(inner);
  c.op = &center, c.result = x, c.numbers = {{static_cast<double>(inner)}};
  c.operands.push_back({kept, sums});
  c.in_place = GENERATE(false, true);
  CHECK(distance(run_whole(c, device), centered) < tolerance<TestType>);
}

TEMPLATE_TEST_CASE("add_row adds the row of a position, or a stated one", "", Reference, Cpu) {
  TestType device;
  test::Random random(23);
  Dims const x = dims(batches, tokens, extent<embed>(4));
  KernelCase c{.op = &add_row, .run = ragged, .result = x, .numbers = {{-1}}};
  c.operands = {random_whole(x, ragged, random)};
  c.parameters = {random_whole(dims(extent<positions>(8), extent<embed>(4)), ragged, random)};
  c.moved = GENERATE(false, true), c.in_place = GENERATE(false, true);
  auto const expected = [&](auto const& row_of) {
    std::vector<double> y = c.operands[0].values;
    std::size_t at = 0;
    for (auto const& [s, p] : new_tokens(c.run))
      for (std::size_t i = 0; i < 4; ++i, ++at)
        y[at] += c.parameters[0].values[static_cast<std::size_t>(row_of(p)) * 4 + i];
    return y;
  };
  CHECK(distance(run_whole(c, device), expected([](i64 p) { return p; })) < tolerance<TestType>);
  auto const whole = run_whole(c, device);
  CHECK(run_split(c, device, dim_of<sequence>, AxisInfo{"sp", 3}, Meets::side_by_side) == whole);
  CHECK(run_split(c, device, dim_of<embed>, AxisInfo{"tp", 3}, Meets::side_by_side) == whole);
  c.numbers = {{5}};
  CHECK(distance(run_whole(c, device), expected([](i64) { return i64{5}; })) < tolerance<TestType>);
  c.numbers = {{-1}}, c.run[0].past = 6;
  CHECK_THROWS_WITH(run_whole(c, device),
                    Contains("sequence 0 has a position of 8") && Contains("8 positions, 0 to 7"));
}

TEMPLATE_TEST_CASE("as_keys hands the rows of a run on and refuses a past", "", Reference, Cpu) {
  TestType device;
  test::Random random(24);
  std::vector<SequenceRun> const fresh{{0, 3, 0}, {0, 0, 0}, {0, 2, 0}};
  KernelCase c{.op = &as_keys, .run = fresh, .result = dims(batches, context, extent<heads>(3))};
  c.operands = {random_whole(dims(batches, tokens, extent<heads>(3)), fresh, random)};
  CHECK(run_whole(c, device) == c.operands[0].values);
  c.run = {{0, 3, 0}, {0, 0, 0}, {1, 2, 0}};
  CHECK_THROWS_WITH(run_whole(c, device), Contains("sequence 2 has a past of 1"));
}

TEMPLATE_TEST_CASE("mean_rows takes the mean of each sequence's own rows", "", Reference, Cpu) {
  TestType device;
  test::Random random(25);
  KernelCase c{.op = &mean_rows, .run = ragged, .result = dims(batches, extent<embed>(3))};
  c.operands = {random_whole(dims(batches, tokens, extent<embed>(3)), ragged, random)};
  std::vector<double> expected(4 * 3);
  std::size_t row = 0;
  for (std::size_t s = 0; s < ragged.size(); ++s)
    for (i64 j = 0; j < ragged[s].tokens; ++j, ++row)
      for (std::size_t i = 0; i < 3; ++i)
        expected[s * 3 + i] += c.operands[0].values[row * 3 + i] / static_cast<double>(ragged[s].tokens);
  CHECK(distance(run_whole(c, device), expected) < tolerance<TestType>);
  for (i32 ranks : {2, 5})
    CHECK(distance(run_split(c, device, dim_of<sequence>, AxisInfo{"sp", ranks}, Meets::as_sum), expected) < 1e-6);
}

TEMPLATE_TEST_CASE("rotate turns pairs by position", "", Reference, Cpu) {
  TestType device;
  test::Random random(5);
  auto const numbers = GENERATE(Numbers{{10000, 0, 0, 1, 1, 4, 0}}, Numbers{{10000, 4, 1, 1, 1, 4, 0}},
                                Numbers{{500, 8, 0, 8, 1, 4, 64}}, Numbers{{100, 0, 1, 2, 1, 4, 0}});
  bool const in_place = GENERATE(false, true);
  Head const h{3, 3, 12};
  std::vector<SequenceRun> const far{{5, 3, 1}, {8190, 4, 1}, {9, 1, 1}};  // slots of the table meet and wrap
  for (auto const& run : {ragged, far}) {
    Dims const x = dims(batches, tokens, extent<heads>(h.heads), extent<head_dim>(h.size));
    KernelCase c{.op = &rotate, .run = run, .result = x, .numbers = numbers};
    c.operands = {random_whole(x, run, random)};
    c.in_place = in_place;
    CHECK(distance(run_whole(c, device), rotate_oracle(c, h)) < tolerance<TestType>);
    CHECK(distance(run_whole(c, device), rotate_oracle(c, h)) < tolerance<TestType>);
  }
  KernelCase c{.op = &rotate,
               .run = ragged,
               .result = dims(batches, tokens, extent<heads>(1), extent<head_dim>(3)),
               .numbers = {{10000, 0, 0, 1, 1, 4, 0}}};
  c.operands = {random_whole(c.result, ragged, random)};
  CHECK_THROWS_WITH(run_whole(c, device), Contains("rotate: 3 elements of a head of 3 cannot turn in pairs"));
}

TEMPLATE_TEST_CASE("append writes after what a sequence has", "", Reference, Cpu) {
  TestType device;
  test::Random random(6);
  Extent const width = extent<head_dim>(4), head = extent<kv_heads>(2, 4);
  Dims const x = dims(batches, tokens, head, width), cache = dims(batches, context, head, width);
  KernelCase c{.op = &append, .run = ragged, .state = random_whole(cache, ragged, random)};
  c.operands = {random_whole(x, ragged, random)};
  std::vector<double> expected = c.state.values;
  std::size_t from = 0, to = 0;
  for (SequenceRun const& s : ragged) {
    to += static_cast<std::size_t>(s.past * 8);
    for (i64 i = 0; i < s.tokens * 8; ++i) expected[to++] = c.operands[0].values[from++];
  }
  CHECK(run_whole(c, device) == expected);
}

TEMPLATE_TEST_CASE("attention of grouped heads over ragged sequences", "", Reference, Cpu) {
  TestType device;
  test::Random random(7);
  auto const h = GENERATE(Head{4, 4, 8}, Head{9, 3, 16}, Head{5, 2, 20}, Head{6, 1, 7});
  auto const numbers = GENERATE(Numbers{}, Numbers{{0.3, 0, 0}}, Numbers{{0, 3, 0}}, Numbers{{0, 0, 2.5}},
                                Numbers{{0.4, 70, 4}}, Numbers{{0, 0, 0, 1}}, Numbers{{0.2, 0, 3, 1}});
  std::vector<SequenceRun> const longer{{61, 70, 1}, {130, 1, 1}};  // several blocks of keys, tiles that end in between
  for (auto const& run : {ragged, longer}) {
    auto const c = attend_case(h, run, numbers, random);
    CHECK(distance(run_whole(c, device), attend_oracle(c, h)) < tolerance<TestType>);
  }
}

TEMPLATE_TEST_CASE("a rank's heads read the KV heads of the whole", "", Reference, Cpu) {
  TestType device;
  test::Random random(8);
  Head const h{9, 3, 8};
  auto const c = attend_case(h, ragged, Numbers{}, random);
  auto const whole = run_whole(c, device);
  for (i32 ranks : {2, 3, 4, 5, 9})
    CHECK(run_split(c, device, dim_of<heads>, AxisInfo{"tp", ranks}, Meets::side_by_side) == whole);
  for (i32 ranks : {2, 5}) {
    CHECK(run_split(c, device, dim_of<batch>, AxisInfo{"dp", ranks}, Meets::side_by_side) == whole);
    CHECK(run_split(c, device, dim_of<sequence>, AxisInfo{"cp", ranks}, Meets::side_by_side) == whole);
  }
}

TEMPLATE_TEST_CASE("lookup takes rows and refuses what is none", "", Reference, Cpu) {
  TestType device;
  test::Random random(9);
  auto c = lookup_case({0, 10, 3, 3, 9, 1, 2, 10}, ragged, random);
  std::vector<double> expected;
  for (double id : c.operands[0].values)
    for (std::size_t i = 0; i < 5; ++i)
      expected.push_back(c.parameters[0].values[static_cast<std::size_t>(id) * 5 + i]);
  CHECK(run_whole(c, device) == expected);
  for (i32 ranks : {2, 3, 20})
    CHECK(run_split(c, device, dim_of<vocab>, AxisInfo{"tp", ranks}, Meets::as_sum) == expected);
  c.moved = true;
  CHECK(run_whole(c, device) == expected);
  CHECK_THROWS_WITH(run_whole(lookup_case({0, 0, 0, 0, 11, 0, 0, 0}, ragged, random), device),
                    Contains("token id 11 (sequence 1, position 1)") && Contains("vocabulary of 11"));
  CHECK_THROWS_WITH(run_whole(lookup_case({0, 0, 0, 0, 0, 0, 0, -1}, ragged, random), device),
                    Contains("token id -1 (sequence 3, position 0)"));
}

TEMPLATE_TEST_CASE("take_rows takes the last positions that are asked for", "", Reference, Cpu) {
  TestType device;
  test::Random random(10);
  KernelCase c{.op = &take_rows, .run = ragged, .result = dims(batches, asked, extent<embed>(3))};
  c.operands = {random_whole(dims(batches, tokens, extent<embed>(3)), ragged, random)};
  std::vector<double> expected;
  for (std::size_t row : {1, 2, 6, 7})
    for (std::size_t i = 0; i < 3; ++i) expected.push_back(c.operands[0].values[row * 3 + i]);
  CHECK(run_whole(c, device) == expected);
  for (i32 ranks : {2, 3, 7})
    CHECK(run_split(c, device, dim_of<sequence>, AxisInfo{"sp", ranks}, Meets::as_sum) == expected);
  c.run[1].rows = 5;
  CHECK_THROWS_WITH(run_whole(c, device), Contains("sequence 1 asks for 5 rows of 4 new tokens"));
}

TEMPLATE_TEST_CASE("choose takes the largest logit, the lowest id of equal ones", "", Reference, Cpu) {
  TestType device;
  auto const c = choose_case({1, 3, 3, 0, 7, -1, 2, 7, -2, -2, -3, -4, 0, 0, 0, 0.5}, 4, ragged);
  auto const whole = choices(c, device);
  std::vector<i64> best;
  for (Choice const& choice : whole) best.push_back(choice.index);
  CHECK(best == std::vector<i64>{1, 0, 0, 3});
  CHECK(whole[2].value == -2);
  AxisInfo const axis{"tp", 6};  // more ranks than tokens: some hold none
  for (std::size_t row = 0; row < whole.size(); ++row) {
    Choice winner{-INFINITY, -1};
    for (int rank = 0; rank < 6; ++rank) {
      Choice const part = choices(c, device, part_of(dim_of<vocab>, axis, rank))[row];
      if (rank >= 4) CHECK((part.index == -1 && part.value == -INFINITY));
      if (part.index >= 0 && part.value > winner.value) winner = part;
    }
    CHECK(winner.index == whole[row].index);
  }
  auto const broken = choose_case({0, 0, NAN, 0}, 4, {{0, 1, 1}});
  CHECK_THROWS_WITH(choices(broken, device), Contains("token 2 in row 0 is not a number"));
}

TEMPLATE_TEST_CASE("sampling follows the softmax and does not depend on the split", "", Reference, Cpu) {
  TestType device;
  std::vector<double> const logits{2, 1, 0, -1, 1.5};
  auto c = choose_case(logits, 5, {{0, 1, 1}});
  std::vector<int> drawn(5);
  int const draws = 4000;
  for (int n = 0; n < draws; ++n) {
    c.rules = {{.temperature = 2, .threshold = 0, .has_threshold = true, .seed = static_cast<std::uint64_t>(n)}};
    Choice const whole = choices(c, device)[0];
    ++drawn[static_cast<std::size_t>(whole.index)];
    if (n < 50) {
      Choice const low = choices(c, device, part_of(dim_of<vocab>, AxisInfo{"tp", 2}, 0))[0],
                   high = choices(c, device, part_of(dim_of<vocab>, AxisInfo{"tp", 2}, 1))[0];
      CHECK((high.value > low.value ? high : low).index == whole.index);
    }
  }
  double total = 0;
  for (double l : {2.0, 1.0, 0.0, 1.5}) total += std::exp(l / 2);
  for (std::size_t i = 0; i < 5; ++i) {
    double const expected = logits[i] < 0 ? 0 : std::exp(logits[i] / 2) / total;
    CHECK(std::abs(drawn[i] / static_cast<double>(draws) - expected) < 0.03);
  }
  c.rules[0].temperature = -1;
  CHECK_THROWS_WITH(choices(c, device), Contains("temperature"));
  c.rules = {{.temperature = 1, .threshold = 5, .has_threshold = true, .seed = 1}};
  CHECK(choices(c, device)[0].index == -1);
}

TEMPLATE_TEST_CASE("tensors without elements are legal everywhere", "", Reference, Cpu) {
  TestType device;
  test::Random random(11);
  for (auto const& run : {std::vector<SequenceRun>{}, std::vector<SequenceRun>{{4, 0, 0}, {0, 0, 0}}}) {
    CHECK(run_whole(attend_case({4, 2, 8}, run, Numbers{}, random), device).empty());
    CHECK(run_whole(lookup_case({}, run, random), device).empty());
    CHECK(choices(choose_case({}, 3, run), device).empty());
  }
  CHECK(choices(choose_case({}, 0, ragged), device).size() == 4);
}

TEMPLATE_TEST_CASE("kernels refuse shapes that do not fit", "", Reference, Cpu) {
  TestType device;
  test::Random random(12);
  Dims const x = dims(batches, tokens, extent<embed>(6));
  KernelCase c{.op = &dovetail::add, .run = ragged, .result = x};
  c.operands = {random_whole(x, ragged, random)};
  c.parameters = {random_whole(dims(extent<ffn>(4)), ragged, random)};
  CHECK_THROWS_WITH(run_whole(c, device), Contains("a parameter of 4 elements does not cover an operand 6 wide"));
  c.op = &matmul, c.parameters[0] = random_whole(dims(extent<embed>(6), extent<ffn>(4)), ragged, random);
  c.parameters[0].inputs = 1;
  CHECK_THROWS_WITH(run_whole(c, device), Contains("operand width times result width differ: 24 and 36"));
}
