// SPDX-License-Identifier: MIT
// The executor beyond numbers: the steady path allocates nothing, and whatever goes wrong before or in a run is one
// error that names rank, stage, step and tensor. (tests/exact_test.cpp has the numbers, tests/failure_test.cpp ranks
// that throw.)
#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <dovetail/run/executor.hpp>
#include <limits>

#include "catch.hpp"
#include "count_allocations.hpp"
#include "tiny_model.hpp"

namespace {

using namespace dovetail;

/// A plan of a tiny model, and what keeps it alive.
struct Planned {
  LayoutPlan made;
  Plan plan;
  Planned(std::string const& model, std::string const& layout)
      : made(plan_layout(read_layout(layout), tiny::model(model).layers, tiny::model(model).apply)),
        plan(made.view()) {}
};

template <class D>
using ThreadExecutor = Executor<D, ThreadCommunicator>;

template <class D>
ThreadExecutor<D> make(Plan const& plan, D& device, ThreadCommunicator& comm, ExecutorOptions options,
                       std::span<KernelRow<D> const> kernels = tiny::user_kernels<D>) {
  return {plan, device, comm, tiny::Weights{}, options, kernels};
}

/// One run of every sequence with the same numbers.
struct Run {
  std::vector<SequenceRun> sequences{};
  std::vector<std::vector<i32>> ids{};
  std::vector<std::span<i32 const>> tokens{};

  Run(i64 count, SequenceRun one) : sequences(static_cast<std::size_t>(count), one) {
    for (i64 s = 0; s < count; ++s) {
      ids.emplace_back();
      for (i64 t = 0; t < one.tokens; ++t) ids.back().push_back(static_cast<i32>((7 * s + 3 * t + one.past) % 5));
    }
    for (auto const& v : ids) tokens.emplace_back(v);
  }
  void on(auto& executor) const {
    executor.forward(RunShape{sequences.data(), static_cast<i32>(sequences.size())}, tokens);
  }
};

// ---- allocation

/// oneDNN allocates a few small blocks an execution: its own business.
template <class D>
void uncounted_matmul(KernelCall<D> const& call) {
  bool const counted = std::exchange(counting::on, false);
  for (auto const& row : D::kernels())
    if (row.op == &matmul) row.run(call);
  counting::on = counted;
}

/// Allocations of each rank in each of six passes of equal extents, after a prefill.
template <class D>
std::vector<std::vector<long>> allocations(std::string const& model, std::string const& layout, bool without_products) {
  Planned const p(model, layout);
  std::vector<std::vector<long>> counts(static_cast<std::size_t>(p.plan.ranks()));
  Run const prefill(3, {0, 4, 4}), decode(3, {4, 1, 1});
  std::vector<KernelRow<D>> kernels(std::begin(tiny::user_kernels<D>), std::end(tiny::user_kernels<D>));
  if (without_products) kernels.push_back({&matmul, &uncounted_matmul<D>});
  ThreadWorld world(static_cast<int>(p.plan.ranks()));
  world.run([&](ThreadCommunicator& comm) {
    D device;
    auto executor = make<D>(p.plan, device, comm, {3, 8}, kernels);
    prefill.on(executor);
    auto& mine = counts[static_cast<std::size_t>(comm.rank())];
    mine.reserve(8);
    for (int pass = 0; pass < 6; ++pass) mine.push_back(counting::of([&] { decode.on(executor); }));
  });
  return counts;
}

TEST_CASE("passes of equal extents allocate nothing after the first", "[executor]") {
  auto const check = [](auto const& counts) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (std::size_t pass = 1; pass < counts[r].size(); ++pass) {
        CAPTURE(r, pass);
        CHECK(counts[r][pass] == 0);
      }
  };
  long const counted = counting::of([] {
    int* volatile kept = new int(3);  // or the compiler leaves both out
    delete kept;
  });
  CHECK(counted == 1);
  for (char const* layout : {"single", "tp2", "pp2", "pp2 tp2", "dp2 tp3", "sp2 tp2", "pp2[tp3|sp2]"})
    for (char const* model : {"llama", "olmo", "captured", "shared_cache", "user"}) {
      CAPTURE(layout, model);
      check(allocations<Reference>(model, layout, false));
      check(allocations<Cpu>(model, layout, true));
    }
}

