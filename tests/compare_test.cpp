// SPDX-License-Identifier: MIT
// Layouts side by side: every figure equals the prediction that it is of, words say what placements say, and the
// picture is well-formed, has a mark for every share and every exchange, and writes nothing over anything else.
#include <dovetail/dovetail.hpp>
#include <dovetail/plan/compare.hpp>
#include <dovetail/plan/compare_json.hpp>
#include <dovetail/plan/compare_table.hpp>
#include <dovetail/plan/svg_compare.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <nlohmann/json.hpp>
#include <regex>

#include "catch.hpp"

namespace dt = dovetail;
using nlohmann::json;

namespace {

constexpr dt::LlamaConfig config = dt::models::smollm2_135m;

dt::LayoutPlan planned(std::string const& layout) {
  return dt::try_layout(dt::read_layout(layout), config.layers,
                        [](dt::Builder& b, dt::Value ids) { return dt::llama(b, ids, config); });
}

/// Figures with the plans that they name axes of.
struct Compared {
  dt::Workload work{4, 100, 40};
  std::vector<dt::LayoutPlan> plans{};
  std::vector<dt::LayoutFigures> figures{};

  explicit Compared(std::vector<std::string> const& layouts) {
    for (auto const& text : layouts) plans.push_back(planned(text));
    for (std::size_t i = 0; i < layouts.size(); ++i)
      figures.push_back(dt::figures_of(layouts[i], plans[i].view(), work));
  }
};

std::string holds(std::string const& layout, std::size_t device) {
  Compared const c({layout});
  return dt::holding_words(c.figures[0].parts, c.figures[0].devices[device].holds);
}

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// What is wrong with tags and characters of an XML text; empty where nothing is.
std::string malformed(std::string const& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '>' || static_cast<unsigned char>(xml[at]) < 9) return "a stray character";
    if (xml[at] == '&') {
      static std::regex const entity("&(amp|lt|gt|quot);");
      if (!std::regex_search(xml.begin() + static_cast<std::ptrdiff_t>(at), xml.end(), entity,
                             std::regex_constants::match_continuous))
        return "an ampersand";
    }
    if (xml[at] != '<') continue;
    std::size_t const end = xml.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    std::string const tag = xml.substr(at + 1, end - at - 1);
    static std::regex const opening(R"(([a-zA-Z]+)( [a-zA-Z-]+="[^"<>]*")*(/?))");
    std::smatch match;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "a tag that closes another: " + tag;
      open.pop_back();
    } else if (!std::regex_match(tag, match, opening)) {
      return "not a tag: " + tag;
    } else if (match[3].length() == 0) {
      open.push_back(match[1]);
    }
    at = end;
  }
  return open.empty() ? "" : "a tag that stays open";
}

