// SPDX-License-Identifier: MIT
// A rank that fails in any kind of step ends all others at once, with one error that names rank, stage, step and
// tensor, also those that exchange nothing. Local steps fail through the hook of forward(), exchanges in the
// communicator: instead of the call, or with the call under way.
#include <atomic>
#include <chrono>
#include <dovetail/comm/threads.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <dovetail/run/executor.hpp>
#include <set>

#include "catch.hpp"
#include "sanitizers.hpp"
#include "tiny_model.hpp"

namespace {

using namespace dovetail;
using Clock = std::chrono::steady_clock;

enum class Manner { instead, under_way };

/// Throws in the next call after it was armed.
class FailingCommunicator {
 public:
  using Inner = ThreadCommunicator;
  using Group = Inner::Group;
  using Request = Inner::Request;

  explicit FailingCommunicator(Inner& inner) : inner_(inner) {}
  void arm(Manner manner, Clock::time_point& when) { armed_ = true, manner_ = manner, when_ = &when; }

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }
  Group group(std::span<int const> world_ranks) { return inner_.group(world_ranks); }
  Request all_reduce(Group const& g, void* inout, i64 n, Element e, Reduction r) {
    return call([&] { return inner_.all_reduce(g, inout, n, e, r); });
  }
  Request reduce_scatter(Group const& g, void const* in, void* out, std::span<i64 const> n, Element e, Reduction r) {
    return call([&] { return inner_.reduce_scatter(g, in, out, n, e, r); });
  }
  Request all_gather(Group const& g, void const* in, void* out, std::span<i64 const> n, Element e) {
    return call([&] { return inner_.all_gather(g, in, out, n, e); });
  }
  Request all_to_all(Group const& g, void const* in, std::span<i64 const> sent, void* out,
                     std::span<i64 const> received, Element e) {
    return call([&] { return inner_.all_to_all(g, in, sent, out, received, e); });
  }
  Request broadcast(Group const& g, void* inout, i64 n, Element e, int root) {
    return call([&] { return inner_.broadcast(g, inout, n, e, root); });
  }
  Request send(int to, void const* in, i64 n, Element e, int tag) {
    return call([&] { return inner_.send(to, in, n, e, tag); });
  }
  Request receive(int from, void* out, i64 n, Element e, int tag) {
    return call([&] { return inner_.receive(from, out, n, e, tag); });
  }
  Request barrier(Group const& g) {
    return call([&] { return inner_.barrier(g); });
  }
  TrafficCounters counters() const { return inner_.counters(); }
  void reset_counters() { inner_.reset_counters(); }

 private:
  Inner& inner_;
  bool armed_ = false;
  Manner manner_ = Manner::instead;
  Clock::time_point* when_ = nullptr;

  Request call(auto const& start) {
    if (!armed_) return start();
    if (manner_ == Manner::instead) fail();
    Request const under_way = start();
    fail();
  }
  [[noreturn]] void fail() {
    *when_ = Clock::now();
    throw std::runtime_error("the cable is out");
  }
};
static_assert(Communicator<FailingCommunicator> && WithReduceScatter<FailingCommunicator> &&
              WithAllGather<FailingCommunicator> && WithAllToAll<FailingCommunicator>);

/// Fails once, on one rank, when one step runs for the second time: in a loop's second iteration or a second pass.
struct Culprit {
  i64 rank = 0;
  i32 step = 0;
  Manner manner = Manner::instead;
  Clock::time_point when{};
  int met = 0;

  void operator()(auto& executor, Step const& s) {
    if (executor.comm().rank() != rank || &s != &executor.plan().steps[step] || ++met != 2) return;
    if (communicates(s.kind) || s.kind == StepKind::send) return executor.comm().arm(manner, when);
    when = Clock::now();
    throw std::runtime_error("the lamp went out");
  }
  void operator()(auto&, Step const&, auto&) {}
};

struct End {
  std::vector<std::string> said{};  ///< by rank
  std::vector<int> named{};         ///< by rank: the rank that its WorldFailed names, or -1
  std::unique_ptr<RunError> error{};
  double seconds = 0;
};