TEST_CASE("decoding allocates only where extents outgrow all before", "[executor]") {
  Planned const p("llama", "tp2 pp2");
  i64 const steps = 60;
  std::vector<long> counts(static_cast<std::size_t>(p.plan.ranks()), 0);
  std::vector<Run> runs;
  for (i64 t = 0; t < steps; ++t) runs.emplace_back(2, SequenceRun{4 + t, 1, 1});
  ThreadWorld world(static_cast<int>(p.plan.ranks()));
  world.run([&](ThreadCommunicator& comm) {
    Reference device;
    auto executor = make<Reference>(p.plan, device, comm, {2, 4 + steps});
    Run(2, {0, 4, 1}).on(executor);
    runs[0].on(executor);
    counts[static_cast<std::size_t>(comm.rank())] = counting::of([&] {
      for (auto const& run : runs) run.on(executor);
    });
  });
  for (long n : counts) CHECK(n <= 8);  // room for the scores of more keys, doubled when it is outgrown
}

// ---- errors

/// The error that a world ends with, as it was thrown.
RunError error_of(i64 ranks, auto const& rank) {
  try {
    ThreadWorld world(static_cast<int>(ranks));
    world.run(rank);
  } catch (RunError const& e) {
    return e;
  } catch (std::exception const& e) {
    FAIL("another exception than RunError: " << e.what());
  }
  FAIL("no error");
  throw;
}
/// The same, where every rank makes an executor and does `then` with it.
template <class D>
RunError run_error(Planned const& p, ExecutorOptions options, auto const& then,
                   std::span<KernelRow<D> const> kernels = tiny::user_kernels<D>) {
  return error_of(p.plan.ranks(), [&](ThreadCommunicator& comm) {
    D device;
    auto executor = make<D>(p.plan, device, comm, options, kernels);
    then(executor);
  });
}

TEST_CASE("a world of another size than the plan's is refused with both numbers", "[executor]") {
  Planned const p("llama", "pp2 tp3");
  RunError const e = error_of(4, [&](ThreadCommunicator& comm) {
    Reference device;
    make<Reference>(p.plan, device, comm, {1, 8});
  });
  CHECK_THAT(e.what(), Catch::Contains("the plan is for 6 ranks, but the world has 4: start it with 6"));
  CHECK(e.step == -1);
}

TEST_CASE("an executor without sequences or capacity is refused", "[executor]") {
  Planned const p("llama", "single");
  CHECK_THAT(run_error<Reference>(p, {0, 8}, [](auto&) {}).what(), Catch::Contains("not 0 and 8"));
  CHECK_THAT(run_error<Reference>(p, {2, 0}, [](auto&) {}).what(), Catch::Contains("not 2 and 0"));
}

TEST_CASE("a refused plan does not run", "[executor]") {
  auto const& model = tiny::model("llama");
  LayoutPlan const refused = try_layout(read_layout("tp10"), model.layers, model.apply);
  RunError const e = error_of(10, [&](ThreadCommunicator& comm) {
    Reference device;
    make<Reference>(refused.view(), device, comm, {1, 8});
  });
  CHECK_THAT(e.what(), Catch::Contains("the plan was refused (placement/split)"));
}

TEST_CASE("tokens beyond the capacity are refused with the numbers", "[executor]") {
  Planned const p("llama", "tp2");
  RunError const e = run_error<Reference>(p, {2, 6}, [](auto& executor) {
    Run(2, {0, 4, 1}).on(executor);
    Run(2, {4, 3, 1}).on(executor);
  });
  CHECK_THAT(e.what(),
             Catch::Contains("the KV cache is full: sequence 0 has 4 tokens and 3 new ones, the capacity is 6"));
}

TEST_CASE("a past that the KV cache was not filled to is refused with both numbers", "[executor]") {
  Planned const p("llama", "pp2 tp2");
  auto const said = [&](auto const& then) { return run_error<Reference>(p, {2, 8}, then); };
  RunError const never = said([](auto& x) { Run(2, {4, 1, 1}).on(x); });
  CHECK_THAT(never.what(), Catch::Contains("rank " + std::to_string(never.rank) + ", stage ") &&
                               Catch::Contains("sequence 0 is to go on after a past of 4 tokens, but its KV cache is "
                                               "filled to 0: run its tokens from position 0 on first; a past of at "
                                               "most 0 works"));
  CHECK(never.step == -1);
  CHECK_THAT(said([](auto& x) {
               Run(2, {0, 3, 1}).on(x);
               Run gap(2, {3, 1, 1});
               gap.sequences[1].past = 4;
               gap.on(x);
             }).what(),
             Catch::Contains("sequence 1 is to go on after a past of 4 tokens") && Catch::Contains("filled to 3"));
  CHECK_THAT(said([](auto& x) {
               Run(2, {0, 6, 1}).on(x);
               Run(2, {2, 2, 1}).on(x);  // back to position 2: what came after is gone
               Run(2, {4, 1, 1}).on(x);
               Run(2, {6, 1, 1}).on(x);
             }).what(),
             Catch::Contains("a past of 6 tokens") && Catch::Contains("filled to 5"));
}

