// SPDX-License-Identifier: MIT
// docs/reading-plans.md shows what the printers write: its screen is the whole text, its JSON and DOT are parts of it.
#include "catch.hpp"

#include <algorithm>
#include <cctype>
#include <dovetail/dovetail.hpp>
#include <dovetail/plan/graphviz.hpp>
#include <dovetail/plan/json.hpp>
#include <dovetail/plan/print.hpp>
#include <fstream>
#include <sstream>

namespace dt = dovetail;

namespace {

struct Pp : dt::Axis<"pp", 2> {};
struct Tp : dt::Axis<"tp", 4> {};
struct SmolLM2 : dt::Llama<dt::models::smollm2_135m> {};
struct Layout : dt::Pipelined<Pp, dt::TensorSharded<Tp, SmolLM2>> {};
constexpr auto& plan = dt::plan_of<Layout>;
constexpr dt::SequenceRun prompt[] = {{0, 5, 1}};

/// The block below `<!-- NAME -->`; empty where the page has none.
std::string shown(std::string const& name) {
  std::ifstream file(std::string(DOVETAIL_TESTS_DIR) + "/../docs/reading-plans.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string const page = text.str(), marker = "<!-- " + name + " -->\n```";
  auto const from = page.find(marker);
  if (from == std::string::npos) return "";
  auto const begin = page.find('\n', from + marker.size()) + 1;
  return page.substr(begin, page.find("```", begin) - begin);
}
std::string squeezed(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  return text;
}

}  // namespace

TEST_CASE("the page shows the screen of a plan") {
  CHECK(shown("explain") == dt::explain(plan, {prompt, 1}, dt::f32_storage));
}

TEST_CASE("the page shows lines of the JSON and of the graph") {
  for (auto const& [part, whole] : {std::pair{shown("json"), dt::to_json(plan)}, {shown("dot"), dt::graphviz(plan)}}) {
    std::istringstream lines(part);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      INFO(line);
      CHECK(squeezed(whole).find(squeezed(line)) != std::string::npos);
    }
    CHECK(count > 2);
  }
}
