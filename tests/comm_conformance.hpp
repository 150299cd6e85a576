// SPDX-License-Identifier: MIT
// What every communicator must do, as functions that each rank of a world calls; a backend is done when they pass. Each
// returns what it found wrong on this rank, or an empty string: nothing is asserted off the main thread. Every exchange
// is compared with a plain reference on rank-dependent values, and its counted traffic with the predicted.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <dovetail/comm/communicator.hpp>
#include <dovetail/tensor/half.hpp>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace conformance {

using namespace dovetail;  // a test's own namespace

inline std::vector<int> iota(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Elements of any type, seen as small whole numbers that all types hold exactly.
struct Elements {
  Element type;
  i64 count;
  std::vector<std::uint64_t> storage;  // aligned for every element

  Elements(Element t, i64 n, double fill = 99)
      : type(t), count(n), storage(static_cast<std::size_t>(n * bytes_of(t) / 8 + 1)) {
    for (i64 i = 0; i < n; ++i) set(i, fill);
  }
  char* at(i64 i) { return reinterpret_cast<char*>(storage.data()) + i * bytes_of(type); }
  template <class T>
  void put(i64 i, T x) {
    std::memcpy(at(i), &x, sizeof x);
  }
  template <class T>
  T take(i64 i) {
    T x;
    std::memcpy(&x, at(i), sizeof x);
    return x;
  }
  void set(i64 i, double x) {
    switch (type) {
      case Element::f32: return put(i, static_cast<float>(x));
      case Element::f64: return put(i, x);
      case Element::f16: return put(i, f16_of(static_cast<float>(x)));
      case Element::bf16: return put(i, bf16_of(static_cast<float>(x)));
      case Element::i32: return put(i, static_cast<std::int32_t>(x));
      case Element::i64: return put(i, static_cast<std::int64_t>(x));
      case Element::u8: return put(i, static_cast<std::uint8_t>(x));
      case Element::choice: return put(i, Choice{x, static_cast<i64>(x)});
    }
  }
  double get(i64 i) {
    switch (type) {
      case Element::f32: return static_cast<double>(take<float>(i));
      case Element::f64: return take<double>(i);
      case Element::f16: return static_cast<double>(float_of_f16(take<std::uint16_t>(i)));
      case Element::bf16: return static_cast<double>(float_of_bf16(take<std::uint16_t>(i)));
      case Element::i32: return take<std::int32_t>(i);
      case Element::i64: return static_cast<double>(take<std::int64_t>(i));
      case Element::u8: return take<std::uint8_t>(i);
      case Element::choice: {
        auto const c = take<Choice>(i);
        return static_cast<double>(c.index) == c.value ? c.value : -1;
      }
    }
    return -1;
  }
};

/// Element i of what `rank` brings; sums over 32 ranks stay below 256, which is exact in bf16 and u8.
inline double brought(int rank, i64 i) { return static_cast<double>((3 * i + 5 * rank + rank * i) % 7); }

/// First difference between a buffer and what it should hold.
template <class Want>
std::string compare(std::string const& what, Elements& got, Want want) {
  for (i64 i = 0; i < got.count; ++i)
    if (got.get(i) != want(i))
      return what + " of " + name_of(got.type) + "[" + std::to_string(got.count) + "]: element " + std::to_string(i) +
             " is " + std::to_string(got.get(i)) + ", not " + std::to_string(want(i)) + "\n";
  return "";
}

/// Runs one exchange and compares the traffic that it caused with the prediction, by kind and in all.
template <class C, class F>
std::string counted(std::string const& what, C& c, Exchange kind, Cost predicted, F exchange) {
  c.reset_counters();
  exchange();
  TrafficCounters const counters = c.counters();
  if (counters[kind] == predicted && counters.total() == predicted) return "";
  auto const text = [](i64 messages, i64 bytes) { return std::to_string(messages) + " of " + std::to_string(bytes); };
  return what + ": rank " + std::to_string(c.rank()) + " received " +
         text(counters.total().messages, counters.total().bytes) + " bytes, predicted " +
         text(predicted.messages, predicted.bytes) + "\n";
}

inline constexpr Element numbers[] = {Element::f32, Element::f64, Element::f16, Element::bf16,
                                      Element::i32, Element::i64, Element::u8};

template <class C>
std::string all_reduces(C& c) {
  auto const ranks = iota(c.size());
  auto const g = c.group(ranks);
  std::string wrong;
  auto const one = [&](Element e, i64 n, Reduction r) {
    Elements x(e, n);
    for (i64 i = 0; i < n; ++i) x.set(i, brought(c.rank(), i));
    std::string const what = std::string("all_reduce ") + name_of(r);
    wrong += counted(what, c, Exchange::all_reduce, all_reduce_cost(n, bytes_of(e), c.size(), c.rank()),
                     [&] { c.all_reduce(g, x.storage.data(), n, e, r).wait(); });
    wrong += compare(what, x, [&](i64 i) {
      double sum = 0, largest = 0;
      for (int k : ranks) sum += brought(k, i), largest = std::max(largest, brought(k, i));
      return r == Reduction::sum ? sum : largest;
    });
  };
  for (Element e : numbers)
    for (i64 n : {i64{0}, i64{1}, i64{5}, one_shot_bytes / bytes_of(e), one_shot_bytes / bytes_of(e) + 1})
      one(e, n, n % 2 ? Reduction::sum : Reduction::maximum);
  for (i64 n : {1021, 1023, 1024, 1025, 2055}) one(Element::f32, n, Reduction::sum);
  return wrong;
}

/// Sums of numbers that rounding makes depend on their order: every rank has the bits of the sum in group order.
template <class C>
std::string same_bits(C& c) {
  std::string wrong;
  auto ranks = iota(c.size());
  for (int turn = 0; turn < 2; ++turn, std::reverse(ranks.begin(), ranks.end())) {
    auto const g = c.group(ranks);
    for (i64 n : {576, 1500}) {
      auto const mine = [](int rank, i64 i) {
        return std::sin(static_cast<float>(rank * 1000 + i)) * std::exp2(static_cast<float>((rank * 7 + i) % 20));
      };
      std::vector<float> x, want;
      for (i64 i = 0; i < n; ++i) {
        x.push_back(mine(c.rank(), i));
        float sum = mine(ranks[0], i);
        for (std::size_t k = 1; k < ranks.size(); ++k) sum += mine(ranks[k], i);
        want.push_back(sum);
      }
      c.all_reduce(g, x.data(), n, Element::f32, Reduction::sum).wait();
      if (std::memcmp(x.data(), want.data(), x.size() * sizeof(float)))
        wrong += "a sum of " + std::to_string(n) + " floats has other bits on rank " + std::to_string(c.rank()) + "\n";
    }
  }
  return wrong;
}

/// Counts with zeros in them, small and large, for a group of n.
inline std::vector<std::vector<i64>> uneven(int n) {
  std::vector<std::vector<i64>> all(5);
  for (int i = 0; i < n; ++i) {
    all[0].push_back((i * 7 + 1) % 5);
    all[1].push_back(i % 3 == 1 ? 0 : 200 + 41 * i);
    all[2].push_back(0);
    all[3].push_back(i == n - 1 ? 3001 : 0);
    all[4].push_back(block(1500, 1, n, i).size());
  }
  return all;
}
inline i64 before(std::vector<i64> const& counts, int i) {
  return std::accumulate(counts.begin(), counts.begin() + i, i64{0});
}
/// What stands where pieces of these sizes are put side by side: value(piece, index in it).
template <class Value>
std::vector<double> joined(std::vector<i64> const& counts, Value value) {
  std::vector<double> all;
  for (std::size_t k = 0; k < counts.size(); ++k)
    for (i64 i = 0; i < counts[k]; ++i) all.push_back(value(static_cast<int>(k), i));
  return all;
}

template <class C>
std::string reduce_scatters(C& c) {
  std::string wrong;
  auto const ranks = iota(c.size());
  auto const g = c.group(ranks);
  for (auto const& counts : uneven(c.size()))
    for (Element e : {Element::f32, Element::f16, Element::i64})
      for (bool in_place : {false, true}) {
        i64 const all = before(counts, c.size()), lo = before(counts, c.rank()),
                  own = counts[static_cast<std::size_t>(c.rank())];
        Elements in(e, all), out(e, own);
        for (i64 i = 0; i < all; ++i) in.set(i, brought(c.rank(), i));
        Cost const predicted = reduce_scatter_cost(counts, bytes_of(e), c.size(), c.rank());
        wrong += counted("reduce_scatter", c, Exchange::reduce_scatter, predicted, [&] {
          c.reduce_scatter(g, in.storage.data(), in_place ? in.at(lo) : out.at(0), counts, e, Reduction::sum).wait();
        });
        if (in_place) std::memcpy(out.at(0), in.at(lo), static_cast<std::size_t>(own * bytes_of(e)));
        wrong += compare("reduce_scatter", out, [&](i64 i) {
          double sum = 0;
          for (int k : ranks) sum += brought(k, lo + i);
          return sum;
        });
      }
  return wrong;
}

template <class C>
std::string all_gathers(C& c) {
  std::string wrong;
  auto const g = c.group(iota(c.size()));
  for (auto const& counts : uneven(c.size()))
    for (Element e : {Element::f32, Element::u8, Element::choice})
      for (bool in_place : {false, true}) {
        i64 const own = counts[static_cast<std::size_t>(c.rank())], lo = before(counts, c.rank());
        Elements in(e, own), out(e, before(counts, c.size()));
        for (i64 i = 0; i < own; ++i) (in_place ? out : in).set(in_place ? lo + i : i, brought(c.rank(), i));
        Cost const predicted = all_gather_cost(counts, bytes_of(e), c.size(), c.rank());
        wrong += counted("all_gather", c, Exchange::all_gather, predicted,
                         [&] { c.all_gather(g, in_place ? out.at(lo) : in.at(0), out.at(0), counts, e).wait(); });
        auto const want = joined(counts, brought);
        wrong += compare("all_gather", out, [&](i64 i) { return want[static_cast<std::size_t>(i)]; });
      }
  return wrong;
}

/// counts(i, j): how many elements member i sends member j.
template <class C, class Counts>
std::string one_all_to_all(C& c, typename C::Group const& g, Element e, Counts counts) {
  std::vector<i64> send, receive;
  for (int i = 0; i < c.size(); ++i) send.push_back(counts(c.rank(), i)), receive.push_back(counts(i, c.rank()));
  Elements in(e, before(send, c.size())), out(e, before(receive, c.size()));
  for (int j = 0; j < c.size(); ++j)
    for (i64 i = 0; i < counts(c.rank(), j); ++i) in.set(before(send, j) + i, brought(c.rank() + 3 * j, i));
  Cost const predicted = all_to_all_cost(receive, bytes_of(e), c.size(), c.rank());
  std::string wrong = counted("all_to_all", c, Exchange::all_to_all, predicted,
                              [&] { c.all_to_all(g, in.at(0), send, out.at(0), receive, e).wait(); });
  auto const want = joined(receive, [&](int k, i64 i) { return brought(k + 3 * c.rank(), i); });
  return wrong + compare("all_to_all", out, [&](i64 i) { return want[static_cast<std::size_t>(i)]; });
}

template <class C>
std::string all_to_alls(C& c) {
  std::string wrong;
  auto const g = c.group(iota(c.size()));
  for (Element e : {Element::f32, Element::bf16, Element::i32}) {
    for (i64 scale : {0, 1, 150})
      wrong += one_all_to_all(c, g, e, [=](int i, int j) { return (i * 5 + j * 3) % 4 * scale; });
    wrong += one_all_to_all(c, g, e, [](int i, int j) { return i64{i == 0 ? 700 : 0} * (j % 2); });
    i64 const known[3][3] = {{3, 2, 1}, {2, 2, 2}, {1, 2, 3}};
    if (c.size() == 3) wrong += one_all_to_all(c, g, e, [&](int i, int j) { return known[i][j]; });
  }
  return wrong;
}

template <class C>
std::string broadcasts(C& c) {
  std::string wrong;
  auto const g = c.group(iota(c.size()));
  for (int root = 0; root < c.size(); root += 1 + c.size() / 4)
    for (i64 n : {0, 1, 1024, 1025}) {
      Elements x(Element::f32, n);
      for (i64 i = 0; i < n && c.rank() == root; ++i) x.set(i, brought(root, i));
      wrong += counted("broadcast", c, Exchange::broadcast, broadcast_cost(n, 4, c.rank(), root),
                       [&] { c.broadcast(g, x.at(0), n, Element::f32, root).wait(); });
      wrong += compare("broadcast", x, [&](i64 i) { return brought(root, i); });
    }
  return wrong;
}

template <class C>
std::string sends(C& c) {
  std::string wrong;
  int const n = c.size(), to = (c.rank() + 1) % n, from = (c.rank() + n - 1) % n;
  for (i64 size : {0, 3, 5000}) {  // a ring, in which every rank has its send and its receive under way
    Elements out(Element::i32, size), in(Element::i32, size);
    for (i64 i = 0; i < size; ++i) out.set(i, brought(c.rank(), i));
    wrong += counted("ring", c, Exchange::point_to_point, n > 1 ? point_to_point_cost(size, 4) : Cost{}, [&] {
      auto sent = c.send(to, out.at(0), size, Element::i32, 7);
      c.receive(from, in.at(0), size, Element::i32, 7).wait();
      sent.wait();
    });
    wrong += compare("ring", in, [&](i64 i) { return brought(from, i); });
  }
  // Six letters, received in another order; within a tag they keep theirs, whoever was posted first.
  int const tags[] = {1, 2, 1, 3, 2, 1}, order[] = {3, 1, 4, 0, 2, 5};
  std::vector<double> letters, got(6);
  std::vector<typename C::Request> requests;
  for (int k = 0; k < 6; ++k) letters.push_back(100 * c.rank() + k);
  auto const receive_all = [&] {
    for (int k : order)
      requests.push_back(c.receive(from, &got[static_cast<std::size_t>(k)], 1, Element::f64, tags[k]));
  };
  if (c.rank() % 2) receive_all();
  for (int k = 0; k < 6; ++k)
    requests.push_back(c.send(to, &letters[static_cast<std::size_t>(k)], 1, Element::f64, tags[k]));
  if (c.rank() % 2 == 0) receive_all();
  for (std::size_t k = requests.size(); k-- > 0;) requests[k].wait();
  for (int k = 0; k < 6; ++k)
    if (got[static_cast<std::size_t>(k)] != 100 * from + k) wrong += "letter " + std::to_string(k) + " went astray\n";
  return wrong;
}

/// Rows and columns of a mesh by turns, without a barrier between them.
template <class C>
std::string meshes(C& c) {
  std::string wrong;
  int columns = 1;
  while ((columns + 1) * (columns + 1) <= c.size()) ++columns;
  int const rows = c.size() / columns, row = c.rank() / columns, column = c.rank() % columns;
  if (row >= rows) return "";  // the mesh need not fill the world
  std::vector<int> in_row, in_column;
  for (int i = 0; i < columns; ++i) in_row.push_back(row * columns + i);
  for (int i = 0; i < rows; ++i) in_column.push_back(i * columns + column);
  auto const across = c.group(in_row), down = c.group(in_column);
  if (across.size() != columns || across.rank() != column || down.size() != rows || down.rank() != row)
    wrong += "a group is not the list that it was made of\n";
  for (int turn = 0; turn < 20; ++turn) {
    i64 const n = turn % 2 ? 3 : 1100;
    std::vector<std::int32_t> x(static_cast<std::size_t>(n), c.rank() + turn);
    c.all_reduce(across, x.data(), n, Element::i32, Reduction::sum).wait();
    c.all_reduce(down, x.data(), n, Element::i32, Reduction::sum).wait();
    int const all = rows * columns, want = all * (all - 1) / 2 + all * turn;
    for (auto got : x)
      if (got != want) return wrong + "rows, then columns: " + std::to_string(got) + ", not " + std::to_string(want);
  }
  return wrong;
}

template <class C>
std::string arg_maxes(C& c) {
  std::string wrong;
  auto const g = c.group(iota(c.size()));
  double const nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (int winner : {0, c.size() / 2, c.size() - 1}) {
    bool const me = c.rank() == winner, last = c.rank() == c.size() - 1;
    i64 const mine = 1000 - c.rank();  // lower indices on higher ranks
    std::vector<Choice> const cases = {
        {me ? 5.0 : 1.0, mine},                     // the larger value
        {2.0, mine},                                // a tie: the lowest index
        {me ? nan : infinity, mine},                // a NaN is seen
        {me ? -infinity : 9.0, me ? mine : -1},     // all others are neutral
        {7.0, -1},                                  // everybody is
        {last ? nan : 1.0, last ? i64{-1} : mine},  // a neutral NaN is neutral
    };
    i64 const lowest = 1000 - (c.size() - 1);
    i64 const want[] = {1000 - winner, lowest, 1000 - winner, 1000 - winner, -1, c.size() == 1 ? -1 : lowest + 1};
    for (int copies : {1, 60}) {  // within and beyond one shot
      std::vector<Choice> x;
      for (int k = 0; k < copies; ++k) x.insert(x.end(), cases.begin(), cases.end());
      c.all_reduce(g, x.data(), static_cast<i64>(x.size()), Element::choice, Reduction::arg_max).wait();
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i].index != want[i % cases.size()])
          wrong += "arg_max " + std::to_string(i) + ": " + std::to_string(x[i].index) + " won\n";
      if (x[2].value == x[2].value) wrong += "a NaN vanished in an arg_max\n";
    }
    float largest = me ? std::numeric_limits<float>::quiet_NaN() : 3;
    c.all_reduce(g, &largest, 1, Element::f32, Reduction::maximum).wait();
    if (largest == largest) wrong += "a NaN vanished in a maximum\n";
  }
  return wrong;
}

