// SPDX-License-Identifier: MIT
// Embeds sentences with an encoder split over ranks on threads, and shows how alike they are: read the model, plan the
// layout, start a world, embed all sentences as one ragged batch. `--json` prints the embeddings for programs.
#include "embed_options.hpp"
#include "finish_output.hpp"

#include <dovetail/comm/threads.hpp>
#include <dovetail/device/cpu.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/io/tokenizer.hpp>
#include <dovetail/plan/json.hpp>
#include <dovetail/run/checkpoint_source.hpp>
#include <dovetail/run/embed.hpp>
#include <dovetail/run/model_config.hpp>
#include <thread>

#ifndef DOVETAIL_SCRIPTS_DIR
#define DOVETAIL_SCRIPTS_DIR "scripts"
#endif
#ifndef DOVETAIL_PYTHON
#define DOVETAIL_PYTHON "python3"
#endif

using namespace embed_example;
namespace dt = dovetail;

namespace {

using Ids = std::vector<std::vector<dt::i32>>;
using Matrix = std::vector<std::vector<double>>;

/// Token ids of all sentences, with the tokens that the model wants around a text.
Ids encode(Options const& o) {
  Ids all;
  std::optional<dt::Tokenizer> tokenizer;
  for (auto const& s : o.sequences) {
    if (!s.is_ids && !tokenizer)
      tokenizer.emplace(std::filesystem::path(o.model), DOVETAIL_PYTHON,
                        std::filesystem::path(DOVETAIL_SCRIPTS_DIR) / "tokenizer_server.py");
    all.push_back(s.is_ids ? s.ids : tokenizer->encode(s.text));
  }
  return all;
}

dt::EmbedResult run(Options const& o, dt::Model const& model, dt::Plan const& plan, Ids const& ids) {
  dt::Checkpoint const checkpoint{std::filesystem::path(o.model)};
  dt::CheckpointSource const source(checkpoint, model, plan);
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  int const cores = static_cast<int>((std::max)(1u, std::thread::hardware_concurrency()));
  int const threads = o.threads_per_rank ? o.threads_per_rank : (std::max)(1, cores / world.size());
  if (o.device == "reference")
    return dt::embed_sequences(
        world, plan, model, ids, [](int) { return dt::Reference(); }, source);
  return dt::embed_sequences(
      world, plan, model, ids, [&](int) { return dt::Cpu({.threads = threads}); }, source);
}

/// Cosines of all pairs.
Matrix similarities(Matrix const& embeddings) {
  auto const product = [](std::vector<double> const& a, std::vector<double> const& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  Matrix all;
  for (auto const& a : embeddings) {
    auto& row = all.emplace_back();
    for (auto const& b : embeddings) {
      double const lengths = std::sqrt(product(a, a) * product(b, b));
      row.push_back(lengths > 0 ? product(a, b) / lengths : 0);
    }
  }
  return all;
}

/// Predicted and counted, of all ranks together.
struct Received {
  dt::Cost predicted{};
  dt::Traffic counted{};
  bool exact = true;
  explicit Received(std::vector<dt::RankReport> const& ranks) {
    for (auto const& k : ranks) {
      predicted += k.predicted, counted += k.counted.total();
      exact = exact && k.counted.total() == k.predicted;
    }
  }
};

dt::Json json_of(dt::Cost const& c) { return {{"messages", c.messages}, {"bytes", c.bytes}}; }
dt::Json json_of(dt::Traffic const& t) { return {{"messages", t.messages}, {"bytes", t.bytes}}; }

void print_json(Options const& o, dt::Plan const& plan, Ids const& ids, dt::EmbedResult const& r) {
  dt::Json ranks = dt::Json::array();
  for (auto const& k : r.ranks)
    ranks.push_back({{"predicted", json_of(k.predicted)},
                     {"counted", json_of(k.counted.total())},
                     {"weight_bytes", k.weight_bytes},
                     {"packed_bytes", k.packed_bytes},
                     {"arena_bytes", k.arena_bytes}});
  Received const received(r.ranks);
  dt::Json const out = {
      {"layout", o.layout},
      {"device", o.device},
      {"ids", ids},
      {"embeddings", r.embeddings},
      {"similarities", similarities(r.embeddings)},
      {"tokens", r.tokens},
      {"seconds", r.seconds},
      {"traffic", {{"predicted", json_of(received.predicted)}, {"counted", json_of(received.counted)}}},
      {"ranks", ranks},
      {"plan", dt::Json::parse(dt::to_json(plan))}};
  std::puts(out.dump(-1, ' ', false, dt::Json::error_handler_t::replace).c_str());
}

void print_table(Options const& o, dt::EmbedResult const& r) {
  std::printf("cosine of each pair of sentences\n\n      ");
  for (std::size_t s = 0; s < r.embeddings.size(); ++s) std::printf("%7s", ("[" + std::to_string(s) + "]").c_str());
  std::puts("");
  Matrix const all = similarities(r.embeddings);
  for (std::size_t s = 0; s < all.size(); ++s) {
    std::printf("%6s", ("[" + std::to_string(s) + "]").c_str());
    for (double const v : all[s]) std::printf("%7.3f", v);
    auto const& given = o.sequences[s];
    std::printf(given.is_ids ? "  %s\n" : "  \"%s\"\n", dt::excerpt(given.text).c_str());
  }
  Received const received(r.ranks);
  std::printf("\n%s: %s of %s in %.3f s\n", dt::counted(static_cast<dt::i64>(r.ranks.size()), "rank").c_str(),
              dt::counted(r.tokens, "token").c_str(),
              dt::counted(static_cast<dt::i64>(r.embeddings.size()), "sentence").c_str(), r.seconds);
  std::printf("ranks received %s, %s%s\n", dt::counted(received.counted.messages, "message").c_str(),
              dt::counted(received.counted.bytes, "byte").c_str(),
              received.exact ? ", exactly as predicted" : ", NOT as predicted");
}

int embed(Options const& o) {
  dt::Model const model = dt::read_model(o.model);
  dt::LayoutPlan const planned = dt::plan_layout(dt::read_layout(o.layout), model);
  dt::Plan const plan = planned.view();
  dt::embedding_size(plan, model);  // before any text is read: is it an encoder?
  Ids const ids = encode(o);
  dt::EmbedResult const result = run(o, model, plan, ids);
  if (o.json) print_json(o, plan, ids, result);
  else print_table(o, result);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    Options o;
    return finish_output("embed", read_options(count, arguments, o) ? embed(o) : 0);
  } catch (flags::UsageError const& e) {
    std::fprintf(stderr, "embed: %s\nTry embed --help.\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "embed: %s\n", e.what());
    return 1;
  }
}
