// SPDX-License-Identifier: MIT
// Generates text with a real model split over ranks on threads: read the model, plan the layout, start a world, one
// executor a rank. `--json` prints what it did for programs; `--plan` shows the plan that runs.
#include "finish_output.hpp"
#include "generate_options.hpp"
#include "generate_text.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/plan/json.hpp>
#include <dovetail/plan/print.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/generate.hpp>
#include <dovetail/run/model_config.hpp>
#include <optional>
#include <thread>

#ifndef DOVETAIL_SCRIPTS_DIR
#define DOVETAIL_SCRIPTS_DIR "scripts"
#endif
#ifndef DOVETAIL_PYTHON
#define DOVETAIL_PYTHON "python3"
#endif

using namespace generate_example;
namespace dt = dovetail;

namespace {

/// The tokenizer, where words go in or the model has one; ids alone do without.
std::optional<dt::Tokenizer> open_tokenizer(Options const& o) {
  bool words = !o.stop.empty();
  for (auto const& p : o.prompts) words = words || p.kind != Prompt::Kind::ids;
  std::filesystem::path const model = o.model;
  std::error_code ignored;
  if (!words && !std::filesystem::exists(model / "tokenizer.json", ignored)) return std::nullopt;
  try {
    return std::optional<dt::Tokenizer>(std::in_place, model, DOVETAIL_PYTHON,
                                        std::filesystem::path(DOVETAIL_SCRIPTS_DIR) / "tokenizer_server.py");
  } catch (dt::IoError const& e) {
    if (words) throw;
    std::fprintf(stderr, "generate: no text will be shown: %s\n", e.what());
    return std::nullopt;
  }
}

std::vector<std::vector<dt::i32>> encode(Options const& o, std::optional<dt::Tokenizer>& tokenizer) {
  std::vector<std::vector<dt::i32>> prompts;
  for (auto const& p : o.prompts) {
    if (p.kind == Prompt::Kind::ids) prompts.push_back(p.ids);
    else if (p.kind == Prompt::Kind::text) prompts.push_back(tokenizer->encode(p.words));
    else prompts.push_back(tokenizer->encode(tokenizer->apply_chat(p.words), false));
  }
  return prompts;
}

dt::GenerateResult run(Options const& o, dt::Model const& model, dt::Plan const& plan,
                       dt::GenerateRequest const& request) {
  dt::Checkpoint const checkpoint{std::filesystem::path(o.model)};
  dt::CheckpointSource const source(checkpoint, model, plan);
  dt::ThreadWorld world(static_cast<int>(plan.ranks()), {.pin = o.pin});
  int const cores = static_cast<int>((std::max)(1u, std::thread::hardware_concurrency()));
  int const threads = o.threads_per_rank ? o.threads_per_rank : (std::max)(1, cores / world.size());
  if (o.device == "reference")
    return dt::generate(
        world, plan, model, request, [](int) { return dt::Reference(); }, source);
  return dt::generate(
      world, plan, model, request, [&](int) { return dt::Cpu({.threads = threads}); }, source);
}

dt::Json json_of(dt::Cost const& c) { return {{"messages", c.messages}, {"bytes", c.bytes}}; }
dt::Json json_of(dt::Traffic const& t) { return {{"messages", t.messages}, {"bytes", t.bytes}}; }

void print_json(Options const& o, dt::Plan const& plan, std::vector<std::vector<dt::i32>> const& prompts,
                dt::GenerateResult const& r, std::vector<std::string> const& texts) {
  dt::Json tokens = dt::Json::array(), text = dt::Json::array(), ended = dt::Json::array(), logits = dt::Json::array();
  for (std::size_t s = 0; s < r.sequences.size(); ++s) {
    tokens.push_back(r.sequences[s].tokens);
    text.push_back(texts[s]);
    ended.push_back(dt::name_of(r.sequences[s].ended));
    if (o.logits) {
      logits.push_back(dt::Json::array());
      for (std::size_t p = 0; p < prompts[s].size(); ++p) logits.back().push_back(r.sequences[s].logits[p]);
    }
  }
  bool const one = r.sequences.size() == 1;
  dt::Cost predicted;
  dt::Traffic counted;
  dt::Json ranks = dt::Json::array();
  for (auto const& k : r.ranks) {
    predicted += k.predicted;
    counted += k.counted.total();
    ranks.push_back({{"predicted", json_of(k.predicted)},
                     {"counted", json_of(k.counted.total())},
                     {"weight_bytes", k.weight_bytes},
                     {"packed_bytes", k.packed_bytes},
                     {"state_bytes", k.state_bytes},
                     {"arena_bytes", k.arena_bytes}});
  }
  dt::Json out = {{"layout", o.layout},
                  {"device", o.device},
                  {"tokens", one ? tokens[0] : tokens},
                  {"text", one ? text[0] : text},
                  {"ended", one ? ended[0] : ended},
                  {"tokens_per_second", r.tokens_per_second()},
                  {"prefill_tokens_per_second", r.prefill_tokens_per_second()},
                  {"prompt_tokens", r.prompt_tokens},
                  {"new_tokens", r.new_tokens},
                  {"traffic", {{"predicted", json_of(predicted)}, {"counted", json_of(counted)}}},
                  {"ranks", ranks},
                  {"plan", dt::Json::parse(dt::to_json(plan))}};
  if (o.logits) out["logits"] = one ? logits[0] : logits;
  std::puts(out.dump(-1, ' ', false, dt::Json::error_handler_t::replace).c_str());
}

void print_summary(dt::GenerateResult const& r) {
  dt::Traffic counted;
  bool exact = true;
  for (auto const& k : r.ranks) {
    counted += k.counted.total();
    exact = exact && k.counted.total() == k.predicted;
  }
  std::printf("%s: prefill %lld tokens at %.1f tokens/s, decode %lld tokens at %.1f tokens/s\n",
              dt::counted(static_cast<dt::i64>(r.ranks.size()), "rank").c_str(),
              static_cast<long long>(r.prompt_tokens), r.prefill_tokens_per_second(),
              static_cast<long long>(r.decoded_tokens), r.tokens_per_second());
  std::printf("ranks received %lld messages, %lld bytes%s\n", static_cast<long long>(counted.messages),
              static_cast<long long>(counted.bytes), exact ? ", exactly as predicted" : ", NOT as predicted");
}

int generate(Options const& o) {
  dt::Model const model = dt::read_model(o.model);
  dt::LayoutPlan const planned = dt::plan_layout(dt::read_layout(o.layout), model);
  dt::Plan const plan = planned.view();
  if (o.plan && !o.json) std::printf("%s\n", dt::explain(plan).c_str());
  if (o.prompts.empty()) {
    if (o.json)
      std::puts(dt::Json({{"layout", o.layout}, {"plan", dt::Json::parse(dt::to_json(plan))}}).dump().c_str());
    return 0;
  }
  auto tokenizer = open_tokenizer(o);
  dt::GenerateRequest request;
  request.prompts = encode(o, tokenizer);
  request.max_new_tokens = o.max_new_tokens, request.sampling = o.sampling, request.capacity = o.capacity;
  request.all_logits = o.logits;
  if (!o.ignore_eos) request.end_tokens = model.end_tokens;
  bool const one = request.prompts.size() == 1;
  Texts texts(tokenizer ? &*tokenizer : nullptr, request.prompts.size(), o.stop, request.end_tokens, one && !o.json);
  request.on_token = [&](dt::i64 sequence, dt::i32 token) { return texts.push(sequence, token); };
  dt::GenerateResult const result = run(o, model, plan, request);
  auto const& words = texts.finish();
  if (o.json) return print_json(o, plan, request.prompts, result, words), 0;
  for (std::size_t s = 0; s < words.size(); ++s) {
    if (!one) std::printf("[%zu] %s\n", s, words[s].c_str());
    if (tokenizer) continue;
    for (auto const t : result.sequences[s].tokens) std::printf("%d ", t);
    std::puts("");
  }
  std::puts(one ? "\n" : "");
  print_summary(result);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    Options o;
    return finish_output("generate", read_options(count, arguments, o) ? generate(o) : 0);
  } catch (UsageError const& e) {
    std::fprintf(stderr, "generate: %s\nTry generate --help.\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "generate: %s\n", e.what());
    return 1;
  }
}
