// SPDX-License-Identifier: MIT
// What a plan says of itself to programs: JSON read back by a parser, DOT read back by a small checker.
#include <algorithm>
#include <dovetail/plan/graphviz.hpp>
#include <dovetail/plan/json.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "catch.hpp"
#include "printed_plans.hpp"
using namespace printed;
using nlohmann::json;

TEST_CASE("JSON has every list of the plan") {
  auto const owned = planned<Layout>();
  dt::Plan const plan = owned.view();
  json const read = json::parse(dt::to_json(plan));
  CHECK(read["schema"] == 1);
  CHECK(read["verdict"] == "ok");
  CHECK_FALSE(read.contains("sentence"));
  CHECK(read["ranks"] == plan.ranks());
  CHECK(read["replicas"] == 2);
  CHECK(read["result"] == plan.result);
  REQUIRE(read["stages"].size() == std::size_t(plan.stages()));
  CHECK(read["stages"][1]["mesh"] == json::parse(R"([{"axis":"dp","size":2},{"axis":"tp","size":3}])"));
  CHECK(read["stages"][1]["base"] == plan.stage(1).base);
  CHECK(read["stages"][1]["layers"] == 15);
  CHECK(read["scopes"].size() == std::size_t(plan.scopes.size()));
  CHECK(read["loops"][0]["count"] == 15);
  CHECK(read["edges"].size() == 1);
  CHECK(read["edges"][0]["received"] == plan.edges[0].received);
  CHECK(read["ties"].size() == 1);
  CHECK(read["inputs"].size() == std::size_t(plan.inputs.size()));
  CHECK(read["outputs"][0]["name"] == "choice");
  REQUIRE(read["parameters"].size() == std::size_t(plan.parameters.size()));
  for (dt::i32 i = 0; i < plan.parameters.size(); ++i) {
    json const& p = read["parameters"][std::size_t(i)];
    CHECK(p["name"] == plan.parameters[i].name.chars);
    CHECK(p["layer"]["first"] == plan.parameters[i].layer.first);
    CHECK(p["layer"]["terms"].size() == std::size_t(plan.parameters[i].layer.terms.size()));
    CHECK(p["value"] == plan.parameters[i].value);
    CHECK(p["tied"] == plan.parameters[i].tied);
  }
  REQUIRE(read["states"].size() == std::size_t(plan.states.size()));
  CHECK(read["states"][0]["stage"] == plan.states[0].stage);
}

TEST_CASE("JSON has every value and every step as they are") {
  auto const owned = planned<Layout>();
  dt::Plan const plan = owned.view();
  json const read = json::parse(dt::to_json(plan));
  REQUIRE(read["values"].size() == std::size_t(plan.values.size()));
  for (dt::i32 v = 0; v < plan.values.size(); ++v) {
    json const& value = read["values"][std::size_t(v)];
    dt::Tensor const& t = plan.values[v];
    CHECK(value["text"] == dt::describe(plan, v));
    CHECK(value["dims"].size() == std::size_t(t.dims.size()));
    CHECK(value["places"].size() == std::size_t(plan.mesh(t.stage).size()));
    CHECK(value["storage"] == dt::name_of(t.storage));
    CHECK(value["step"] == t.step);
    CHECK(value["origin"] == t.origin);
  }
  REQUIRE(read["steps"].size() == std::size_t(plan.steps.size()));
  for (dt::i32 i = 0; i < plan.steps.size(); ++i) {
    json const& step = read["steps"][std::size_t(i)];
    dt::Step const& s = plan.steps[i];
    CHECK(step["kind"] == dt::name_of(s.kind));
    CHECK(step["stage"] == s.stage);
    CHECK(step["loop"] == s.loop);
    CHECK(step["operands"].size() == std::size_t(s.operands.size()));
    CHECK(step["results"].size() == std::size_t(s.results.size()));
    CHECK(step.contains("axis") == (s.axis >= 0));
    CHECK(step.contains("body") == (s.kind == dt::StepKind::loop));
    if (s.op) {
      CHECK(step["op"] == s.op->name);
      for (int n = 0; n < dt::max_numbers; ++n) CHECK(step["numbers"][std::size_t(n)] == s.numbers[n]);  // exactly
    }
  }
}