/// Passes of four tokens a sequence, over and over, until the culprit ends them.
End fail_in(Plan const& plan, Culprit culprit) {
  End end;
  end.said.resize(static_cast<std::size_t>(plan.ranks())), end.named.assign(end.said.size(), -1);
  std::vector<SequenceRun> const run(3, {0, 4, 1});
  std::vector<i32> const ids = {0, 3, 1, 4};
  std::vector<std::span<i32 const>> const tokens(3, ids);
  ThreadWorld world(static_cast<int>(plan.ranks()));
  try {
    world.run([&](ThreadCommunicator& inner) {
      auto const r = static_cast<std::size_t>(inner.rank());
      try {
        FailingCommunicator comm(inner);
        Reference device;
        Executor<Reference, FailingCommunicator> executor(plan, device, comm, tiny::Weights{}, ExecutorOptions{3, 4},
                                                          tiny::user_kernels<Reference>);
        Culprit none;
        none.rank = -1;
        auto& hook = inner.rank() == culprit.rank ? culprit : none;
        for (;;) executor.forward(RunShape{run.data(), 3}, tokens, {}, hook);
      } catch (WorldFailed const& e) {
        end.said[r] = e.what(), end.named[r] = e.rank;
        throw;
      } catch (std::exception const& e) {
        end.said[r] = e.what();
        throw;
      }
    });
  } catch (RunError const& e) {
    end.error = std::make_unique<RunError>(e);
  } catch (std::exception const& e) {
    end.said[0] += std::string(" / run() threw ") + e.what();
  }
  end.seconds = std::chrono::duration<double>(Clock::now() - culprit.when).count();
  return end;
}

/// One error for all, which says where it was.
void check_end(End const& end, Plan const& plan, Culprit const& culprit) {
  Step const& s = plan.steps[culprit.step];
  bool const exchanges = communicates(s.kind) || s.kind == StepKind::send;
  i32 const stage = plan.place_of(culprit.rank).stage;
  CHECK(end.seconds < (test::sanitized ? 10 : 1));
  REQUIRE(end.error);
  CHECK(end.error->rank == culprit.rank);
  CHECK(end.error->stage == stage);
  CHECK(end.error->step == culprit.step);
  CHECK(end.error->tensor == step_tensor(plan, culprit.step));
  std::string const text = "rank " + std::to_string(culprit.rank) + ", stage " + std::to_string(stage) + ", step " +
                           std::to_string(culprit.step) + " (" + step_name(plan, culprit.step) + "), tensor " +
                           step_tensor(plan, culprit.step) + ": the " + (exchanges ? "cable is" : "lamp went") + " out";
  CHECK(end.error->what() == text);
  for (i64 r = 0; r < plan.ranks(); ++r) {
    auto const at = static_cast<std::size_t>(r);
    CHECK_THAT(end.said[at], Catch::Contains(text));
    CHECK(end.named[at] == (r == culprit.rank ? -1 : static_cast<int>(culprit.rank)));
  }
}

/// What a step is, as far as failing goes.
std::string kind_of(Step const& s) { return s.kind == StepKind::compute ? s.op->name : name_of(s.kind); }

struct Layouts {
  char const *model, *layout;
};
constexpr Layouts layouts[] = {
    {"llama", "tp2"},
    {"llama", "pp2"},
    {"captured", "sp3 sp(heads,ffn)@attention,gate"},
    {"user", "a4(sequence) a(heads)@q"},
    {"gemma", "pp2[tp3|sp2]"},
    {"olmo", "a2(heads) b3(heads)"},
    {"falcon", "tp7"},
    {"siblings", "dp2 sp2 tp2"},
    {"user", "tp8"},
    {"gpt2", "tp2"},
    {"gpt2_untied", "pp2"},
    {"gemma2", "tp3"},
};
/// Ops of encoders, which generate nothing: they fail in embed_test.
char const* const of_encoders[] = {"as_keys", "mean_rows"};

