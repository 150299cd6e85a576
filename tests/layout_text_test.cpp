// SPDX-License-Identifier: MIT
// Layouts as text: every example and every error in docs/layouts.md, read from that page, on SmolLM2-135M; plans from
// text equal to plans of types, by names and structure; what shares, cuts, roles and stacked axes come to; and that no
// text, however broken, does anything but plan or throw one of the two errors.
#include <dovetail/models/llama.hpp>
#include <dovetail/plan/coverage.hpp>
#include <dovetail/plan/identity.hpp>
#include <dovetail/plan/refuse.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <fstream>

#include "catch.hpp"
#include "random_numbers.hpp"

using namespace dovetail;

namespace {

constexpr LlamaConfig smol = models::smollm2_135m;

LayoutPlan planned(std::string const& text) {
  return plan_layout(read_layout(text), smol.layers, [](Builder& b, Value ids) { return llama(b, ids, smol); });
}

// ---- the page

using Row = std::vector<std::string>;

/// Cells of the tables of docs/layouts.md whose head begins with these words; without backquotes and escapes.
std::vector<Row> table(std::string const& first, std::string const& second) {
  std::ifstream page(DOVETAIL_TESTS_DIR "/../docs/layouts.md");
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    Row cells;
    std::string cell;
    for (std::size_t i = 1; i < line.size() && line[0] == '|'; ++i) {
      if (line[i] == '\\') cell += line[++i];
      else if (line[i] == '|') cells.push_back(std::exchange(cell, ""));
      else if (line[i] != '`') cell += line[i];
    }
    for (auto& c : cells) {
      std::size_t const from = c.find_first_not_of(' '), to = c.find_last_not_of(' ');
      c = from == std::string::npos ? "" : c.substr(from, to + 1 - from);
    }
    if (cells.size() < 3) inside = false;
    else if (cells[0] == first) inside = cells[1] == second;
    else if (inside && cells[0].find("---") != 0) rows.push_back(cells);
  }
  return rows;
}