TEST_CASE("JSON of a refused plan has the rule and the sentence") {
  struct Twelve : dt::Axis<"tp", 12> {};
  auto const owned = planned<dt::TensorSharded<Twelve, SmolLM2>>();
  json const read = json::parse(dt::to_json(owned.view()));
  CHECK(read["verdict"] == "placement/split");
  CHECK(read["sentence"] == dt::sentence(owned.verdict));
}

TEST_CASE("JSON says what an extent and a place are") {
  auto const owned = planned<dt::TensorSharded<Tp2, dt::Sequential<Embedding, Attention>>>();
  json const read = json::parse(dt::to_json(owned.view()));
  std::set<std::string> extents, places;
  for (auto const& value : read["values"]) {
    for (auto const& e : value["dims"]) extents.insert(e.dump());
    for (auto const& p : value["places"]) places.insert(p.dump());
  }
  CHECK(extents.count(R"({"dim":"batch","extent":"batch"})"));
  CHECK(extents.count(R"({"dim":"sequence","extent":"tokens"})"));
  CHECK(extents.count(R"({"dim":"kv_heads","extent":3,"lead":9})"));
  CHECK(places.count(R"({"dim":"heads","kind":"split"})"));
  CHECK(places.count(R"({"dim":"heads","kind":"shared"})"));
  CHECK(places.count(R"({"kind":"partial_sum"})"));
  CHECK(places.count(R"({"kind":"whole"})"));
}

TEST_CASE("JSON escapes what names may hold, and writes numbers that read back") {
  dt::JsonWriter j;
  std::string all;
  for (int c = 1; c < 128; ++c) all += char(c);
  all += "\xc3\xa9";
  j.array([&] {
    j.value(all);
    for (double d : {0.1, 1e-300, -0.0, 12345678.9, 1.0 / 3, 1e300}) j.value(d);
    j.value(1 / 0.0), j.value(true), j.value(dt::i64{1} << 62);
    j.object([] {});
    j.array([] {});
  });
  json const read = json::parse(j.text());
  CHECK(read[0] == all);
  CHECK(read[1].get<double>() == 0.1);
  CHECK(read[2].get<double>() == 1e-300);
  CHECK(read[5].get<double>() == 1.0 / 3);
  CHECK(read[7].is_null());
  CHECK(read[8] == true);
  CHECK(read[9] == dt::i64{1} << 62);
  CHECK(read[10] == json::object());
  CHECK(read[11] == json::array());
}

TEST_CASE("JSON is valid whatever bytes the names of a plan hold") {
  static constexpr dt::Op odd{.name = "op \x01\xff", .elementwise = true};
  auto const owned = dt::build([](dt::Builder& b, dt::Value x) { return dt::ops::unary(b, odd, x); });
  std::string const text = dt::to_json(owned.view());
  CHECK(dt::utf8_valid_prefix(text) == text.size());
  CHECK(json::parse(text)["steps"][0]["op"] == "op \x01\xef\xbf\xbd");
}

TEST_CASE("JSON writes U+FFFD for each byte that is no character") {
  dt::JsonWriter j;
  j.object([&] {
    j.field("a\xc3", "\xed\xa0\x80|\xc0\xaf|\xe2\x82|\xf0\x9f\x98\x80|\x7f\x1b");
    j.field("name", dt::name("caf\xe9"));
  });
  std::string const no = "\xef\xbf\xbd";
  json const read = json::parse(j.text());
  CHECK(read["a" + no] == no + no + no + "|" + no + no + "|" + no + no + "|\xf0\x9f\x98\x80|\x7f\x1b");
  CHECK(read["name"] == "caf" + no);
}