TEST_CASE("a rank that fails in any kind of step ends the others with its error", "[failure]") {
  std::set<std::string> kinds;
  std::set<i64> sizes;
  int turn = 0;
  for (auto const& [model, layout] : layouts) {
    tiny::Model const m = tiny::model(model);
    LayoutPlan const planned = plan_layout(read_layout(layout), m.layers, m.apply);
    Plan const plan = planned.view();
    sizes.insert(plan.ranks());
    std::set<std::string> done;
    for (i32 i = 0; i < plan.steps.size(); ++i) {
      Step const& s = plan.steps[i];
      bool const sends = s.kind == StepKind::send, exchanges = communicates(s.kind) || sends;
      if (!done.insert(kind_of(s)).second) continue;
      kinds.insert(kind_of(s));
      for (bool on_sender : {false, true})
        for (Manner manner : {Manner::instead, Manner::under_way}) {
          if ((on_sender && !sends) || (manner == Manner::under_way && !exchanges)) continue;
          i32 const stage = on_sender ? plan.values[s.operands[0].value].stage : s.stage;
          std::vector<i64> able;  // ranks that have a part in the step
          for (i64 r = 0; r < plan.ranks(); ++r)
            if (plan.place_of(r).stage == stage && (!on_sender || !receivers_of(plan, i, r).empty())) able.push_back(r);
          i64 const rank = able[static_cast<std::size_t>(++turn) % able.size()];
          CAPTURE(model, layout, i, kind_of(s), rank, on_sender, static_cast<int>(manner));
          Culprit culprit;
          culprit.rank = rank, culprit.step = i, culprit.manner = manner;
          End const end = fail_in(plan, culprit);
          check_end(end, plan, culprit);
        }
    }
  }
  CHECK(sizes == std::set<i64>{2, 3, 4, 5, 6, 7, 8});
  for (char const* kind :
       {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "slice", "own", "share_reduce", "send", "loop"})
    CHECK(kinds.contains(kind));
  for (char const* op : of_encoders) kinds.insert(op);
  for (auto const& row : Reference::kernels()) {
    INFO(row.op->name);
    CHECK(kinds.contains(row.op->name));
  }
  for (auto const& row : tiny::user_kernels<Reference>) CHECK(kinds.contains(row.op->name));
}

TEST_CASE("ranks that exchange nothing, or hold no sequence, end with the others", "[failure]") {
  std::set<i64> sizes;
  for (char const* layout : {"dp2", "pp2=4,0", "dp3", "dp4", "dp2 pp2=0,4", "dp5", "dp3 tp2", "dp7", "dp8", "dp4 tp2",
                             "pp4=2,1,1,0 tp2"}) {  // of three sequences
    tiny::Model const m = tiny::model("llama");
    LayoutPlan const planned = plan_layout(read_layout(layout), m.layers, m.apply);
    Plan const plan = planned.view();
    sizes.insert(plan.ranks());
    for (i64 rank = 0; rank < plan.ranks(); ++rank) {
      Culprit culprit;
      culprit.rank = rank;
      while (plan.steps[culprit.step].kind != StepKind::compute ||
             plan.steps[culprit.step].stage != plan.place_of(rank).stage)
        ++culprit.step;
      CAPTURE(layout, rank);
      check_end(fail_in(plan, culprit), plan, culprit);
    }
  }
  CHECK(sizes == std::set<i64>{2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a rank that fails before the first exchange ends the others too", "[failure]") {
  for (char const* layout : {"tp4", "pp3 tp2", "dp3"}) {
    tiny::Model const m = tiny::model("llama");
    LayoutPlan const planned = plan_layout(read_layout(layout), m.layers, m.apply);
    Plan const plan = planned.view();
    std::vector<std::string> said(static_cast<std::size_t>(plan.ranks()));
    ThreadWorld world(static_cast<int>(plan.ranks()));
    auto const rank = [&](ThreadCommunicator& comm) {
      try {
        Reference device;
        auto const source = [&](std::string const& name, WeightShape const& shape, auto room) {
          if (comm.rank() == 1 && name == "layers.1.mlp.up.weight") throw std::runtime_error("the disk is gone");
          tiny::Weights{}(name, shape, room);
        };
        Executor<Reference, ThreadCommunicator> executor(plan, device, comm, source, ExecutorOptions{1, 4});
      } catch (std::exception const& e) {
        said[static_cast<std::size_t>(comm.rank())] = e.what();
        throw;
      }
    };
    CHECK_THROWS_AS(world.run(rank), RunError);
    for (auto const& s : said)
      CHECK_THAT(s, Catch::Contains("step -1 (set-up), tensor layers.1.mlp.up.weight: the disk is gone"));
  }
}

}  // namespace