/// What reading and planning a text throws, or "".
template <class Error>
std::string refusal(std::string const& text) {
  try {
    planned(text);
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("every example of the page plans, with the ranks that it states") {
  auto const rows = table("layout", "ranks");
  REQUIRE(rows.size() >= 25);
  for (Row const& row : rows) {
    INFO(row[0]);
    LayoutPlan const made = planned(row[0]);
    CHECK(std::to_string(made.view().ranks()) == row[1]);
    CHECK(coverage(made.view()).ok());
    CHECK(total_parameters(made.view()) == 134'515'008);
  }
}

TEST_CASE("every text that the page says cannot be read is refused as it says") {
  auto const rows = table("layout", "at");
  REQUIRE(rows.size() >= 30);
  for (Row const& row : rows) {
    std::string const text = row[0] == "(nothing)" ? "" : row[0];
    std::string const message = refusal<LayoutTextError>(text);
    INFO(text << ": " << message);
    CHECK(message.find("layout \"" + text + "\" (at character " + row[1] + ") " + row[2]) == 0);
    CHECK(message.find("; see docs/layouts.md") != std::string::npos);
  }
}

TEST_CASE("every text that the page says cannot be planned is refused as it says") {
  auto const rows = table("layout", "rule");
  REQUIRE(rows.size() >= 8);
  for (Row const& row : rows) {
    std::string const message = row[1].empty() ? refusal<LayoutTextError>(row[0]) : refusal<LayoutError>(row[0]);
    INFO(row[0] << ": " << message);
    CHECK(message.find(row[2]) != std::string::npos);
    CHECK(message.find(row[1]) != std::string::npos);
  }
}

TEST_CASE("limits of a text are errors, not broken invariants") {
  std::string many;
  for (std::size_t i = 0; i < max_policies; ++i) many += i % 2 ? "tp(heads) " : i ? "tp(ffn) " : "tp2(ffn) ";
  CHECK(read_layout(many).outer.size() == max_policies);
  CHECK_THAT(refusal<LayoutTextError>(many + "tp(ffn)"), Catch::Contains("states more than 64 policies"));
  CHECK_THAT(refusal<LayoutTextError>("tp2(heads)@" + std::string(80, 'r')),
             Catch::Contains("names a role of more than 79 characters"));
  CHECK_THAT(refusal<LayoutTextError>("dp1(batch) sp1 tp1 a1(ffn) pp2[b1(ffn) c1(ffn)|d1(ffn) e1(ffn) f1(ffn)]"),
             Catch::Contains("states more than 6 axes"));
  CHECK_THAT(refusal<LayoutTextError>(std::string("tp2\0tp2", 7)), Catch::Contains("layouts have no use for"));
}

TEST_CASE("an error shows the text around the fault, short and printable") {
  CHECK_THAT(refusal<LayoutTextError>("tp2\x1b[31m\n\xff\xc2\x9b"),
             Catch::StartsWith("layout \"tp2\\x1b[31m\\x0a\\xff\\xc2\\x9b\" (at character 4) has a character that"));
  std::string const spaces(100000, ' ');
  std::string const middle = refusal<LayoutTextError>(spaces + "tp2x" + spaces);
  CHECK_THAT(middle, Catch::StartsWith("layout \"...   ") && Catch::Contains("tp2x   ") &&
                         Catch::Contains("   ...\" (at character 100004) has 'x' where an axis ends"));
  CHECK(middle.size() < 200);
  CHECK_THAT(refusal<LayoutTextError>(spaces + "tp2x"), Catch::Contains("   tp2x\" (at character 100004)"));
  CHECK_THAT(refusal<LayoutTextError>("tp2x" + spaces), Catch::StartsWith("layout \"tp2x   "));
  for (std::string const& text :
       {std::string(100000, 'a'), "tp2(" + std::string(100000, 'a'), std::string(100000, '\x1b'),
        "tp2@" + std::string(100000, 'a'), "tp2@norm" + spaces}) {
    std::string const message = refusal<LayoutTextError>(text);
    CHECK(!message.empty());
    CHECK(message.size() < 500);
    CHECK(std::all_of(message.begin(), message.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
  CHECK(excerpt("a\xc3\xa9\xc3", 0) == "a\xc3\xa9\\xc3");
  std::string accents;
  for (int i = 0; i < 1000; ++i) accents += "\xe2\x82\xac";
  for (std::size_t at = 0; at <= accents.size(); ++at) {
    std::string const shown = excerpt(accents, at);
    CHECK(shown.find("\\x") == std::string::npos);  // no character is cut
    CHECK(shown.size() <= 60 + 6 + 3);
  }
}

TEST_CASE("a model has no negative number of layers") {
  CHECK_THROWS_WITH(plan_layout(read_layout("pp2"), -1, [](Builder& b, Value ids) { return llama(b, ids, smol); }),
                    "the model has -1 numbered layers; 0 or more is legal");
}

TEST_CASE("spaces of any kind separate items and surround dims and stages") {
  auto const same = [](char const* a, char const* b) {
    LayoutPlan const one = planned(a), other = planned(b);
    return same_plan(one.view(), other.view());
  };
  CHECK(same(" dp2\tpp2\n tp3(  heads , ffn ,vocab )\r\n", "dp2 pp2 tp3"));
  CHECK(same("pp2[ tp3 | tp1 ]", "pp2[tp3|tp1]"));
}

// ---- types and text

struct Smol : Llama<smol> {};
using Embedding = TokenEmbedding<smol.embedding()>;
using AttentionNorm = RmsNorm<smol.norm("attention_norm")>;
using SelfAttention = Attention<smol.attention()>;
using MlpNorm = RmsNorm<smol.norm("mlp_norm")>;
using Mlp = GatedMlp<smol.mlp()>;
using FinalNorm = RmsNorm<smol.norm("final_norm")>;
using Head = LmHead<smol.head()>;

template <Layer AttentionNormed, Layer MlpNormed, Layer OwnMlp = Mlp>
struct BlockOf : Sequential<Residual<AttentionNormed, SelfAttention>, Residual<MlpNormed, OwnMlp>> {};
struct Block : BlockOf<AttentionNorm, MlpNorm> {};
template <class A>
struct SequenceBlock : BlockOf<SequenceSharded<A, AttentionNorm>, SequenceSharded<A, MlpNorm>> {};
template <class A>
struct SequenceMlpBlock : BlockOf<AttentionNorm, SequenceSharded<A, MlpNorm>> {};
template <class A>
struct WholeMlpBlock : BlockOf<AttentionNorm, MlpNorm, Mapped<A, Mlp>> {};

template <i32 Count, Layer Repeated>
struct First : Sequential<Embedding, Repeat<Count, Repeated>> {};
template <i32 Count, Layer Repeated>
struct Last : Sequential<Repeat<Count, Repeated>, FinalNorm, Head> {};
template <Layer Repeated, Layer Normed = FinalNorm>
struct Whole : Sequential<Embedding, Repeat<30, Repeated>, Normed, Head> {};

struct Dp2 : Axis<"dp", 2> {};
struct Dp31 : Axis<"dp", Shares<3, 1>{}> {};
struct Pp2 : Axis<"pp", 2> {};
struct Pp3 : Axis<"pp", 3> {};
struct Sp3 : Axis<"sp", 3> {};
struct Tp1 : Axis<"tp", 1> {};
struct Tp2 : Axis<"tp", 2> {};
struct Tp3 : Axis<"tp", 3> {};
struct Tp4 : Axis<"tp", 4> {};
struct Tp21 : Axis<"tp", Shares<2, 1>{}> {};
struct Tp102 : Axis<"tp", Shares<1, 0, 2>{}> {};
struct A3 : Axis<"a", 3> {};
struct B3 : Axis<"b", 3> {};

template <class L>
void check(char const* text) {
  INFO(text);
  CHECK(std::string(first_difference(plan_of<L>, planned(text).view()).chars) == "");
  CHECK(plan_hash(plan_of<L>) == plan_hash(planned(text).view()));
}

TEST_CASE("policies around the model: the plan of a type is the plan of its text") {
  check<Smol>("single");
  check<TensorSharded<Tp3, Smol>>("tp3");
  check<TensorSharded<Tp21, Smol>>("tp2=2:1");
  check<TensorSharded<Tp102, Smol>>("tp3=1:0:2");
  check<Replicated<Dp2, Smol>>("dp2");
  check<Replicated<Dp31, TensorSharded<Tp3, Smol>>>("dp2=3:1 tp3");
  check<SequenceSharded<Sp3, Smol>>("sp3");
  check<SequenceSharded<Sp3, TensorSharded<Tp2, Smol>>>("sp3 tp2");
  check<Mapped<Tp4, Smol, heads, ffn>>("tp4(heads,ffn)");
  check<Mapped<A3, Mapped<B3, Smol, heads>, heads, ffn>>("a3(heads,ffn) b3(heads)");
}

TEST_CASE("pipelines: the plan of a type is the plan of its text") {
  check<Pipelined<Pp2, Smol>>("pp2");
  check<Replicated<Dp2, Pipelined<Pp2, TensorSharded<Tp3, Smol>>>>("dp2 pp2 tp3");
  check<TensorSharded<Tp3, Pipelined<Pp2, Smol>>>("tp3 pp2");
  check<Pipelined<Pp3, Cuts<12, 10, 8>, Smol>>("pp3=12,10,8");
  check<Pipelined<Pp3, Cuts<0, 10, 20>, TensorSharded<Tp2, Smol>>>("pp3=0,10,20 tp2");
}

TEST_CASE("stages spelt out: the plan of a type is the plan of its text") {
  struct Spelt : Pipelined<Pp2, PipelineStage<TensorSharded<Tp3, First<15, Block>>>,
                           PipelineStage<TensorSharded<Tp1, Last<15, Block>>>> {};
  check<Spelt>("pp2[tp3|tp1]");
  struct SecondBare
      : Pipelined<Pp2, PipelineStage<TensorSharded<Tp3, First<15, Block>>>, PipelineStage<Last<15, Block>>> {};
  check<SecondBare>("pp2[tp3|]");
  struct FirstBare
      : Pipelined<Pp2, PipelineStage<First<15, Block>>, PipelineStage<TensorSharded<Tp3, Last<15, Block>>>> {};
  check<FirstBare>("pp2[single|tp3]");
  struct Unequal : Pipelined<Pp2, PipelineStage<TensorSharded<Tp2, First<10, Block>>>,
                             PipelineStage<TensorSharded<Tp3, Last<20, Block>>>> {};
  check<Unequal>("pp2=10,20[tp2|tp3]");
  struct Replicas
      : Replicated<Dp2, Pipelined<Pp2, PipelineStage<TensorSharded<Tp2, SequenceSharded<Sp3, First<15, Block>>>>,
                                  PipelineStage<Last<15, Block>>>> {};
  check<Replicas>("dp2 pp2[tp2 sp3|single]");
}

TEST_CASE("policies around layers: the plan of a type is the plan of roles in its text") {
  check<TensorSharded<Tp4, Whole<SequenceBlock<Tp4>>>>("tp4 tp(sequence)@attention_norm,mlp_norm");
  check<TensorSharded<Tp4, Whole<Block, SequenceSharded<Tp4, FinalNorm>>>>("tp4 tp(sequence)@final_norm");
  check<TensorSharded<Tp4, Whole<WholeMlpBlock<Tp4>>>>("tp4 tp()@mlp");
  struct OneStage : Pipelined<Pp2, PipelineStage<TensorSharded<Tp4, First<15, SequenceMlpBlock<Tp4>>>>,
                              PipelineStage<TensorSharded<Tp2, Last<15, Block>>>> {};
  check<OneStage>("pp2[tp4 tp(sequence)@mlp_norm|tp2]");
}

TEST_CASE("plans that differ are told apart") {
  CHECK_FALSE(same_plan(plan_of<TensorSharded<Tp3, Smol>>, planned("tp2").view()));
  CHECK_FALSE(same_plan(plan_of<TensorSharded<Tp21, Smol>>, planned("tp2").view()));
  CHECK_FALSE(same_plan(plan_of<TensorSharded<Tp3, Smol>>, planned("xp3(heads,ffn,vocab)").view()));
  CHECK_FALSE(same_plan(plan_of<Pipelined<Pp2, Smol>>, planned("pp2=14,16").view()));
}

// ---- what the parts of a text come to

Range query_heads(Plan const& p, i64 rank) {
  RankPlace const place = p.place_of(rank);
  for (auto const& q : p.parameters)
    if (q.stage == place.stage && std::string(q.name.chars) == "layers.*.attention.q.weight")
      return held(p.values[q.value].dims[0], p.values[q.value].places, p.mesh(place.stage), place.at);
  return {};
}

TEST_CASE("shares, cuts, stages and stacked axes come to what the page says") {
  LayoutPlan const shares = planned("tp2=2:1"), none = planned("tp3=1:0:2"), stack = planned("a3(heads,ffn) b3(heads)");
  CHECK(query_heads(shares.view(), 0) == Range{0, 6});
  CHECK(query_heads(shares.view(), 1) == Range{6, 9});
  CHECK(query_heads(none.view(), 1).size() == 0);
  for (i64 rank = 0; rank < 9; ++rank) CHECK(query_heads(stack.view(), rank) == Range{rank, rank + 1});

  LayoutPlan const cuts = planned("pp3=12,10,8"), stages = planned("pp2=10,20[tp2|tp3]");
  for (i32 s = 0; s < 3; ++s) CHECK(cuts.view().stage(s).layers == 12 - 2 * s);
  CHECK(stages.view().stage(0).ranks == 2);
  CHECK(stages.view().stage(1).ranks == 3);
  CHECK(stages.view().stage(1).layers == 20);

  LayoutPlan const sequence = planned("tp4 tp(sequence)@attention_norm,mlp_norm"), whole = planned("tp4 tp()@mlp");
  CHECK(sequence.view().executed(step::reduce_scatter) == 2 * 30 + 1);
  CHECK(sequence.view().executed(step::all_gather) == 2 * 30);
  CHECK(whole.view().executed(step::all_reduce) == 30 + 2);
}

TEST_CASE("a text may name the dims that it is told, and no others") {
  CHECK(read_layout("tp2(heads)", {dim_of<heads>}).outer.size() == 1);
  CHECK_THROWS_WITH(read_layout("tp2(ffn)", {dim_of<heads>}),
                    Catch::Contains("maps an unknown dim 'ffn': known are heads;"));
}

// ---- any text

/// Examples and errors of the page with characters changed, put in and taken out.
TEST_CASE("a broken text plans or throws one of two errors") {
  test::Random random(7);
  std::vector<std::string> texts;
  for (Row const& row : table("layout", "ranks")) texts.push_back(row[0]);
  for (Row const& row : table("layout", "at")) texts.push_back(row[0]);
  std::string const alphabet = "tpdsab0123459=:,|[]()@ _\t\n\xc3hefn";
  int read = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = random.of(texts);
    for (i32 changes = random.between(1, 4); changes > 0; --changes) {
      std::size_t const at = static_cast<std::size_t>(random.between(0, static_cast<i32>(text.size())));
      char const c = alphabet[static_cast<std::size_t>(random.between(0, static_cast<i32>(alphabet.size()) - 1))];
      if (random.one_in(3)) text.erase(at, 1);
      else if (random.one_in(2)) text.insert(at, 1, c);
      else if (at < text.size()) text[at] = c;
    }
    INFO(text);
    try {
      Layout const layout = read_layout(text);
      ++read;
      plan_layout(layout, smol.layers, [](Builder& b, Value ids) { return llama(b, ids, smol); });
    } catch (LayoutTextError const&) {
      ++refused;
    } catch (LayoutError const&) {
      ++refused;
    } catch (...) {
      FAIL("another exception than the two");
    }
  }
  CHECK(read > 100);
  CHECK(refused > 1000);
}

}  // namespace