TEST_CASE("a sequence without new tokens keeps what its cache holds; one whose pass failed goes back", "[executor]") {
  Planned const p("llama", "single");
  ThreadWorld world(1);
  std::vector<std::string> said;
  world.run([&](ThreadCommunicator& comm) {
    Reference device;
    auto executor = make<Reference>(p.plan, device, comm, {2, 8});
    auto const run = [&](Run const& r) {
      try {
        r.on(executor);
        said.push_back("fine");
      } catch (RunError const& e) {
        said.push_back(e.what());
      }
    };
    run(Run(2, {0, 4, 1}));
    Run pause(2, {4, 1, 1});
    pause.sequences[0] = {0, 0, 0}, pause.tokens[0] = {};
    run(pause);
    Run on(2, {4, 1, 1});
    on.sequences[1].past = 5;
    run(on);  // sequence 0 where it was, sequence 1 one further
    Run broken(2, {5, 1, 1});
    broken.sequences[1].past = 2, broken.ids[1][0] = 1000;
    run(broken);  // sequence 1 went back to 2 and got no further
    Run again(2, {5, 1, 1});
    run(again);
    again.sequences[1].past = 2;
    run(again);
  });
  REQUIRE(said.size() == 6);
  for (std::size_t i : {0u, 1u, 2u, 5u}) CHECK(said[i] == "fine");
  CHECK_THAT(said[3], Catch::Contains("token id 1000 (sequence 1, position 0)"));
  CHECK_THAT(said[4], Catch::Contains("step -1") && Catch::Contains("sequence 1 is to go on after a past of 5") &&
                          Catch::Contains("filled to 2"));
}

TEST_CASE("a plan without caches has no past to fill", "[executor]") {
  auto const apply = [](Builder& b, Value ids) {
    return lm_head(b, token_embedding(b, ids, EmbeddingConfig{47, 8}),
                   LmHeadConfig{47, 8, false, Name{"embedding.weight"}});
  };
  LayoutPlan const made = plan_layout(read_layout("tp2"), 0, apply);
  ThreadWorld world(2);
  CHECK_NOTHROW(world.run([&](ThreadCommunicator& comm) {
    Reference device;
    auto executor = make<Reference>(made.view(), device, comm, {2, 8});
    Run(2, {5, 2, 2}).on(executor);
  }));
}

TEST_CASE("a run of other sequences, or of other tokens than stated, is refused", "[executor]") {
  Planned const p("llama", "dp2");
  auto const said = [&](auto const& then) { return std::string(run_error<Reference>(p, {2, 8}, then).what()); };
  CHECK_THAT(said([](auto& x) {
               Run(3, {0, 1, 1}).on(x);
             }),
             Catch::Contains("the run has 3 sequences, the executor was made for 2"));
  CHECK_THAT(said([](auto& x) {
               Run run(2, {0, 1, 1});
               run.tokens.pop_back();
               run.on(x);
             }),
             Catch::Contains("tokens of 1 sequences were given for a run of 2"));
  CHECK_THAT(said([](auto& x) {
               Run run(2, {0, 2, 1});
               run.tokens[1] = run.tokens[1].first(1);
               run.on(x);
             }),
             Catch::Contains("sequence 1 was given 1 tokens, the run says 2"));
  CHECK_THAT(said([](auto& x) {
               Run(2, {0, 1, 2}).on(x);
             }),
             Catch::Contains("sequence 0 asks for logits of 2 of its 1 new tokens after 0"));
  CHECK_THAT(said([](auto& x) { Run(2, {-1, 1, 1}).on(x); }), Catch::Contains("1 new tokens after -1"));
}

TEST_CASE("an id outside the vocabulary is named with its sequence", "[executor]") {
  for (i32 id : {-1, 47}) {
    Planned const p("llama", "tp3");
    RunError const e = run_error<Reference>(p, {2, 8}, [&](auto& executor) {
      Run run(2, {0, 3, 1});
      run.ids[1][2] = id;
      run.on(executor);
    });
    CHECK_THAT(e.what(), Catch::Contains("token id " + std::to_string(id) + " (sequence 1, position 2)") &&
                             Catch::Contains("vocabulary of 47"));
    CHECK(e.stage == 0);
    CHECK(e.step >= 0);
    CHECK(p.plan.steps[e.step].op == &lookup);
    CHECK(e.tensor == "embedding.weight");
  }
}

