// SPDX-License-Identifier: MIT
// What a world of threads does when something goes wrong: a rank that throws, calls that do not fit, ranks that end
// early or wait for each other, bad arguments. Every rank must end, with words that name the ranks and the calls, and
// no rank may still read a buffer that another has left.
#include <algorithm>
#include <dovetail/comm/threads.hpp>
#include <functional>
#include <numeric>

#include "catch.hpp"

namespace {

using namespace dovetail;
using C = ThreadCommunicator;

std::vector<int> iota(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}
struct Boom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What each rank of a world ended with: "fine", or the message; `by` is the rank that a WorldFailed names.
struct Ends {
  std::vector<std::string> said;
  std::vector<int> by;
  std::string thrown;  // by run()
  bool boom = false;   // run() threw a Boom

  template <class F>
  Ends(ThreadWorld& world, F f) : said(static_cast<std::size_t>(world.size())), by(said.size(), -1) {
    try {
      world.run([&](C& c) {
        auto const r = static_cast<std::size_t>(c.rank());
        try {
          f(c);
          said[r] = "fine";
        } catch (WorldFailed const& error) {
          said[r] = error.what(), by[r] = error.rank;
          throw;
        } catch (std::exception const& error) {
          said[r] = error.what();
          throw;
        }
      });
    } catch (Boom const& error) {
      thrown = error.what(), boom = true;
    } catch (std::exception const& error) {
      thrown = error.what();
    }
  }
  bool everybody_says(std::string const& words) const {
    return std::all_of(said.begin(), said.end(), [&](auto const& s) { return s.find(words) != s.npos; });
  }
};

/// One call of every kind, of `n` floats a rank, with buffers that die with it. Groups are of the whole world.
struct Calls {
  C& c;
  i64 n;
  C::Group g = c.group(iota(c.size()));
  std::vector<float> a = std::vector<float>(static_cast<std::size_t>(n * c.size()), 1.f), b = a;
  std::vector<i64> counts = std::vector<i64>(static_cast<std::size_t>(c.size()), n);
  static constexpr int kinds = 8;