/// A word of the picture as the box that it takes, at a width that letters of a plain face have.
struct Box {
  double x0, x1, y0, y1;
  std::string text;
};
std::vector<Box> word_boxes(std::string const& svg) {
  static std::regex const word(R"re(<text class="([^"]*)" x="(-?\d+)" y="(-?\d+)">([^<]*)</text>)re");
  std::vector<Box> boxes;
  for (std::sregex_iterator m(svg.begin(), svg.end(), word), end; m != end; ++m) {
    std::string const look = (*m)[1], text = (*m)[4];
    bool const large = look == "heading" || look == "title";
    double const width = double(dt::comparing::shown_width(text)) * (large ? 9.0 : 6.0), x = std::stod((*m)[2]);
    double const x0 = look.find("middle") != std::string::npos ? x - width / 2
                      : look.find("end") != std::string::npos  ? x - width
                                                               : x;
    double const y = std::stod((*m)[3]);
    boxes.push_back({x0, x0 + width, y - (large ? 12 : 9), y + 1, text});
  }
  return boxes;
}

}  // namespace

TEST_CASE("figures are the predictions") {
  Compared const c(
      {"single", "tp3", "pp3", "dp3", "pp2[tp2|tp1]", "tp2=2:1", "dp2 pp2 tp3", "tp4 tp(sequence)@mlp_norm"});
  auto const prefill = c.work.prefill(), decode = c.work.decode(), cached = c.work.cached();
  dt::RunShape const filling{prefill.data(), 4}, decoding{decode.data(), 4}, caching{cached.data(), 4};
  json const read = json::parse(dt::compare_json(c.figures, c.work));
  CHECK(read["schema"] == 1);
  CHECK(read["workload"]["context"] == 100);
  REQUIRE(read["layouts"].size() == c.figures.size());
  for (std::size_t i = 0; i < c.figures.size(); ++i) {
    dt::Plan const plan = c.plans[i].view();
    json const& layout = read["layouts"][i];
    CHECK(layout["layout"] == c.figures[i].title);
    CHECK(layout["parameters"] == 134515008);
    CHECK(layout["stages"] == plan.stages());
    REQUIRE(layout["devices"].size() == std::size_t(plan.ranks()));
    auto const same = [&](json const& told, dt::TrafficReport const& r) {
      CHECK(told["messages"] == r.total.messages);
      CHECK(told["bytes"] == r.total.bytes);
      dt::i64 axes = 0, kinds = 0;
      for (auto const& a : told["by_axis"]) {
        CHECK(a["bytes"] == r.along(a["axis"].get<std::string>().c_str()).bytes);
        axes += a["bytes"].get<dt::i64>();
      }
      for (auto const& k : told["by_kind"]) kinds += k["bytes"].get<dt::i64>();
      CHECK(kinds == r.total.bytes);
      CHECK(axes + r.of(dt::step::send).bytes == r.total.bytes);
    };
    for (dt::i64 rank = 0; rank < plan.ranks(); ++rank) {
      json const& d = layout["devices"][std::size_t(rank)];
      CHECK(d["rank"] == rank);
      CHECK(d["weight_bytes"] == dt::weight_bytes(plan, rank, c.work.bytes));
      CHECK(d["cache_bytes"] == dt::state_bytes(plan, rank, caching, c.work.bytes));
      CHECK(d["prefill"]["arena_bytes"] == dt::arena_of(plan, rank, filling, c.work.bytes).bytes);
      CHECK(d["decode"]["arena_bytes"] == dt::arena_of(plan, rank, decoding, c.work.bytes).bytes);
      CHECK(d["prefill"]["flops"] == dt::flops(plan, rank, filling));
      CHECK(d["decode"]["flops"] == dt::flops(plan, rank, decoding));
      same(d["prefill"]["received"], dt::traffic(plan, rank, filling, c.work.bytes));
      same(d["decode"]["received"], dt::traffic(plan, rank, decoding, c.work.bytes));
    }
    same(layout["prefill"], dt::total_traffic(plan, filling, c.work.bytes));
    same(layout["decode"], dt::total_traffic(plan, decoding, c.work.bytes));
    dt::i64 sent = 0;
    for (auto const& l : layout["links"]) sent += l["decode"]["bytes"].get<dt::i64>();
    CHECK(sent == dt::total_traffic(plan, decoding, c.work.bytes).of(dt::step::send).bytes);
  }
}

TEST_CASE("what a device holds is said in words") {
  CHECK(holds("single", 0) == "the whole model");
  CHECK(holds("dp3", 2) == "the whole model");
  CHECK(holds("pp3", 0) == "embedding and layers 0-9");
  CHECK(holds("pp3", 1) == "layers 10-19");
  CHECK(holds("pp3", 2) == "layers 20-29 and head");
  CHECK(holds("pp30", 3) == "layer 3");
  CHECK(holds("tp3", 1) == "a third of vocab in embedding and head; a third of heads and ffn in layers 0-29");
  CHECK(holds("tp2", 0) == "half of vocab in embedding and head; 5/9 of heads and half of ffn in layers 0-29");
  CHECK(holds("pp2[tp2|tp1]", 2) == "layers 15-29 and head");
  CHECK(holds("tp3=1:0:2", 1) == "only what is not split in layers 0-29 and head");
  CHECK(dt::share_words(1, 4) == "a quarter");
  CHECK(dt::share_words(370, 1000) == "37/100");
  CHECK(dt::share_words(16752, 50257) == "a third");
  CHECK(dt::share_words(1111, 3001) == "37 %");
}

TEST_CASE("who waits for whom, and who serves which requests") {
  Compared const c({"pp3", "tp3", "dp3", "dp2 pp2"});
  auto const waits = [&](std::size_t layout, std::size_t device) {
    return dt::comparing::waits_words(c.figures[layout], c.figures[layout].devices[device]);
  };
  CHECK(waits(0, 0) == "for the token that device 2 chose");
  CHECK(waits(0, 1) == "for what device 0 sends");
  CHECK(waits(1, 1) == "for devices 0, 2, 62 times");
  CHECK(waits(2, 0) == "for nobody");
  CHECK(waits(3, 2) == "for the token that device 3 chose");
  CHECK(c.figures[2].devices[0].sequences == dt::Range{0, 2});  // four requests on three replicas
  CHECK(c.figures[2].devices[2].sequences == dt::Range{3, 4});
  CHECK(c.figures[3].devices[3].sequences == dt::Range{2, 4});
  CHECK(c.figures[3].devices[3].replica == 1);
  CHECK(dt::replicas_of(c.plans[2].view()) == 3);
  CHECK(dt::replicas_of(c.plans[1].view()) == 1);
}

TEST_CASE("the table has a column a layout and says why one is refused") {
  Compared c({"tp3", "tp10", "pp2"});
  c.figures.push_back(dt::refused_figures("tp", "a number is missing"));
  std::string const text = dt::compare_table(c.figures, c.work);
  CHECK(text.find("4 requests together; caches for 100 tokens each") == 0);
  for (char const* part :
       {"3 devices: split layers", "2 devices: 2 stages", "refused: a number is missing", "device 2", "179.4 MB",
        "embedding and layers 0-14", "over tp", "of send", "for devices 1, 2, 62 times"}) {
    INFO(part << "\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(c.figures[1].refusal == dt::sentence(c.plans[1].owned.verdict));
  CHECK(text.find("splits heads") != std::string::npos);
  CHECK(text.find("device 3") == std::string::npos);
}

TEST_CASE("figures that pass 64 bits, and devices beyond listing, are refused in words") {
  auto const plan = planned("tp3"), wide = planned("dp1025");
  dt::Workload work{1024, 1 << 30, 1 << 30};
  CHECK(dt::figures_of("tp3", plan.view(), work).refusal.find("pass 64 bits") != std::string::npos);
  CHECK(dt::figures_of("dp1025", wide.view(), {}).refusal.find("1025 devices: at most 1024") != std::string::npos);
  CHECK(dt::figures_of("tp3", plan.view(), {1024, 8192, 8192}).ok());
}

TEST_CASE("the picture is XML with a mark for everything") {
  Compared const c({"tp3", "pp3", "dp3", "pp2[tp2|tp1]"});
  std::string const svg = dt::compare_svg(c.figures, c.work, "a model");
  CHECK(malformed(svg) == "");
  CHECK(count(svg, "<g class=\"panel\">") == 4);
  CHECK(count(svg, ">device ") == 4 * 3);
  CHECK(count(svg, "class=\"send\"") == 2 + 1);
  CHECK(count(svg, "class=\"exchange\"") == 1 + 1);
  CHECK(count(svg, "class=\"meet\"") == 3 + 2 + 2);  // two of them in the legend
  // embedding, two layers, head; every stage of a pipeline draws its first and its last layer
  CHECK(count(svg, "class=\"frame before\"") == 3 + 1 + 3 + 2 + 1);
  CHECK(count(svg, "class=\"frame layer\"") == 2 * 3 + 2 * 3 + 2 * 3 + 2 * 2 + 2 + 2);
  CHECK(count(svg, "class=\"frame after\"") == 3 + 1 + 3 + 1 + 1);
  CHECK(count(svg, ">layer 9<") == 1);
  CHECK(count(svg, ">" + dt::readable_bytes(c.figures[1].links[0].decode.bytes) + "<") == 3);
}

TEST_CASE("a picture writes no word over another, nor past its edge") {
  for (auto const& layouts : std::vector<std::vector<std::string>>{{"tp3", "pp3", "dp3", "pp2[tp2|tp1]"},
                                                                   {"dp2 pp2 tp3", "tp10", "pp30"},
                                                                   {"tp3 pp2", "tp2=2:1", "pp3=0,10,20", "single"},
                                                                   {"tp9"},
                                                                   {"pp8"}}) {
    Compared const c(layouts);
    std::string const svg = dt::compare_svg(c.figures, c.work, "SmolLM2-135M: 30 layers");
    CHECK(malformed(svg) == "");
    static std::regex const size(R"re(<svg [^>]*width="(\d+)" height="(\d+)")re");
    std::smatch match;
    REQUIRE(std::regex_search(svg, match, size));
    auto const boxes = word_boxes(svg);
    REQUIRE(boxes.size() > 20);
    for (std::size_t a = 0; a < boxes.size(); ++a) {
      INFO(boxes[a].text << " of " << layouts[0]);
      CHECK(boxes[a].x0 >= 0);
      CHECK(boxes[a].x1 <= std::stod(match[1]));
      CHECK(boxes[a].y1 <= std::stod(match[2]));
      for (std::size_t b = 0; b < a; ++b) {
        bool const apart = boxes[a].x1 <= boxes[b].x0 || boxes[b].x1 <= boxes[a].x0 || boxes[a].y1 <= boxes[b].y0 ||
                           boxes[b].y1 <= boxes[a].y0;
        if (!apart) FAIL_CHECK(boxes[a].text << " over " << boxes[b].text);
      }
    }
  }
}

TEST_CASE("a model without a cache has no decode step") {
  auto const plan = dt::try_layout(dt::read_layout("pp2"), 2, [](dt::Builder& b, dt::Value ids) {
    dt::Value x = dt::token_embedding(b, ids, config.embedding());
    return dt::ops::repeat(b, x, 2, [](dt::Builder& in, dt::Value v) { return dt::gated_mlp(in, v, config.mlp()); });
  });
  dt::Workload const work;
  std::vector<dt::LayoutFigures> const figures{dt::figures_of("pp2", plan.view(), work)};
  REQUIRE(figures[0].ok());
  CHECK_FALSE(figures[0].decodes);
  CHECK(dt::comparing::waits_words(figures[0], figures[0].devices[0]) == "for nobody");
  CHECK(dt::comparing::waits_words(figures[0], figures[0].devices[1]) == "for what device 0 sends");
  CHECK(dt::comparing::table_text(figures).find("decode") == std::string::npos);
  CHECK_FALSE(json::parse(dt::compare_json(figures, work))["layouts"][0].contains("decode"));
  std::string const svg = dt::compare_svg(figures, work, "");
  CHECK(svg.find("in one prefill of 512 tokens of 1 request") != std::string::npos);
  CHECK(count(svg, ">" + dt::readable_bytes(figures[0].links[0].prefill.bytes) + "<") == 1);
}

TEST_CASE("any words may stand in a picture") {
  std::string const hostile = "<&>\"\x01\xff";
  std::string const svg = dt::compare_svg({dt::refused_figures(hostile, hostile)}, {}, hostile);
  CHECK(malformed(svg) == "");
  CHECK(svg.find("&lt;&amp;&gt;&quot;\\x01\\xff") != std::string::npos);
  CHECK(malformed(dt::compare_svg({}, {}, "")) == "");
  CHECK(dt::comparing::wrapped("12 kB of \xc3\xa9\xc3\xa9\xc3\xa9 abcdefgh", 5) ==
        std::vector<std::string>{"12 kB", "of", "\xc3\xa9\xc3\xa9\xc3\xa9", "abcde", "fgh"});
}