/// Weights of which one element is not a number.
struct BrokenWeights {
  std::string name{};
  void operator()(std::string const& which, WeightShape const& shape, auto room) const {
    tiny::Weights{}(which, shape, room);
    if (which == name && !room.empty()) room[room.size() - 1] = std::numeric_limits<float>::quiet_NaN();
  }
};
template <class D>
RunError error_with_broken(Planned const& p, char const* name) {
  return error_of(p.plan.ranks(), [&](ThreadCommunicator& comm) {
    D device;
    ThreadExecutor<D> executor(p.plan, device, comm, BrokenWeights{name}, ExecutorOptions{2, 8});
    Run(2, {0, 3, 3}).on(executor);
  });
}

TEST_CASE("a weight that is not a number is named, where it is loaded or in the logits", "[executor]") {
  Planned const p("qwen", "pp2 tp2");
  RunError const exact = error_with_broken<Reference>(p, "layers.2.mlp.down.weight");
  CHECK(exact.tensor == "layers.2.mlp.down.weight");
  CHECK(exact.stage == 1);
  CHECK(exact.step == -1);
  CHECK_THAT(exact.what(), Catch::Contains("not finite"));
  RunError const fast = error_with_broken<Cpu>(p, "layers.0.attention.o.weight");
  CHECK_THAT(fast.what(), Catch::Contains("choose: the logit of token") && Catch::Contains("is not a number"));
  CHECK(fast.stage == 1);
  CHECK(fast.rank >= 2);
  REQUIRE(fast.step >= 0);
  CHECK(p.plan.steps[fast.step].op == &choose);
  CHECK_THAT(fast.tensor, Catch::Contains("[batch,rows]"));
}

TEST_CASE("a source that throws is named with its parameter", "[executor]") {
  Planned const p("llama", "pp2 tp2");
  RunError const e = error_of(p.plan.ranks(), [&](ThreadCommunicator& comm) {
    Reference device;
    auto const source = [](std::string const& name, WeightShape const& shape, std::span<double> room) {
      if (name == "layers.3.mlp_norm.weight") throw std::runtime_error("the file ends here");
      tiny::Weights{}(name, shape, room);
    };
    ThreadExecutor<Reference> executor(p.plan, device, comm, source, ExecutorOptions{1, 8});
  });
  CHECK(e.tensor == "layers.3.mlp_norm.weight");
  CHECK(e.stage == 1);
  CHECK_THAT(e.what(), Catch::EndsWith("tensor layers.3.mlp_norm.weight: the file ends here"));
}

TEST_CASE("an op without a kernel is named before anything runs", "[executor]") {
  Planned const p("user", "tp2");
  RunError const e = run_error<Reference>(p, {1, 8}, [](auto&) {}, {});
  CHECK_THAT(e.what(), Catch::Contains("the device has no kernel for op 'fold_heads': give the executor a KernelRow"));
  REQUIRE(e.step >= 0);
  CHECK(p.plan.steps[e.step].op == &tiny::fold_heads);
}

TEST_CASE("ranks with other plans are told so before they exchange anything else", "[executor]") {
  Planned const a("llama", "tp2"), b("llama", "dp2"), other("olmo", "tp2");
  for (Planned const* second : {&b, &other}) {
    RunError const e = error_of(2, [&](ThreadCommunicator& comm) {
      Reference device;
      make<Reference>(comm.rank() ? second->plan : a.plan, device, comm, {1, 8});
    });
    CHECK_THAT(e.what(),
               Catch::Contains("runs another plan than rank") && Catch::Contains("the same model and layout"));
    CHECK(e.step == -1);
  }
}

TEST_CASE("a value beyond the exact grid is an error of its step", "[executor]") {
  Planned const p("llama", "tp2");
  RunError const e = error_of(2, [&](ThreadCommunicator& comm) {
    Reference device;
    auto const source = [](std::string const& name, WeightShape const& shape, std::span<double> room) {
      tiny::Weights{}(name, shape, room);
      if (name == "layers.1.mlp.up.weight")
        for (auto& x : room) x *= 60000;
    };
    ThreadExecutor<Reference> executor(p.plan, device, comm, source, ExecutorOptions{1, 8});
    Run(1, {0, 3, 1}).on(executor);
  });
  CHECK_THAT(e.what(), Catch::Contains("Reference stops being exact"));
  REQUIRE(e.step >= 0);
  CHECK(std::string(p.plan.scopes[p.plan.steps[e.step].scope].path.chars).find("mlp") != std::string::npos);
}

}  // namespace