/// Many operations under way at once, on three groups, waited for in reverse, or not at all.
template <class C>
std::string overlaps(C& c) {
  std::string wrong;
  auto ranks = iota(c.size());
  auto const g = c.group(ranks);
  std::reverse(ranks.begin(), ranks.end());
  auto const reversed = c.group(ranks);
  auto const alone = c.group(std::vector<int>{c.rank()});
  constexpr int under_way = 7;  // more than a group can post ahead
  double const all = c.size() * (c.size() - 1) / 2.0;
  for (int turn = 0; turn < 6; ++turn) {
    i64 const n = turn % 2 ? 600 : 2;
    std::vector<std::vector<double>> x(3 * under_way, std::vector<double>(static_cast<std::size_t>(n), c.rank()));
    {
      std::vector<typename C::Request> requests;
      for (std::size_t k = 0; k < x.size(); ++k) {
        auto const& where = k % 3 == 0 ? g : k % 3 == 1 ? reversed : alone;
        requests.push_back(c.all_reduce(where, x[k].data(), n, Element::f64, Reduction::sum));
      }
      for (std::size_t k = x.size(); turn < 4 && k-- > 0;) requests[k].wait();
    }  // a request that nobody waited for is completed here
    for (std::size_t k = 0; k < x.size(); ++k)
      for (double got : x[k])
        if (got != (k % 3 == 2 ? c.rank() : all)) return "overlapping sums: " + std::to_string(got) + "\n";
  }
  c.barrier(g).wait();
  c.barrier(alone).wait();
  return wrong;
}

