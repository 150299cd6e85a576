// SPDX-License-Identifier: MIT
// The communicator of docs/add-a-communicator.md conforms, for 1 to 9 ranks, and runs a model as the one of threads
// does: the same logits bit for bit, and counted traffic as predicted.
#include "message_communicator.hpp"

#include <dovetail/plan/traffic.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <dovetail/run/executor.hpp>

#include "catch.hpp"
#include "comm_conformance.hpp"
#include "tiny_model.hpp"

using namespace dovetail;
using test::MessageCommunicator;

namespace {

TEST_CASE("a communicator made of messages conforms") {
  for (int n : {1, 2, 3, 5, 8, 9}) {
    INFO(n << " ranks");
    ThreadWorld world(n);
    std::vector<std::string> wrong(static_cast<std::size_t>(n));
    world.run([&](ThreadCommunicator& threads) {
      MessageCommunicator c(threads);
      wrong[static_cast<std::size_t>(c.rank())] =
          conformance::all_reduces(c) + conformance::same_bits(c) + conformance::reduce_scatters(c) +
          conformance::all_gathers(c) + conformance::all_to_alls(c) + conformance::broadcasts(c) +
          conformance::sends(c) + conformance::meshes(c) + conformance::arg_maxes(c) + conformance::overlaps(c) +
          conformance::stress(c, 200);
    });
    for (auto const& text : wrong) CHECK(text == "");
  }
}

struct Ran {
  std::vector<std::vector<double>> logits{};  ///< by rank: the local part, row-major
  bool counted = true;
};

/// One pass over a prompt on communicators made by make(thread communicator).
Ran run(Plan const& plan, auto const& make) {
  Ran ran;
  ran.logits.resize(static_cast<std::size_t>(plan.ranks()));
  std::vector<char> counted(ran.logits.size());
  std::vector<i32> const prompt = {3, 1, 4, 1, 5, 9, 2};
  SequenceRun const shape{0, static_cast<i64>(prompt.size()), 3};
  ThreadWorld world(static_cast<int>(plan.ranks()));
  world.run([&](ThreadCommunicator& threads) {
    auto&& comm = make(threads);
    using C = std::remove_reference_t<decltype(comm)>;
    Reference device;
    Executor<Reference, C> executor(plan, device, comm, tiny::Weights{}, ExecutorOptions{1, 8});
    std::span<i32 const> const tokens[] = {prompt};
    comm.reset_counters();
    executor.forward({&shape, 1}, tokens);
    auto const rank = static_cast<std::size_t>(comm.rank());
    Cost const predicted = traffic(plan, comm.rank(), {&shape, 1}, executor.storage_bytes()).total;
    counted[rank] = comm.counters().total() == predicted;
    if (auto const v = executor.view(plan.result))
      ran.logits[rank].assign(v->template as<double>(), v->template as<double>() + v->rows * v->width);
  });
  for (char c : counted) ran.counted = ran.counted && c;
  return ran;
}

TEST_CASE("a model runs on messages as it does on threads") {
  tiny::Model const& model = tiny::model("llama");
  for (char const* layout : {"tp3", "pp2 tp5", "sp2 tp2", "pp2[tp4|tp1]", "a2(heads,ffn) b3(heads)"}) {
    INFO(layout);
    LayoutPlan const planned = plan_layout(read_layout(layout), model.layers, model.apply);
    Ran const threads = run(planned.view(), [](ThreadCommunicator& c) -> ThreadCommunicator& { return c; });
    Ran const messages = run(planned.view(), [](ThreadCommunicator& c) { return MessageCommunicator(c); });
    CHECK(threads.counted);
    CHECK(messages.counted);
    CHECK(messages.logits == threads.logits);
  }
}

}  // namespace