  C::Request start(int kind) {
    switch (kind) {
      case 0: return c.all_reduce(g, a.data(), n, Element::f32, Reduction::sum);
      case 1: return c.reduce_scatter(g, a.data(), b.data(), counts, Element::f32, Reduction::maximum);
      case 2: return c.all_gather(g, a.data(), b.data(), counts, Element::f32);
      case 3: return c.all_to_all(g, a.data(), counts, b.data(), counts, Element::f32);
      case 4: return c.broadcast(g, a.data(), n, Element::f32, c.size() - 1);
      case 5: return c.barrier(g);
      case 6: return c.send((c.rank() + 1) % c.size(), a.data(), n, Element::f32, 1);
      default: return c.receive((c.rank() + 1) % c.size(), a.data(), n, Element::f32, 1);
    }
  }
};

TEST_CASE("a rank that throws instead of calling ends the others with its words", "[comm]") {
  for (int ranks : {2, 3, 5, 8})
    for (int kind = 0; kind < Calls::kinds; ++kind) {
      CAPTURE(ranks, kind);
      int const culprit = (kind + 1) % ranks;
      ThreadWorld world(ranks);
      Ends const ends(world, [&](C& c) {
        Calls calls{c, kind % 2 ? 3 : 3000};
        calls.start(0).wait();
        if (c.rank() == culprit) throw Boom("the weights are gone");
        calls.start(kind).wait();
        calls.start(0).wait();  // where a rank had no part in that one
      });
      CHECK(ends.boom);
      CHECK(ends.thrown == "the weights are gone");
      CHECK(ends.everybody_says("the weights are gone"));
      for (int r = 0; r < ranks; ++r) CHECK(ends.by[static_cast<std::size_t>(r)] == (r == culprit ? -1 : culprit));
      CHECK_THROWS_WITH(world.run([](C&) {}), Catch::Contains("rank " + std::to_string(culprit) + " failed") &&
                                                  Catch::Contains("the weights are gone"));
    }
}

TEST_CASE("a rank that throws with a call under way ends the others with its words", "[comm]") {
  for (int ranks : {2, 3, 8})
    for (int kind = 0; kind < Calls::kinds; ++kind)
      for (i64 n : {3, 3000}) {
        CAPTURE(ranks, kind, n);
        ThreadWorld world(ranks);
        Ends const ends(world, [&](C& c) {
          Calls calls{c, n};
          // The others wait first for what the culprit never calls: completing its request would never end.
          if (c.rank()) c.receive(0, calls.b.data(), 1, Element::f32, 99).wait();
          auto const request = calls.start(kind);
          throw Boom("out of memory");
        });
        CHECK(ends.boom);
        CHECK(ends.everybody_says("out of memory"));
      }
}

TEST_CASE("no rank reads a buffer that its owner has left", "[comm]") {
  for (int turn = 0; turn < 24; ++turn) {  // for the sanitizers: large copies, and a rank that leaves in the middle
    ThreadWorld world(3);
    Ends const ends(world, [&](C& c) {
      for (int step = 0;; ++step) {
        Calls calls{c, 20000};
        auto const first = calls.start(turn % 4);
        Calls more{c, 20000};
        more.start((turn + 1) % 4).wait();
        if (c.rank() == turn % 3 && step == turn / 3) throw Boom("left");
      }
    });
    CHECK(ends.boom);
    CHECK(ends.everybody_says("left"));
  }
}

TEST_CASE("a caught exception that passed a call under way still ends the world", "[comm]") {
  ThreadWorld world(2);
  Ends const ends(world, [&](C& c) {
    Calls calls{c, 5};
    if (c.rank() == 0) try {
        auto const request = calls.start(0);
        throw Boom("swallowed");
      } catch (Boom const&) {}
    if (c.rank() == 1) c.receive(0, calls.b.data(), 1, Element::f32, 0).wait();
  });
  CHECK(ends.said[1].find("an exception left all_reduce(f32, 5, sum) unfinished") != std::string::npos);
  CHECK(ends.thrown == ends.said[1]);
}

TEST_CASE("calls that do not fit are an error that quotes both", "[comm]") {
  std::vector<float> a(4000), b(4000);
  struct Case {
    std::function<C::Request(C&, C::Group const&, float*, float*)> mine, theirs;
    char const *my_words, *their_words;
  };
  auto const gather = [](std::vector<i64> counts) {
    return
        [=](C& c, C::Group const& g, float* in, float* out) { return c.all_gather(g, in, out, counts, Element::f32); };
  };
  auto const exchange = [](std::vector<i64> send, std::vector<i64> receive) {
    return [=](C& c, C::Group const& g, float* in, float* out) {
      return c.all_to_all(g, in, send, out, receive, Element::f32);
    };
  };
  auto const reduce = [](i64 n, Element e, Reduction r = Reduction::sum) {
    return [=](C& c, C::Group const& g, float* inout, float*) { return c.all_reduce(g, inout, n, e, r); };
  };
  auto const scatter = [](std::vector<i64> counts) {
    return [=](C& c, C::Group const& g, float* in, float* out) {
      return c.reduce_scatter(g, in, out, counts, Element::f32, Reduction::sum);
    };
  };
  auto const spread = [](i64 n, int root) {
    return [=](C& c, C::Group const& g, float* x, float*) { return c.broadcast(g, x, n, Element::f32, root); };
  };
  auto const meet = [](C& c, C::Group const& g, float*, float*) { return c.barrier(g); };
  Case const cases[] = {
      {gather({4, 4}), gather({5, 5}), "all_gather(f32, counts [4, 4])", "all_gather(f32, counts [5, 5])"},
      {gather({4, 4}), gather({4, 5}), "counts [4, 4]", "counts [4, 5]"},
      {gather({2000, 4}), gather({2001, 4}), "counts [2000, 4]", "counts [2001, 4]"},
      {gather({4, 4}), reduce(4, Element::f32), "all_gather(f32, counts [4, 4])", "all_reduce(f32, 4, sum)"},
      {reduce(4, Element::f32), reduce(5, Element::f32), "(f32, 4, sum)", "(f32, 5, sum)"},
      {reduce(1024, Element::f32), reduce(1025, Element::f32), "1024", "1025"},
      {reduce(4, Element::f32), reduce(4, Element::i32), "(f32, 4, sum)", "(i32, 4, sum)"},
      {reduce(4, Element::f32), reduce(4, Element::f32, Reduction::maximum), "sum", "maximum"},
      {scatter({3, 1}), scatter({1, 3}), "counts [3, 1], sum", "counts [1, 3], sum"},
      {exchange({2, 1}, {2, 3}), exchange({2, 2}, {1, 2}), "send counts [2, 1], receive counts [2, 3]",
       "send counts [2, 2], receive counts [1, 2]"},
      {spread(4, 0), spread(4, 1), "broadcast(f32, 4, root 0)", "broadcast(f32, 4, root 1)"},
      {spread(4, 0), spread(3, 0), "broadcast(f32, 4, root 0)", "broadcast(f32, 3, root 0)"},
      {meet, gather({0, 0}), "barrier()", "counts [0, 0]"},
  };
  for (auto const& [mine, theirs, my_words, their_words] : cases) {
    CAPTURE(my_words, their_words);
    ThreadWorld world(2);
    Ends const ends(world, [&, &mine = mine, &theirs = theirs](C& c) {
      std::vector<float> in(4000), out(4000);
      auto const g = c.group(iota(2));
      (c.rank() == 0 ? mine : theirs)(c, g, in.data(), out.data()).wait();
    });
    CHECK(ends.everybody_says("ranks 0 and 1 make calls that do not fit on the group of ranks [0, 1]"));
    CHECK(ends.everybody_says("rank 0 calls"));
    CHECK(ends.everybody_says("rank 1 calls"));
    CHECK(ends.everybody_says(my_words));
    CHECK(ends.everybody_says(their_words));
  }
  ThreadWorld world(4);  // ranks of the message are world ranks, whatever the order of the group
  Ends const ends(world, [](C& c) {
    float x = 0;
    auto const g = c.group(std::vector<int>{3, 1, 0, 2});
    c.all_reduce(g, &x, c.rank() == 3 ? 0 : 1, Element::f32, Reduction::sum).wait();
  });
  CHECK(ends.everybody_says("rank 3 calls all_reduce(f32, 0, sum)"));
  CHECK(ends.everybody_says("[3, 1, 0, 2]"));
}

TEST_CASE("a receive of another size or type is an error with both", "[comm]") {
  for (bool other_type : {false, true}) {
    ThreadWorld world(2);
    Ends const ends(world, [&](C& c) {
      float x[8] = {};
      if (c.rank() == 0) c.send(1, x, 4, Element::f32, -7).wait();
      if (c.rank() == 1) c.receive(0, x, other_type ? 4 : 5, other_type ? Element::i32 : Element::f32, -7).wait();
    });
    CHECK(ends.everybody_says("rank 0 calls send(f32, 4, tag -7) to rank 1"));
    CHECK(ends.everybody_says(other_type ? "rank 1 calls receive(i32, 4, tag -7) from rank 0"
                                         : "rank 1 calls receive(f32, 5, tag -7) from rank 0"));
  }
}

TEST_CASE("waiting for a rank that has ended is an error", "[comm]") {
  for (int kind = 0; kind < Calls::kinds; ++kind) {
    CAPTURE(kind);
    ThreadWorld world(3);
    Ends const ends(world, [&](C& c) {
      Calls calls{c, 2};
      if (c.rank() == 2) return;
      if (kind < 6) return calls.start(kind).wait();
      if (c.rank() == 1) calls.start(kind).wait();
    });
    CHECK(ends.said[2] == "fine");
    CHECK(ends.by[1] == 2);
    CHECK(ends.said[1].find("rank 2 ended while rank ") != std::string::npos);
    CHECK(ends.said[1].find(" waits for it in ") != std::string::npos);
    CHECK(ends.thrown == ends.said[1]);
  }
}

TEST_CASE("ranks that wait for each other are told so", "[comm]") {
  auto const stuck = [](int ranks, auto f) {
    ThreadWorld world(ranks);
    return Ends(world, f);
  };
  Ends const receives = stuck(2, [](C& c) {
    int x = 0;
    c.receive(1 - c.rank(), &x, 1, Element::i32, 3).wait();
  });
  CHECK(receives.everybody_says("no rank can go on: rank 0 waits in receive(i32, 1, tag 3) from rank 1; rank 1 waits"));
  Ends const sends = stuck(2, [](C& c) {  // a send is a rendezvous
    int x = 0, y = 0;
    c.send(1 - c.rank(), &x, 1, Element::i32, 3).wait();
    c.receive(1 - c.rank(), &y, 1, Element::i32, 3).wait();
  });
  CHECK(sends.everybody_says("rank 1 waits in send(i32, 1, tag 3) to rank 0"));
  Ends const groups = stuck(3, [](C& c) {
    auto const all = c.group(iota(3));
    auto const two = c.rank() == 2 ? all : c.group(iota(2));
    if (c.rank() == 1) return c.barrier(two).wait();
    c.barrier(all).wait();
  });
  CHECK(groups.everybody_says("the same list"));
  Ends const self = stuck(1, [](C& c) { c.receive(0, nullptr, 0, Element::f32, 0).wait(); });
  CHECK(self.everybody_says("rank 0 waits in receive(f32, 0, tag 0) from rank 0"));
  Ends const tags = stuck(3, [](C& c) {
    if (c.rank() == 0) c.send(1, nullptr, 0, Element::f32, 1).wait();
    if (c.rank() == 1) c.receive(0, nullptr, 0, Element::f32, 2).wait();
  });
  CHECK(tags.thrown.find("rank 2 has ended") != std::string::npos);
}

TEST_CASE("fail() ends the world from any thread", "[comm]") {
  ThreadWorld world(2);
  std::thread watch;
  Ends const ends(world, [&](C& c) {
    if (c.rank() == 0) {
      watch = std::thread([&c] { c.fail("the user pressed stop"); });
      c.receive(1, nullptr, 0, Element::u8, 0).wait();
    } else {
      for (auto const g = c.group(std::vector<int>{1});;) c.barrier(g).wait();
    }
  });
  watch.join();
  CHECK(ends.everybody_says("rank 0 failed: the user pressed stop"));
  CHECK_THROWS_AS(world.run([](C&) {}), WorldFailed);
}

TEST_CASE("an exception of any type comes out of run", "[comm]") {
  ThreadWorld world(2);
  std::string other;
  auto const rank = [&](C& c) {
    if (c.rank() == 0) throw 17;
    try {
      c.receive(0, nullptr, 0, Element::u8, 0).wait();
    } catch (WorldFailed const& error) {
      other = error.message();
    }
  };
  CHECK_THROWS_AS(world.run(rank), int);
  CHECK(other == "an exception that is not a std::exception");
}

TEST_CASE("a rank that leaves a request to others is an error", "[comm]") {
  ThreadWorld world(2);
  C::Request kept;
  CHECK_THROWS_WITH(world.run([&](C& c) {
    if (c.rank() == 0) kept = c.receive(1, nullptr, 0, Element::u8, 5);
  }),
                    Catch::Contains("rank 0 ended before it waited for receive(u8, 0, tag 5) from rank 1"));
}

TEST_CASE("bad arguments are refused where they are made", "[comm]") {
  ThreadWorld world(2);
  auto const refused = [&](auto call) {
    std::string text;
    world.run([&](C& c) {
      if (c.rank() != 1) return;
      try {
        std::vector<float> x(16);
        call(c, c.group(std::vector<int>{1}), x.data());
      } catch (std::invalid_argument const& error) {
        text = error.what();
      }
    });
    return text;
  };
  using G = C::Group;
  std::vector<i64> const one = {1}, two = {1, 1}, negative = {-1}, huge = {INT64_MAX};
  auto const sum = Reduction::sum;
  auto const f32 = Element::f32;
  CHECK(refused([&](C& c, G const&, float* x) { c.all_reduce({}, x, 1, f32, sum).wait(); }) ==
        "dovetail: rank 1: all_reduce: the group is empty; make one with group(...) of this rank's communicator");
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_reduce(g, x, -1, f32, sum).wait(); }) ==
        "dovetail: rank 1: all_reduce: the count of inout is -1");
  CHECK(refused([&](C& c, G const& g, float*) { c.all_reduce(g, nullptr, 2, f32, sum).wait(); }) ==
        "dovetail: rank 1: all_reduce: inout is null, but holds 2 elements");
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_reduce(g, x, 1, f32, Reduction::arg_max).wait(); }) ==
        "dovetail: rank 1: all_reduce: arg_max of f32 does not exist; choice goes with arg_max, and only so");
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_reduce(g, x, 1, Element::choice, sum).wait(); }) ==
        "dovetail: rank 1: all_reduce: sum of choice does not exist; choice goes with arg_max, and only so");
  CHECK(refused([&](C& c, G const& g, float* x) {
          c.all_reduce(g, reinterpret_cast<char*>(x) + 1, 1, f32, sum).wait();
        }) == "dovetail: rank 1: all_reduce: inout is not aligned for f32, which a reduction needs");
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_gather(g, x, x + 8, two, f32).wait(); }) ==
        "dovetail: rank 1: all_gather: counts has 2 entries, the group has 1 rank");
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_gather(g, x, x, negative, f32).wait(); }) ==
        "dovetail: rank 1: all_gather: counts has the entry -1");
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_to_all(g, x, huge, x, huge, f32).wait(); }) ==
        "dovetail: rank 1: all_to_all: send_counts has the entry " + std::to_string(INT64_MAX));
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_to_all(g, x, one, x + 8, std::vector<i64>{2}, f32).wait(); }) ==
        "dovetail: rank 1: all_to_all: this rank keeps 1 elements of what it sends and takes 2 from itself; the two "
        "are the same");
  CHECK(refused([&](C& c, G const& g, float* x) { c.all_to_all(g, x, one, x, one, f32).wait(); }) ==
        "dovetail: rank 1: all_to_all: the input and the output overlap where they may not");
  CHECK(refused([&](C& c, G const& g, float* x) {
          c.reduce_scatter(g, x, x + 1, std::vector<i64>{2}, f32, sum).wait();
        }) == "dovetail: rank 1: reduce_scatter: the input and the output overlap where they may not");
  CHECK(refused([&](C& c, G const& g, float* x) { c.broadcast(g, x, 1, f32, 1).wait(); }) ==
        "dovetail: rank 1: broadcast: the root is 1, legal are 0 to 0");
  CHECK(refused([&](C& c, G const&, float* x) { c.send(2, x, 1, f32, 0).wait(); }) ==
        "dovetail: rank 1: send: the receiver is 2, legal are 0 to 1");
  CHECK(refused([&](C& c, G const&, float* x) { c.receive(-1, x, 1, f32, 0).wait(); }) ==
        "dovetail: rank 1: receive: the sender is -1, legal are 0 to 1");
  auto const group = [&](std::vector<int> ranks) { return refused([&](C& c, G const&, float*) { c.group(ranks); }); };
  CHECK(group({0, 1, 1}) == "dovetail: rank 1: group([0, 1, 1]): rank 1 occurs twice");
  CHECK(group({1, 2}) == "dovetail: rank 1: group([1, 2]): rank 2 is not in this world of 2 ranks");
  CHECK(group({0}) == "dovetail: rank 1: group([0]): the calling rank is not in the list");
  CHECK(group({}) == "dovetail: rank 1: group([]): the calling rank is not in the list");
  G const other = world.communicator(0).group(iota(2));
  CHECK(refused([&](C& c, G const&, float*) { c.barrier(other).wait(); }) ==
        "dovetail: rank 1: barrier: the group handle was made by rank 0; every rank uses a handle of its own");
  ThreadWorld elsewhere(2);
  G const foreign = elsewhere.communicator(1).group(iota(2));
  CHECK(refused([&](C& c, G const&, float*) { c.barrier(foreign).wait(); }) ==
        "dovetail: rank 1: barrier: the group belongs to another world");
  CHECK_THROWS_WITH(ThreadWorld(0), "dovetail: a thread world of 0 ranks is not possible; legal are 1 to 64");
  CHECK_THROWS_AS(ThreadWorld(65), std::invalid_argument);
  CHECK_THROWS_WITH(world.communicator(2), "dovetail: a thread world of 2 ranks has no rank 2");
}

}  // namespace