/// Small operations of changing kinds in a row, with ranks that dawdle.
template <class C>
std::string stress(C& c, int turns) {
  auto const g = c.group(iota(c.size()));
  int const n = c.size();
  for (int turn = 0; turn < turns; ++turn) {
    std::int64_t x = c.rank() + turn, want = std::int64_t{n} * (n - 1) / 2 + std::int64_t{n} * turn;
    std::vector<std::int64_t> gathered(static_cast<std::size_t>(n));
    std::vector<i64> const ones(static_cast<std::size_t>(n), 1);
    switch (turn % 5) {
      case 0: c.barrier(g).wait(); [[fallthrough]];
      case 1: c.all_reduce(g, &x, 1, Element::i64, Reduction::sum).wait(); break;
      case 2:
        c.all_gather(g, &x, gathered.data(), ones, Element::i64).wait();
        x = std::accumulate(gathered.begin(), gathered.end(), std::int64_t{0});
        break;
      case 3:
        std::fill(gathered.begin(), gathered.end(), x);
        c.reduce_scatter(g, gathered.data(), &x, ones, Element::i64, Reduction::sum).wait();
        break;
      case 4: c.broadcast(g, &x, 1, Element::i64, turn % n).wait(), want = turn % n + turn; break;
    }
    if (x != want) return "turn " + std::to_string(turn) + ": " + std::to_string(x) + "\n";
  }
  return "";
}

}  // namespace conformance
