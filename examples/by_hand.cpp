// SPDX-License-Identifier: MIT
// A tensor-parallel MLP written by hand, on threads: y = x + down(max(0, up(x))), with the placement of every tensor in
// its type. Leaving out the all_reduce, or adding x before it, does not compile. The values are small integers, so the
// split result must equal the whole one exactly, for any number of ranks. Returns 0 where it does.
#include "finish_output.hpp"

#include <algorithm>
#include <cstdio>
#include <dovetail/comm/threads.hpp>
#include <dovetail/typed/typed.hpp>
namespace dt = dovetail;
namespace tt = dovetail::typed;

constexpr dt::i64 tokens = 4, width = 8, hidden = 24;
using Hidden = tt::Shape<tt::Of<dt::batch, tokens>, tt::Of<dt::embed, width>>;
using UpMatrix = tt::Shape<tt::Of<dt::ffn, hidden>, tt::Of<dt::embed, width>>;
using DownMatrix = tt::Shape<tt::Of<dt::embed, width>, tt::Of<dt::ffn, hidden>>;

std::vector<float> integers(dt::i64 count, int seed) {
  std::vector<float> values;
  for (dt::i64 i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7 + seed) % 5 - 2));
  return values;
}

/// y = x + down(max(0, up(x))) on one rank, in plain loops.
std::vector<float> whole_mlp(std::vector<float> const& x, std::vector<float> const& up,
                             std::vector<float> const& down) {
  std::vector<float> y = x;
  for (dt::i64 t = 0; t < tokens; ++t)
    for (dt::i64 f = 0; f < hidden; ++f) {
      float h = 0;
      for (dt::i64 e = 0; e < width; ++e) h += x[std::size_t(t * width + e)] * up[std::size_t(f * width + e)];
      for (dt::i64 e = 0; e < width && h > 0; ++e)
        y[std::size_t(t * width + e)] += h * down[std::size_t(e * hidden + f)];
    }
  return y;
}

/// The same on the ranks of an axis; true where every rank has the whole result.
template <class Tp>
bool split_mlp() {
  using namespace tt;
  auto const x_whole = integers(tokens * width, 1), up_whole = integers(hidden * width, 2);
  auto const down_whole = integers(width * hidden, 3);
  auto const expected = whole_mlp(x_whole, up_whole, down_whole);
  int const ranks = dt::axis_of<Tp>->size;
  dt::ThreadWorld world(ranks);
  struct Report {
    dt::Range columns{};
    dt::i64 received = 0;
    bool equal = false;
  };
  std::vector<Report> reports(static_cast<std::size_t>(ranks));
  std::vector<int> everyone;
  for (int r = 0; r < ranks; ++r) everyone.push_back(r);

  world.run([&](dt::ThreadCommunicator& c) {
    auto const group = c.group(everyone);
    dt::Coordinate here;
    here.push(c.rank());
    auto const x = Tensor<float, Hidden, On<Tp, Whole>>::part_of(x_whole, here);
    auto const up = Tensor<float, UpMatrix, On<Tp, Split<dt::ffn>>>::part_of(up_whole, here);
    auto const down = Tensor<float, DownMatrix, On<Tp, Split<dt::ffn>>>::part_of(down_whole, here);

    auto const h = map([](float v) { return v > 0 ? v : 0; }, contract(x, up));  // (batch, ffn/tp)
    auto const part = contract(h, down);                                         // (batch, embed)+tp
    auto const y = add(x, all_reduce<Tp>(c, group, part));                       // (batch, embed)

    reports[std::size_t(c.rank())] = {h.box().ranges[1], c.counters().total().bytes,
                                      std::equal(expected.begin(), expected.end(), y.local().begin())};
  });
  bool all = true;
  std::printf("%d ranks\n", ranks);
  for (int r = 0; r < ranks; ++r) {
    Report const& report = reports[std::size_t(r)];
    std::printf("  rank %d computes ffn %2d to %2d, receives %3d bytes: %s\n", r, int(report.columns.lo),
                int(report.columns.hi), int(report.received),
                report.equal ? "equal to the whole MLP, bit for bit" : "DIFFERS");
    all = all && report.equal;
  }
  return all;
}

struct Two : dt::Axis<"tp", 2> {};
struct Five : dt::Axis<"tp", 5> {};
struct Uneven : dt::Axis<"tp", dt::Shares<3, 1>{}> {};

int main() {
  bool const two = split_mlp<Two>(), five = split_mlp<Five>(), uneven = split_mlp<Uneven>();
  return finish_output("by_hand", two && five && uneven ? 0 : 1);
}
