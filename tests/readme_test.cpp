// SPDX-License-Identifier: MIT
// The code of README.md, as it stands there, and the claims that the page makes beside it.
#include "catch.hpp"

#include <cmath>
#include <dovetail/dovetail.hpp>
#include <dovetail/plan/print.hpp>
#include <fstream>
#include <sstream>

namespace dt = dovetail;

struct Dp : dt::Axis<"dp", 2> {};  // named structs, so that compilers print your own words
struct Pp : dt::Axis<"pp", 2> {};
struct Tp : dt::Axis<"tp", 3> {};

struct SmolLM2 : dt::Llama<dt::models::smollm2_135m> {};
struct Layout : dt::Replicated<Dp, dt::Pipelined<Pp, dt::TensorSharded<Tp, SmolLM2>>> {};

constexpr auto& plan = dt::plan_of<Layout>;  // a value: inspect it, test it, print it
static_assert(plan.ranks() == 12);
static_assert(plan.executed(dt::step::all_reduce) == 62);  // two a block, the embedding's, the choice's
static_assert(plan.weight_bytes_per_rank() < 110 * dt::MiB);

TEST_CASE("the README's claims hold") {
  constexpr dt::SequenceRun decode[] = {{100, 1, 1}, {100, 1, 1}};
  static_assert(dt::total_parameters(plan) == 134515008);
  static_assert(dt::total_traffic(plan, {decode, 2}, dt::f32_storage).along("dp") == dt::Cost{});
  static_assert(plan.within<dt::LlamaBlock<dt::models::smollm2_135m>>().count(dt::step::all_reduce) == 2);
  CHECK(std::abs(static_cast<double>(plan.weight_bytes_per_rank()) - 108.6e6) < 0.05e6);
}

TEST_CASE("the README shows what explain prints") {
  std::ifstream file(std::string(DOVETAIL_TESTS_DIR) + "/../README.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string shown = text.str();
  std::string const start = "<!-- explain -->\n```text\n";
  auto const from = shown.find(start);
  REQUIRE(from != std::string::npos);
  shown = shown.substr(from + start.size());
  shown.resize(shown.find("```"));
  CHECK(shown == dt::explain(plan));
}