namespace {

/// What a DOT text declares and uses. Statements stand one on a line, as graphviz() writes them.
struct Graph {
  std::set<std::string> nodes, clusters;
  std::multiset<std::pair<std::string, std::string>> edges;
  std::string fault;
  std::set<std::string> colours;

  explicit Graph(std::string const& text) {
    std::istringstream lines(text);
    int depth = 0, number = 0;
    for (std::string line; std::getline(lines, line) && fault.empty();) {
      ++number;
      line.erase(0, line.find_first_not_of(' '));
      std::string const bare = without_strings(line);
      if (std::count(bare.begin(), bare.end(), '"')) fault = "an open string";
      auto const word = line.substr(0, line.find(' '));
      if (contains(bare, "fillcolor=")) colours.insert(bare.substr(bare.find("fillcolor=") + 10));
      if (contains(bare, "->")) {
        auto const to = bare.substr(bare.find("-> ") + 3);
        edges.insert({word, to.substr(0, to.find(' '))});
      } else if (!bare.empty() && bare.back() == '{') {
        ++depth;
        if (word == "subgraph" && !clusters.insert(bare).second) fault = "a cluster twice";
      } else if (bare == "}") {
        --depth;
      } else if (contains(bare, "[") && word != "node") {
        if (!nodes.insert(word).second) fault = "a node twice";
      } else if (!contains(bare, "=")) {
        fault = "what is this";
      }
      if (bare != "}" && bare.back() != '{' && bare.back() != ';') fault = "no semicolon";
      if (!fault.empty()) fault += " in line " + std::to_string(number) + ": " + line;
    }
    if (fault.empty() && depth != 0) fault = "braces do not match";
    for (auto const& [from, to] : edges)
      if (fault.empty() && (!nodes.count(from) || !nodes.count(to))) fault = "no node for " + from + " -> " + to;
  }

  static std::string without_strings(std::string const& line) {
    std::string bare;
    bool inside = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (inside && line[i] == '\\') ++i;
      else if (line[i] == '"') inside = !inside;
      else if (!inside) bare += line[i];
    }
    return inside ? bare + '"' : bare;
  }
};

}  // namespace

TEST_CASE("DOT: stages and loops are clusters, steps are nodes, communications are coloured") {
  auto const owned = planned<Layout>();
  dt::Plan const plan = owned.view();
  Graph const graph(dt::graphviz(plan));
  CHECK(graph.fault == "");
  CHECK(graph.clusters.size() == std::size_t(plan.stages() + plan.loops.size()));
  std::size_t steps = 0;
  for (dt::i32 i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind == dt::StepKind::loop) continue;
    ++steps;
    CHECK(graph.nodes.count("step" + std::to_string(i)));
  }
  CHECK(graph.nodes.size() == steps + std::size_t(plan.inputs.size() + plan.outputs.size()) + 1);
  CHECK(graph.colours.size() == 2);  // all-reduces and the send
}

TEST_CASE("DOT: a round of a loop feeds the next, and every reader has its edge") {
  auto const owned = planned<dt::TensorSharded<Tp, dt::Sequential<Embedding, dt::Repeat<3, dt::Residual<Mlp>>>>>();
  dt::Plan const plan = owned.view();
  Graph const graph(dt::graphviz(plan));
  CHECK(graph.fault == "");
  std::size_t reads = 0;
  for (auto const& s : plan.steps)
    for (auto const& o : s.operands) reads += !o.witness;
  CHECK(graph.edges.size() == reads + std::size_t(plan.loops.size()) + 1);
}

TEST_CASE("DOT survives names with quotes and newlines") {
  static constexpr dt::Op odd{.name = "odd \"op\"\\\n", .elementwise = true};
  auto const owned = dt::build([](dt::Builder& b, dt::Value x) { return dt::ops::unary(b, odd, x); });
  CHECK(Graph(dt::graphviz(owned.view())).fault == "");
  CHECK(json::parse(dt::to_json(owned.view()))["steps"][0]["op"] == odd.name);
}
