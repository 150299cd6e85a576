// SPDX-License-Identifier: MIT
// Faults that users of model-parallel systems met, by kind, each made impossible here or refused with words that help.
// Where others pad, an uneven split gives the right answer instead; so each case either equals the unsplit model bit
// for bit or shows who holds what. Sizes are small where the count is not the point; large models are planned only.
#include <numeric>

#include "catch.hpp"
#include "field_cases.hpp"

namespace {

using namespace field_cases;

LayoutPlan plan_of_llama(LlamaConfig const& c, std::string const& layout) {
  return plan_layout(read_layout(layout), c.layers, [&](Builder& b, Value ids) { return llama(b, ids, c); });
}
LlamaConfig llama_with(i64 heads, i64 kv_heads, i64 vocab, i32 layers = 2) {
  return {64, layers, heads, kv_heads, 64, 256, vocab};
}

std::string refusal_of(LlamaConfig const& c, std::string const& layout) {
  try {
    plan_of_llama(c, layout);
  } catch (LayoutError const& e) {
    return e.what();
  }
  return "";
}

// ---- heads, vocabulary and ffn that the ranks do not divide

TEST_CASE("heads need not divide by the ranks: 52 on 3, on 8") {
  Sizes const s{.embed = 8, .heads = 52, .kv_heads = 52, .head_size = 2, .ffn = 9, .vocab = 11};
  CHECK(differences(model_with(s), {"tp3", "tp8"}) == "");
  auto const planned = plan_of_llama(llama_with(52, 52, 100), "tp3");
  CHECK(sizes_of(held_by_ranks(planned.view(), "q.weight")) == Sized{18, 17, 17});
}

TEST_CASE("a prime number of heads splits, and the one KV head stands on every rank: 71 and 1 on 4") {
  CHECK(differences(tiny::model("falcon"), {"tp4"}) == "");
  auto const planned = plan_of_llama(llama_with(71, 1, 100), "tp4");
  CHECK(sizes_of(held_by_ranks(planned.view(), "q.weight")) == Sized{18, 18, 18, 17});
  CHECK(sizes_of(held_by_ranks(planned.view(), "k.weight")) == Sized{1, 1, 1, 1});
}

TEST_CASE("neither query nor KV heads need to divide: 28 and 4 on 8") {
  Sizes const s{.embed = 8, .heads = 28, .kv_heads = 4, .head_size = 2, .ffn = 16, .vocab = 11};
  CHECK(differences(model_with(s), {"tp8"}) == "");
}

TEST_CASE("more ranks than heads is refused with the dim, both numbers, the legal sizes and the way out") {
  std::string const said = refusal_of(llama_with(64, 8, 100), "tp65");
  for (char const* words : {"placement/split", "attention.q", "heads (64)", "axis tp of 65 ranks", "1 to 64", "pp"})
    CHECK_THAT(said, Catch::Contains(words));
  CHECK(refusal_of(llama_with(64, 8, 100), "tp3") == "");
}

TEST_CASE("no count of heads is rounded down: the owned parts of every rank add up") {
  for (i64 heads : {1, 2, 7, 10, 52, 64})
    for (i64 ranks = 1; ranks <= heads && ranks <= 16; ++ranks) {
      CAPTURE(heads, ranks);
      auto const planned = plan_of_llama(llama_with(heads, 1, 100), "tp" + std::to_string(ranks));
      auto const parts = held_by_ranks(planned.view(), "q.weight");
      CHECK(tile(parts, heads));
      for (auto const& p : parts) CHECK(p.size() >= 1);
    }
}

TEST_CASE("any vocabulary splits over any ranks, without padding") {
  struct Case {
    i64 vocab;
    i64 ranks;
  };
  for (auto const& [vocab, ranks] : {Case{250682, 8}, Case{49954, 16}, Case{32001, 2}, Case{151851, 2}, Case{151669, 4},
                                     Case{129280, 24}, Case{151552, 6}}) {
    CAPTURE(vocab, ranks);
    LlamaConfig const c = llama_with(96, 8, vocab);
    auto const planned = plan_of_llama(c, "tp" + std::to_string(ranks));
    Plan const plan = planned.view();
    for (char const* name : {"embedding.weight", "head.weight"}) {
      auto const parts = held_by_ranks(plan, name);
      CHECK(tile(parts, vocab));
      auto const sizes = sizes_of(parts);
      CHECK(*std::max_element(sizes.begin(), sizes.end()) - *std::min_element(sizes.begin(), sizes.end()) <= 1);
    }
    auto const single = plan_of_llama(c, "single");
    CHECK(total_parameters(plan) == total_parameters(single.view()));
    CHECK(coverage(plan).ok());
  }
}

TEST_CASE("each dim is judged by itself: heads that divide do not ask the vocabulary to, nor the other way") {
  CHECK(refusal_of(llama_with(96, 96, 151552), "tp6") == "");
  CHECK(refusal_of(llama_with(4, 4, 151552), "tp6").find("heads (4)") != std::string::npos);
  CHECK(refusal_of(llama_with(96, 96, 5), "tp6") == "");
}

TEST_CASE("a vocabulary that does not divide gives the logits and tokens of the whole") {
  for (i64 vocab : {5, 7, 61}) {
    Sizes const s{.embed = 6, .heads = 8, .kv_heads = 2, .head_size = 2, .ffn = 8, .vocab = vocab};
    CHECK(differences(model_with(s, 1), {"tp2", "tp4", "tp8", "tp8=3:0:1:1:1:2:1:1"}) == "");
  }
}

/// A head over one hidden element. @param cap of the logits; 0: none
tiny::Model head_model(i64 vocab_size, double cap = 0) {
  return {"head", 1, vocab_size, [=](Builder& b, Value ids) {
            LmHeadConfig const head{vocab_size, 1, false, Name{"head.weight"}, cap};
            return lm_head(b, token_embedding(b, ids, EmbeddingConfig{vocab_size, 1}), head);
          }};
}
/// Logits that are all negative, that of token i being -1 - i / vocab.
auto negative(i64 vocab_size) {
  return [=](i64 id) { return -1 - static_cast<double>(id) / static_cast<double>(vocab_size); };
}
/// Best token of each position, on the ranks of a layout. @param logit_of  token -> its logit
std::vector<Choice> best_tokens(tiny::Model const& model, auto const& logit_of, std::string const& layout,
                                std::vector<i32> const& ids) {
  LayoutPlan const planned = plan_layout(read_layout(layout), model.layers, model.apply);
  Plan const plan = planned.view();
  auto const tokens = static_cast<i64>(ids.size());
  std::vector<SequenceRun> const run{{0, tokens, tokens}};
  std::vector<std::span<i32 const>> const given{ids};
  std::vector<std::vector<Choice>> found(static_cast<std::size_t>(plan.ranks()));
  ThreadWorld world(static_cast<int>(plan.ranks()));
  world.run([&](ThreadCommunicator& comm) {
    Reference device;
    auto const source = [&](std::string const& name, WeightShape const& shape, std::span<double> room) {
      for (std::size_t i = 0; i < room.size(); ++i)
        room[i] = name == "head.weight" ? logit_of(shape.ranges[0].lo + static_cast<i64>(i)) : 1;
    };
    Executor<Reference, ThreadCommunicator> executor(plan, device, comm, source, ExecutorOptions{1, 8});
    executor.forward(RunShape{run.data(), 1}, given);
    View const v = *executor.view(plan.output("choice"));
    found[static_cast<std::size_t>(comm.rank())].assign(v.as<Choice>(), v.as<Choice>() + v.rows);
  });
  for (auto const& f : found)
    for (std::size_t i = 0; i < f.size(); ++i)
      if (f[i].index != found[0][i].index) throw std::runtime_error("ranks disagree about the best token");
  return found[0];
}

TEST_CASE("a token that does not exist is never the best, though all real logits are negative") {
  for (auto const& [vocab, layout] : {std::pair<i64, char const*>{32001, "tp2"}, {32001, "tp7"}, {5, "tp4"}})
    for (auto const& c : best_tokens(head_model(vocab), negative(vocab), layout, {0, 3})) {
      CHECK(c.index == 0);
      CHECK(c.value == -1);
    }
  for (i64 vocab : {5, 65537})  // a cap brings the logits nearer to 0, where a padded one would stand
    for (auto const& c : best_tokens(head_model(vocab, 0.25), negative(vocab), "tp7", {0, 3})) {
      CHECK(c.index == 0);
      CHECK(c.value < -0.2);
    }
}

TEST_CASE("of equal logits the lowest token is the best on every rank, whoever holds it") {
  for (char const* layout : {"single", "tp2", "tp3", "tp5", "tp8", "tp3=1:0:2", "a2(vocab) b3(vocab)"}) {
    INFO(layout);
    for (i64 lowest : {0, 1, 2, 4, 6}) {
      auto const tied = [=](i64 id) { return id >= lowest && (id - lowest) % 2 == 0 ? 0.5 : -0.5; };
      for (auto const& c : best_tokens(head_model(7), tied, layout, {0, 3})) CHECK(c.index == lowest);
    }
  }
}

TEST_CASE("a rank without a part of the vocabulary is neutral: 5 tokens on 8 ranks") {
  for (auto const& c : best_tokens(head_model(5), negative(5), "tp8", {4, 0, 2})) CHECK(c.index == 0);
  Sizes const s{.embed = 6, .heads = 8, .kv_heads = 8, .head_size = 2, .ffn = 8, .vocab = 5, .tied = true};
  CHECK(differences(model_with(s), {"tp8", "tp8(vocab)"}) == "");
}

// ---- numbers of ranks

TEST_CASE("the layout alone says how many ranks there are, and any number up to the heads is legal") {
  for (i64 ranks = 1; ranks <= 9; ++ranks) {
    auto const planned = plan_of_llama(llama_with(9, 3, 100), "tp" + std::to_string(ranks));
    CHECK(planned.view().ranks() == ranks);
  }
  CHECK(refusal_of(llama_with(32, 8, 32000), "tp5") == "");
  CHECK(refusal_of(llama_with(32, 4, 32000), "tp3") == "");
  CHECK(refusal_of(llama_with(52, 52, 32000), "tp8") == "");
}

TEST_CASE("a model with heads of 80 is not a special case") {
  Sizes const s{.embed = 8, .heads = 3, .kv_heads = 1, .head_size = 80, .ffn = 8, .vocab = 11};
  CHECK(differences(model_with(s, 1), {"tp2", "tp3", "sp2"}) == "");
}

TEST_CASE("a head that cannot be rotated in pairs is an error, not wrong numbers") {
  Sizes const s{.embed = 8, .heads = 2, .kv_heads = 1, .head_size = 5, .ffn = 8, .vocab = 11};
  CHECK_THROWS_WITH(differences(model_with(s, 1), {}), Catch::Contains("rot") && Catch::Contains("5"));
}

TEST_CASE("weights are asked for by name and global range, so that no file is cut for a layout") {
  tiny::Model const model = tiny::model("llama");
  auto const inventory = legal::Inventory(model);
  for (char const* layout : {"tp4", "tp2 pp2", "pp4", "dp2 tp2", "a2(heads,ffn) b2(vocab)"}) {
    CAPTURE(layout);
    LayoutPlan const planned = plan_layout(read_layout(layout), model.layers, model.apply);
    Plan const plan = planned.view();
    std::mutex mutex;
    std::map<std::string, std::vector<char>> filled;
    ThreadWorld world(static_cast<int>(plan.ranks()));
    world.run([&](ThreadCommunicator& comm) {
      Reference device;
      auto const source = [&](std::string const& name, WeightShape const& shape, std::span<double> room) {
        tiny::Weights{}(name, shape, room);
        std::lock_guard const lock(mutex);
        i64 rest = 1;  // elements of one index of the first dim that is split; the others are whole
        i32 split = 0;
        for (i32 k = 0; k < shape.dims.size(); ++k)
          if (shape.ranges[k].size() != shape.dims[k].size) split = k;
        i64 before = 1, size = 1;
        for (i32 k = 0; k < shape.dims.size(); ++k) {
          (k < split ? before : k > split ? rest : size) *= shape.dims[k].size;
        }
        auto& all = filled[name];
        all.resize(static_cast<std::size_t>(before * size * rest));
        for (i64 b = 0; b < before; ++b)
          for (i64 i = shape.ranges[split].lo * rest; i < shape.ranges[split].hi * rest; ++i)
            all[static_cast<std::size_t>(b * size * rest + i)] = 1;
      };
      Executor<Reference, ThreadCommunicator> executor(plan, device, comm, source, ExecutorOptions{1, 4});
    });
    std::set<std::string> names;
    for (auto const& [name, all] : filled) {
      names.insert(name);
      CHECK(std::count(all.begin(), all.end(), 0) == 0);
    }
    CHECK(names == inventory.names);
  }
}

// ---- KV heads

TEST_CASE("a rank never holds part of a KV head, however many ranks there are") {
  for (auto const& [kv, ranks] : {std::pair<i64, i64>{4, 8}, {2, 4}, {8, 16}, {1, 16}, {3, 7}, {8, 5}}) {
    CAPTURE(kv, ranks);
    i64 const heads = kv == 3 ? 9 : 16;
    auto const planned = plan_of_llama(llama_with(heads, kv, 100), "tp" + std::to_string(ranks));
    Plan const plan = planned.view();
    for (char const* name : {"k.weight", "v.weight"}) {
      Tensor const& t = leaf_of(plan, name);
      auto const parts = held_by_ranks(plan, name);
      for (i64 r = 0; r < ranks; ++r) {
        auto const at = plan.place_of(r).at;
        CHECK(held(t.dims[1], t.places, plan.mesh(0), at) == Range{0, 64});  // head_dim
        Range const queries = held_by_ranks(plan, "q.weight")[static_cast<std::size_t>(r)];
        Range const mine = parts[static_cast<std::size_t>(r)];
        CHECK(mine.lo == queries.lo * kv / heads);  // query head i reads KV head floor(i kv / heads)
        CHECK(mine.hi == (queries.hi - 1) * kv / heads + 1);
      }
      CHECK(tile(held_by_ranks(plan, name, true), kv));
    }
  }
}

TEST_CASE("8 KV heads on 16 ranks stand twice each, in order, and cost no exchange of their own") {
  auto const planned = plan_of_llama(llama_with(16, 8, 100), "tp16");
  Plan const plan = planned.view();
  auto const parts = held_by_ranks(plan, "k.weight");
  for (i64 r = 0; r < 16; ++r) CHECK(parts[static_cast<std::size_t>(r)] == Range{r / 2, r / 2 + 1});
  CHECK(plan.count(StepKind::all_to_all) == 0);
  CHECK(plan.count(StepKind::all_gather) == 0);
  CHECK(plan.count(StepKind::share_reduce) == 0);
  CHECK(plan.executed(StepKind::all_reduce) == 2 * 2 + 2);  // two a layer, embedding and choice
}

TEST_CASE("the total of KV heads is carried, never recomputed from what a rank holds") {
  auto const planned = plan_of_llama(llama_with(16, 2, 100), "tp4");
  Plan const plan = planned.view();
  for (auto const& s : plan.states) {
    Extent const* e = find(plan.values[s.value].dims, dim_of<heads>);
    REQUIRE(e);
    CHECK(e->size == 2);
    CHECK(e->lead == 16);
  }
  StorageBytes const bytes = Executor<Reference, ThreadCommunicator>::storage_bytes();
  for (i64 r = 0; r < 4; ++r) CHECK(kv_bytes_per_token(plan, r, bytes) == 2 * 2 * 64 * 8);  // k, v; layers; one head
  Sizes const s{.embed = 8, .heads = 16, .kv_heads = 2, .head_size = 2, .ffn = 16, .vocab = 11};
  CHECK(differences(model_with(s), {"tp4", "tp16"}) == "");
}

TEST_CASE("one KV head under tensor parallelism: queries split, keys and values on every rank") {
  Sizes const s{.embed = 8, .heads = 6, .kv_heads = 1, .head_size = 4, .ffn = 12, .vocab = 11};
  CHECK(differences(model_with(s), {"tp2", "tp4", "tp6", "dp2 tp2", "pp2[tp6|tp1]"}) == "");
}

TEST_CASE("the norm of keys over all heads counts each KV head once, though ranks hold it twice") {
  for (auto const& [heads, kv] : {std::pair<i64, i64>{9, 3}, {16, 8}, {8, 1}}) {
    Sizes const s{
        .embed = 8, .heads = heads, .kv_heads = kv, .head_size = 2, .ffn = 16, .vocab = 11, .qk_norm = QkNorm::full};
    CHECK(differences(model_with(s), {"tp2", "tp4", "tp5", "tp8"}) == "");
    auto const planned = plan_layout(read_layout("tp4"), 2, model_with(s).apply);
    CHECK(planned.view().count(StepKind::own) >= 1);
    auto const parts = held_by_ranks(planned.view(), "k_norm.weight");
    CHECK(parts == held_by_ranks(planned.view(), "k.weight"));  // its weights follow the heads, copies included
  }
}

TEST_CASE("whether a model fits is known when it is planned, for every family at once") {
  CHECK(refusal_of(llama_with(8, 2, 100), "tp4") == "");
  CHECK_THAT(refusal_of(llama_with(8, 2, 100), "tp9"), Catch::Contains("heads (8)"));
  CHECK_THAT(refusal_of(LlamaConfig{64, 2, 64, 64, 8, 3, 100}, "tp4"), Catch::Contains("ffn (3)"));
}

// ---- sums that must count once

/// y = w x + bias over a contracted dim that the ranks split: [130, 270, 410], and 1000 more where a residual joins.
std::vector<double> row_parallel(std::string const& layout, bool residual) {
  auto const model = [&](Builder& b, Value ids) {
    Dims const in = dims(extent<ffn>(4)), out = dims(extent<embed>(3)), table = dims(extent<vocab>(1));
    auto const looked_up = [&](Dims const& of, char const* name) {
      return b.apply(Call(lookup)
                         .reads(ids)
                         .holds(b.shared_parameter(with(table, of), name))
                         .contracts<vocab>()
                         .maps_rest()
                         .yields(with(b.dims(ids), of)));
    };
    Value const y = linear(b, looked_up(in, "x"), LinearConfig{in, out, true, Name{"down"}});
    return residual ? ops::add(b, looked_up(out, "stream"), y) : y;
  };
  LayoutPlan const planned = plan_layout(read_layout(layout), 1, model);
  Plan const plan = planned.view();
  std::vector<std::vector<double>> results(static_cast<std::size_t>(plan.ranks()));
  std::vector<SequenceRun> const run{{0, 1, 1}};
  std::vector<i32> const id{0};
  std::vector<std::span<i32 const>> const given{id};
  ThreadWorld world(static_cast<int>(plan.ranks()));
  world.run([&](ThreadCommunicator& comm) {
    Reference device;
    auto const source = [](std::string const& name, WeightShape const& shape, std::span<double> room) {
      i32 const last = shape.dims.size() - 1;
      for (std::size_t i = 0; i < room.size(); ++i) {
        i64 const width = shape.ranges[last].size(), at = static_cast<i64>(i);
        i64 const column = shape.ranges[last].lo + at % width, row = at / width;
        room[i] = name == "x"             ? static_cast<double>(1 + column)
                  : name == "down.weight" ? static_cast<double>(1 + 4 * row + column)
                  : name == "down.bias"   ? static_cast<double>(100 * (1 + column))
                                          : 1000;
      }
    };
    Executor<Reference, ThreadCommunicator> executor(plan, device, comm, source, ExecutorOptions{1, 1});
    executor.forward(RunShape{run.data(), 1}, given);
    View const v = *executor.view(plan.result);
    results[static_cast<std::size_t>(comm.rank())].assign(v.as<double>(), v.as<double>() + v.width);
  });
  for (auto const& r : results)
    if (r != results[0]) throw std::runtime_error("ranks disagree");
  return results[0];
}

TEST_CASE("the bias behind a row split joins once") {
  for (char const* layout : {"single", "tp1(ffn)", "tp2(ffn)", "tp3(ffn)", "tp4(ffn)", "tp2=3:1(ffn)", "tp3=1:0:2(ffn)",
                             "a2(ffn) b2(ffn)", "tp2(ffn,vocab)@down"})
    CHECK(row_parallel(layout, false) == std::vector<double>{130, 270, 410});
}

TEST_CASE("the residual joins once") {
  for (char const* layout : {"single", "tp2(ffn)", "tp3(ffn)", "tp4(ffn)", "a2(ffn) b2(ffn)"})
    CHECK(row_parallel(layout, true) == std::vector<double>{1130, 1270, 1410});
}

TEST_CASE("biases of attention and MLP join once in every block and layout") {
  Sizes s{.embed = 8, .heads = 6, .kv_heads = 2, .head_size = 2, .ffn = 12, .vocab = 11};
  s.qkv_bias = s.out_bias = true;
  CHECK(differences(model_with(s), {"tp2", "tp3", "tp6", "tp2 pp2", "sp2 tp3"}) == "");
  auto const side = tiny::model_of(
      "side", 2, 1, s, [](Builder& b, Value v, Sizes const& z, i32) { return tiny::parallel_block(b, v, z); });
  CHECK(differences(side, {"tp2", "tp3", "tp6", "tp2 pp2"}) == "");
}

// ---- tied heads

TEST_CASE("a tied head has its matrix on both end stages, and a recorded tie") {
  LlamaConfig c = llama_with(8, 2, 100, 4);
  c.tied = true;
  auto const planned = plan_of_llama(c, "pp2 tp2");
  Plan const plan = planned.view();
  std::vector<i32> stages;
  for (auto const& p : plan.parameters)
    if (std::string(p.name.chars) == "embedding.weight") {
      CHECK(p.tied);
      stages.push_back(p.stage);
    }
  CHECK(stages == std::vector<i32>{0, 1});
  REQUIRE(plan.ties.size() == 1);
  auto const single = plan_of_llama(c, "single");
  CHECK(total_parameters(plan) == total_parameters(single.view()));
  c.tied = false;
  auto const untied = plan_of_llama(c, "pp2");
  CHECK(untied.view().ties.size() == 0);
}

TEST_CASE("tied and untied heads give the unsplit model's tokens in a pipeline") {
  Sizes s{.embed = 8, .heads = 4, .kv_heads = 2, .head_size = 2, .ffn = 12, .vocab = 13};
  for (bool tied : {true, false}) {
    s.tied = tied;
    CHECK(differences(model_with(s, 3), {"pp2", "pp3", "pp2 tp3", "pp2[tp4|tp1]", "pp3=0,3,0", "dp2 pp2"}) == "");
  }
}

// ---- layers over stages

std::vector<i64> layers_of_stages(i32 layers, std::string const& layout) {
  auto const planned = plan_of_llama(llama_with(8, 8, 100, layers), layout);
  Plan const plan = planned.view();
  std::vector<i64> counts;
  std::set<std::string> names;
  for (i32 s = 0; s < plan.stages(); ++s) counts.push_back(plan.stage(s).layers);
  std::vector<i64> stored(counts.size(), 0);
  for (auto const& p : plan.parameters)
    if (std::string(p.name.chars).ends_with("q.weight"))
      each_iteration(plan, p.layer, p.loop, [&](i64, i64 layer) {
        names.insert(indexed_name(p.name, layer));
        ++stored[static_cast<std::size_t>(p.stage)];
      });
  if (stored != counts) throw std::runtime_error("a stage stores other layers than it runs");
  for (i64 l = 0; l < layers; ++l)
    if (!names.contains("layers." + std::to_string(l) + ".attention.q.weight"))
      throw std::runtime_error("layer " + std::to_string(l) + " is lost");
  return counts;
}

TEST_CASE("every layer runs once, however the stages divide them") {
  CHECK(layers_of_stages(30, "pp4") == Sized{8, 8, 7, 7});
  CHECK(layers_of_stages(10, "pp3") == Sized{4, 3, 3});
  CHECK(layers_of_stages(27, "pp2") == Sized{14, 13});
  CHECK(layers_of_stages(61, "pp4") == Sized{16, 15, 15, 15});
  CHECK(layers_of_stages(61, "pp8") == Sized{8, 8, 8, 8, 8, 7, 7, 7});
  CHECK(layers_of_stages(12, "pp5") == Sized{3, 3, 2, 2, 2});
  CHECK(layers_of_stages(12, "pp5=2,2,2,3,3") == Sized{2, 2, 2, 3, 3});
  for (i32 layers = 1; layers <= 13; ++layers)
    for (i32 stages = 1; stages <= layers; ++stages) {
      auto const counts = layers_of_stages(layers, "pp" + std::to_string(stages));
      CHECK(std::accumulate(counts.begin(), counts.end(), i64{0}) == layers);
      CHECK(counts.front() - counts.back() <= 1);
    }
}

TEST_CASE("a cut that loses or invents layers is refused with both totals") {
  LlamaConfig const c = llama_with(8, 8, 100, 30);
  CHECK_THAT(refusal_of(c, "pp4=7,7,7,7"), Catch::Contains("28 layers in all, but the model has 30"));
  CHECK_THAT(refusal_of(c, "pp2=16,15"), Catch::Contains("31 layers in all, but the model has 30"));
  CHECK_THAT(refusal_of(c, "pp31"), Catch::Contains("30 layers") && Catch::Contains("1 to 30"));
}

TEST_CASE("odd numbers of layers over stages give the unsplit model's numbers") {
  Sizes const s{.embed = 6, .heads = 2, .kv_heads = 1, .head_size = 2, .ffn = 6, .vocab = 11};
  CHECK(differences(model_with(s, 10), {"pp3", "pp4", "pp3=1,8,1"}) == "");
  CHECK(differences(model_with(s, 7), {"pp2", "pp5", "pp7", "pp2 tp2"}) == "");
}

}  // namespace
