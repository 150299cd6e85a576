// SPDX-License-Identifier: MIT
// Field cases of values: blocks that a split must not cut, norms over what is split, biases on parts of the sequence,
// caps and masks, windows by layer, whole values beside partial sums, passes whose sizes change or are empty on a rank,
// and counts that outgrow 32 bits. Each equals the unsplit model bit for bit, or is read off the plan.
#include "catch.hpp"
#include "field_cases.hpp"

namespace {

using namespace field_cases;
using split_run::Script;

// ---- blocks of columns: what quantised weights are made of

/// A gated MLP between an embedding and a head, with columns of the hidden dim in blocks.
LayoutPlan plan_of_blocks(i64 ffn_size, i64 block_size, std::string const& layout) {
  return plan_layout(read_layout(layout), 1, [=](Builder& b, Value ids) {
    Value const x = token_embedding(b, ids, EmbeddingConfig{16, 8});
    MlpConfig c;
    c.embed_size = 8, c.ffn_size = ffn_size, c.ffn_unit = block_size;
    return lm_head(b, gated_mlp(b, x, c), LmHeadConfig{16, 8});
  });
}
Sized blocks_of_ranks(i64 ffn_size, i64 block_size, std::string const& layout) {
  auto const planned = plan_of_blocks(ffn_size, block_size, layout);
  Plan const plan = planned.view();
  auto const parts = held_by_ranks(plan, "mlp.up.weight");
  if (!tile(parts, ffn_size)) throw std::runtime_error("the parts do not tile the dim");
  if (parts != held_by_ranks(plan, "mlp.gate.weight")) throw std::runtime_error("gate and up are cut differently");
  Tensor const& down = leaf_of(plan, "mlp.down.weight");
  Sized blocks;
  for (i64 r = 0; r < plan.ranks(); ++r) {
    Range const part = parts[static_cast<std::size_t>(r)];
    if (part.lo % block_size || (part.hi % block_size && part.hi != ffn_size))
      throw std::runtime_error("a block is cut");
    if (held(down.dims[1], down.places, plan.mesh(0), plan.place_of(r).at) != part)
      throw std::runtime_error("rows of down are cut elsewhere than columns of up");
    blocks.push_back((part.size() + block_size - 1) / block_size);
  }
  return blocks;
}

TEST_CASE("a split never cuts a block of columns, and rows and columns are cut at the same borders") {
  CHECK(blocks_of_ranks(11008, 128, "tp4") == Sized{22, 22, 21, 21});
  CHECK(blocks_of_ranks(29568, 128, "tp2") == Sized{116, 115});
  CHECK(blocks_of_ranks(29568, 128, "tp8") == Sized{29, 29, 29, 29, 29, 29, 29, 28});
  CHECK(blocks_of_ranks(1856, 64, "tp2") == Sized{15, 14});
  for (i64 block : {32, 128})
    for (i64 ranks = 1; ranks <= 8; ++ranks) {
      Sized const blocks = blocks_of_ranks(4096, block, "tp" + std::to_string(ranks));
      CHECK(blocks.front() - blocks.back() <= 1);
    }
  CHECK(blocks_of_ranks(300, 128, "tp2=1:2") == Sized{1, 2});  // the last block is short
  CHECK_THROWS_WITH(plan_of_blocks(300, 128, "tp4"),
                    Catch::Contains("ffn (300 in 3 units)") && Catch::Contains("Legal sizes of tp: 1 to 3"));
}

TEST_CASE("partial sums of unequal numbers of blocks add up to the whole") {
  Sizes s{.embed = 8, .heads = 6, .kv_heads = 2, .head_size = 2, .ffn = 116, .vocab = 11, .ffn_unit = 4};
  CHECK(differences(model_with(s), {"tp2", "tp4", "tp5", "tp3=4:1:2", "tp2 pp2"}) == "");
  s.ffn = 23, s.ffn_unit = 8;
  CHECK(differences(model_with(s), {"tp2", "tp3", "tp2=1:2"}) == "");
}

/// A user's dim: one scale for a block of columns, held where the columns are.
struct blocks : SharingFollower<"blocks", ffn> {};
inline constexpr Op scale_blocks{.name = "scale_blocks", .elementwise = true};

void run_scale_blocks(KernelCall<Reference> const& call) {
  View const &x = call.operands[0], &scale = call.parameters[0], &y = call.results[0];
  Range const columns = x.range(dim_of<ffn>), held_blocks = scale.range(dim_of<blocks>);
  i64 const block_size = x.extent(dim_of<ffn>)->unit;
  for (i64 r = 0; r < x.rows; ++r)
    for (i64 c = columns.lo; c < columns.hi; ++c) {
      i64 const block = c / block_size, at = r * x.width + c - columns.lo;
      if (block < held_blocks.lo || block >= held_blocks.hi) throw std::runtime_error("a block's scale is elsewhere");
      y.as<double>()[at] = x.as<double>()[at] * scale.as<double>()[block - held_blocks.lo];
    }
}

/// Logits of two tokens of a model whose hidden columns are scaled block by block, joined from the ranks.
std::vector<double> scaled_blocks(i64 ffn_size, i64 block_size, std::string const& layout) {
  i64 const block_count = ffn_size / block_size, vocab_size = 5;
  LayoutPlan const planned = plan_layout(read_layout(layout), 1, [=](Builder& b, Value ids) {
    Dims const outer = dims(extent<embed>(4)), hidden = dims(extent<ffn>(ffn_size, 0, block_size));
    Dims const by_block = dims(extent<blocks>(block_count, ffn_size, block_size));
    Value const x = token_embedding(b, ids, EmbeddingConfig{vocab_size, 4});
    Value const up = linear(b, x, LinearConfig{outer, hidden, false, Name{"up"}});
    Value const scaled = b.apply(Call(scale_blocks)
                                     .reads(up)
                                     .holds(b.shared_parameter(by_block, "up.scale"))
                                     .maps<batch, sequence, ffn>()
                                     .yields(b.dims(up)));
    return lm_head(b, linear(b, scaled, LinearConfig{hidden, outer, false, Name{"down"}}), LmHeadConfig{vocab_size, 4});
  });
  Plan const plan = planned.view();
  for (i64 r = 0; r < plan.ranks(); ++r) {
    Range const columns = held_by_ranks(plan, "up.weight")[static_cast<std::size_t>(r)];
    Range const scales = held_by_ranks(plan, "up.scale")[static_cast<std::size_t>(r)];
    if (Range{scales.lo * block_size, scales.hi * block_size} != columns)
      throw std::runtime_error("weight and scale are cut at different borders");
  }
  std::vector<double> logits(static_cast<std::size_t>(2 * vocab_size));
  std::vector<SequenceRun> const run{{0, 2, 2}};
  std::vector<i32> const ids{1, 3};
  std::vector<std::span<i32 const>> const given{ids};
  std::mutex mutex;
  ThreadWorld world(static_cast<int>(plan.ranks()));
  world.run([&](ThreadCommunicator& comm) {
    Reference device;
    KernelRow<Reference> const kernels[] = {{&scale_blocks, &run_scale_blocks}};
    auto const source = [](std::string const& name, WeightShape const& shape, std::span<double> room) {
      if (name != "up.scale") return tiny::Weights{}(name, shape, room);
      for (std::size_t i = 0; i < room.size(); ++i)
        room[i] = std::exp2(static_cast<double>((shape.ranges[0].lo + static_cast<i64>(i)) % 3 - 1));
    };
    Executor<Reference, ThreadCommunicator> executor(plan, device, comm, source, ExecutorOptions{1, 2}, kernels);
    executor.forward(RunShape{run.data(), 1}, given);
    View const v = *executor.view(plan.result);
    std::lock_guard const lock(mutex);
    split_run::each_element(
        v, [](i64, i64 p) { return p; },
        [&](i64 at, i64 here) { logits[static_cast<std::size_t>(at)] = v.as<double>()[here]; });
  });
  return logits;
}

TEST_CASE("a scale of each block stands where the block's columns stand, in blocks of 32 and of 128") {
  for (i64 block : {32, 128}) {
    auto const whole = scaled_blocks(7 * block, block, "single");
    CHECK(std::count(whole.begin(), whole.end(), 0.0) == 0);
    for (char const* layout : {"tp2", "tp3", "tp7", "tp3=1:0:4", "tp2(ffn)"}) {
      INFO(block << ", " << layout);
      CHECK(scaled_blocks(7 * block, block, layout) == whole);
    }
  }
}

// ---- norms and biases

TEST_CASE("norms over a dim that is split count every element once: mean, variance and weights of the parts") {
  for (char const* name : {"gpt2", "gemma2", "olmo", "falcon_norms"}) {
    INFO(name);
    CHECK(differences(tiny::model(name), {"e2(embed)", "e3(embed)", "e5(embed)", "tp2 e2(embed)@final_norm",
                                          "tp4 tp(embed)@attention_norm,mlp_norm"}) == "");
  }
  LayoutPlan const planned = plan_layout(read_layout("e3(embed)"), 3, tiny::model("gpt2").apply);
  Plan const plan = planned.view();
  for (char const* name : {"final_norm.weight", "final_norm.bias"})
    CHECK(sizes_of(held_by_ranks(plan, name)) == Sized{7, 7, 6});
}

TEST_CASE("biases and learned positions join once where ranks have other parts of the sequence") {
  for (char const* name : {"gpt2", "gpt2_untied", "qwen", "falcon_sequential"}) {
    INFO(name);
    CHECK(differences(tiny::model(name), {"sp2", "sp3", "sp2 tp3", "tp4 tp(sequence)@attention_norm,mlp_norm",
                                          "tp3 tp(sequence)@mlp", "dp2 sp2"}) == "");
  }
}

// ---- caps, masks, windows

/// One layer of capped attention that sees two keys, under a cap of the logits.
tiny::Model capped_model(i64 vocab_size, double score_cap) {
  return tiny::gemma2_model("capped", {2},
                            Gemma2Config{.embed_size = 8,
                                         .head_count = 6,
                                         .kv_head_count = 2,
                                         .head_size = 4,
                                         .ffn_size = 9,
                                         .vocab_size = vocab_size,
                                         .score_cap = score_cap,
                                         .logit_cap = 0.75});
}
/// Passes of these tokens, all logits asked for.
Script script_of_passes(std::vector<std::vector<std::vector<i32>>> const& passes) {
  Script script;
  script.sequences = static_cast<i64>(passes[0].size()), script.weights = 3;
  std::vector<i64> past(passes[0].size(), 0);
  for (auto const& tokens : passes) {
    Script::Step step;
    step.tokens = tokens;
    for (std::size_t s = 0; s < tokens.size(); ++s) {
      auto const n = static_cast<i64>(tokens[s].size());
      step.run.push_back({past[s], n, n});
      script.capacity = std::max(script.capacity, past[s] += n);
    }
    script.steps.push_back(std::move(step));
  }
  return script;
}

TEST_CASE("a masked key has no weight under a cap of the scores, however low the cap") {
  for (double cap : {0.01, 0.5, 50.0}) {
    tiny::Model const model = capped_model(13, cap);
    std::vector<i32> const tokens{4, 9, 1, 12, 7};
    Script const script = script_of_passes({{tokens}});
    auto const logits = split_run::run_whole(model, script).logits[0];
    for (std::size_t changed = 0; changed < tokens.size(); ++changed) {
      auto others = tokens;
      others[changed] = 6;
      auto const seen = split_run::run_whole(model, script_of_passes({{others}})).logits[0];
      for (std::size_t p = 0; p < tokens.size(); ++p) {
        bool const same = std::equal(seen.begin() + static_cast<std::ptrdiff_t>(13 * p),
                                     seen.begin() + static_cast<std::ptrdiff_t>(13 * (p + 1)),
                                     logits.begin() + static_cast<std::ptrdiff_t>(13 * p));
        CAPTURE(cap, changed, p);
        CHECK(same == (p != changed && p != changed + 1));
      }
    }
    CHECK(differences(model, {"tp2", "tp3", "tp6", "sp2", "dp2"}, script) == "");
  }
}

TEST_CASE("logits are capped where they are made, on every part of a vocabulary: 32000, 65537, 256000") {
  for (i64 vocab_size : {32000, 65537, 256000}) {
    LayoutPlan const planned = plan_layout(read_layout("tp6"), 1, capped_model(vocab_size, 1).apply);
    Plan const plan = planned.view();
    CHECK(tile(held_by_ranks(plan, "embedding.weight"), vocab_size));
    CHECK(plan.count(StepKind::all_gather) == 0);  // no rank needs another one's logits
  }
  CHECK(differences(capped_model(61, 0.5), {"tp2", "tp4", "tp6", "tp5=3:0:1:1:1"}) == "");
  CHECK(differences(capped_model(3, 0.5), {"tp2", "tp6", "tp6(vocab)"}) == "");
}

/// Window of every layer of a plan, by the layer's number in the whole model.
std::map<i64, i64> windows_of(Plan const& plan) {
  std::map<i64, i64> windows;
  for (auto const& append_step : plan.steps) {
    if (append_step.op != &append) continue;
    auto const& state = plan.states[append_step.state];
    for (auto const& s : plan.steps)
      if (s.op == &attend && s.scope == append_step.scope)
        each_iteration(plan, state.layer, state.loop,
                       [&](i64, i64 layer) { windows[layer] = static_cast<i64>(s.numbers[1]); });
  }
  return windows;
}

TEST_CASE("each layer keeps its own window wherever a pipeline cuts the pattern") {
  std::vector<std::vector<i64>> const patterns{
      {3, 0, 3, 0, 3, 0, 3}, {2, 2, 2, 0, 2, 2, 2}, {0, 0, 1, 2, 3, 4, 5}, {4, 4, 4, 4, 4, 4, 4}};
  for (auto const& pattern : patterns) {
    Gemma2Config const c{
        .embed_size = 8, .head_count = 4, .kv_head_count = 1, .head_size = 2, .ffn_size = 5, .vocab_size = 9};
    auto const model = tiny::gemma2_model("windows", pattern, c);
    for (char const* layout : {"single", "pp2", "pp3", "pp4", "pp7", "pp2=1,6", "pp2=6,1", "pp3=2,3,2"}) {
      LayoutPlan const planned = plan_layout(read_layout(layout), model.layers, model.apply);
      INFO(layout);
      auto const windows = windows_of(planned.view());
      REQUIRE(windows.size() == pattern.size());
      for (auto const& [layer, window] : windows) CHECK(window == pattern[static_cast<std::size_t>(layer)]);
    }
    CHECK(differences(model, {"pp2", "pp3=2,3,2", "pp2=1,6", "tp3 pp2", "sp2"}) == "");
  }
}

// ---- whole values beside partial sums

TEST_CASE("a branch that every rank computes whole joins partial sums once") {
  Sizes s{.embed = 8, .heads = 6, .kv_heads = 3, .head_size = 2, .ffn = 12, .vocab = 11};
  for (bool bias : {false, true}) {
    s.qkv_bias = s.out_bias = bias;
    auto const side = tiny::model_of(
        "branches", 2, 1, s, [](Builder& b, Value v, Sizes const& z, i32) { return tiny::parallel_block(b, v, z); });
    CHECK(differences(side, {"tp2 tp()@attention", "tp3 tp()@mlp", "tp6 tp()@attention", "tp4 tp()@mlp",
                             "tp2 tp()@attention,mlp", "a2(heads) b3(ffn)", "a2(ffn) b2(heads) b()@attention"}) == "");
    LayoutPlan const planned = plan_layout(read_layout("tp3 tp()@attention"), 2, side.apply);
    CHECK(planned.view().executed(StepKind::all_reduce) == 2 + 2);  // once a layer, embedding and choice
  }
}

TEST_CASE("weights that are split meet the tokens of all ranks, though each holds a part of the sequence") {
  Sizes s{.embed = 8, .heads = 6, .kv_heads = 2, .head_size = 2, .ffn = 12, .vocab = 11};
  s.out_bias = true;
  auto const model = model_with(s, 3);
  CHECK(differences(model, {"tp3 tp(sequence)@attention_norm,mlp_norm", "tp2 tp(sequence)@mlp",
                            "tp3 tp(sequence)@mlp_norm", "sp2 tp2 sp()@mlp", "dp2 tp2 tp(sequence)@mlp_norm"}) == "");
  LayoutPlan const planned = plan_layout(read_layout("tp3 tp(sequence)@mlp_norm"), 3, model.apply);
  CHECK(planned.view().executed(StepKind::all_gather) >= 3);
}

// ---- passes whose sizes change, or that are empty on a rank

TEST_CASE("every pass has its own sizes on every stage: n tokens then n + 1, ragged, a batch that does not divide") {
  Sizes const s{.embed = 6, .heads = 4, .kv_heads = 2, .head_size = 2, .ffn = 7, .vocab = 11};
  auto const model = model_with(s, 3);
  std::vector<std::string> const layouts{"pp2", "pp3", "pp3 tp2", "dp2 pp2", "pp2[tp4|tp1]", "sp2 pp2"};
  CHECK(differences(model, layouts, script_of_passes({{{1, 2, 3}}, {{4, 5, 6, 7}}, {{8}}, {{9, 10, 0, 1, 2}}})) == "");
  CHECK(differences(model, layouts,
                    script_of_passes({{{1, 2, 3, 4}, {5}, {6, 7}}, {{8}, {9, 10, 0}, {}}, {{}, {1}, {2, 3, 4}}})) ==
        "");
  std::vector<std::vector<i32>> eight;
  for (i32 i = 0; i < 8; ++i) eight.push_back({i, 10 - i});
  CHECK(differences(model, {"dp3", "dp3 pp2", "dp5 tp2", "pp3[dp3|dp1|dp2]"}, script_of_passes({eight, eight})) == "");
}

TEST_CASE("ranks without a token or a sequence take part and change nothing") {
  Sizes const s{.embed = 6, .heads = 4, .kv_heads = 1, .head_size = 2, .ffn = 7, .vocab = 3, .tied = true};
  for (auto const& model : {model_with(s, 2), tiny::model("gpt2")}) {
    CHECK(differences(model, {"dp4", "dp3 tp2", "dp4 pp2", "sp4", "sp5 tp2", "sp3 pp2", "dp2 sp3"},
                      script_of_passes({{{1}}, {{2}}, {{0, 1}}})) == "");
    CHECK(differences(model, {"dp3", "dp3 pp2", "sp3", "tp2 dp3"},
                      script_of_passes({{{1, 2}, {}, {}}, {{}, {}, {2}}, {{}, {}, {}}, {{0}, {1}, {}}})) == "");
  }
}

// ---- large counts

TEST_CASE("counts of elements, bytes and their sums are exact beyond 32 bits") {
  LlamaConfig const c = models::llama31_8b;
  StorageBytes const bytes = Executor<Reference, ThreadCommunicator>::storage_bytes();
  for (char const* layout : {"tp8", "sp8 tp2", "pp4 tp2", "dp2 tp4"}) {
    LayoutPlan const planned =
        plan_layout(read_layout(layout), c.layers, [&](Builder& b, Value ids) { return llama(b, ids, c); });
    Plan const plan = planned.view();
    auto const cost = [&](i64 tokens) {
      std::vector<SequenceRun> const run(2, SequenceRun{0, tokens, tokens});
      return total_traffic(plan, RunShape{run.data(), 2}, bytes).total;
    };
    i64 const few = i64{1} << 10, times = i64{1} << 11;
    INFO(layout);
    CHECK(cost(few).bytes > 0);
    CHECK(cost(few * times).bytes == cost(few).bytes * times);
    CHECK(cost(few * times).bytes > i64{1} << 40);
    CHECK(total_parameters(plan) == 8'030'261'248);
  }
}

}  // namespace
