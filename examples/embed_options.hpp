// SPDX-License-Identifier: MIT
// Command line of the embed example: every flag, what is legal, and one plain sentence for each that is wrong.
#pragma once
#include "token_ids.hpp"

namespace embed_example {

/// What is embedded: a text, or the ids of one.
struct Sequence {
  std::string text{};  ///< as given: a text, or "101,7592,102"
  bool is_ids = false;
  std::vector<dovetail::i32> ids{};
};

struct Options {
  std::string model{}, layout = "single", device = "cpu";
  std::vector<Sequence> sequences{};
  int threads_per_rank = 0;  ///< 0: the cores, shared among the ranks
  bool json = false;
};

/// Reads the command line. @return false where --help was asked for and printed. @throws flags::UsageError
inline bool read_options(int count, char const* const* arguments, Options& o) {
  CLI::App app{
      "Embeds sentences with an encoder split over ranks on threads, and says how alike they are.\n"
      "  embed --model DIR --layout \"pp2 tp3\" --text \"A cat sits.\" --text \"A kitten rests.\"\n"
      "Sentences are one batch, in the order given."};
  std::vector<std::string> texts, ids;
  app.add_option("--model", o.model, "Model directory: config.json, model.safetensors, tokenizer.json")->required();
  app.add_option("--layout", o.layout,
                 "single, tp3, pp2 tp2, dp2 pp2 tp3, pp2[tp3|tp1], tp2=2:1, ... (docs/layouts.md)");
  auto const* const text =
      app.add_option("--text", texts, "A sentence; the model's tokenizer reads it")->allow_extra_args(false);
  auto const* const id = app.add_option("--ids", ids, "Token ids of one, such as 101,7592,102, taken as they are")
                             ->allow_extra_args(false);
  app.add_option("--device", o.device, "cpu, or reference: doubles on an exact grid, the same bits in every layout");
  flags::add_number(app, "--threads-per-rank", o.threads_per_rank, 0, 1024,
                    "Threads of one rank's products (the cores, shared)");
  app.add_flag("--json", o.json, "Print one JSON object, with the embeddings, in place of the table");
  if (!flags::parse(app, count, arguments)) return false;
  std::size_t next_text = 0, next_ids = 0;
  for (auto const* option : app.parse_order()) {  // the order on the command line is the order of the batch
    if (option == text) o.sequences.push_back({texts[next_text++], false, {}});
    else if (option == id)
      o.sequences.push_back({ids[next_ids], true, flags::read_ids("--ids", ids[next_ids])}), ++next_ids;
  }
  if (o.model.empty())
    throw flags::UsageError("--model is empty: name the directory that holds config.json and model.safetensors");
  if (o.device != "cpu" && o.device != "reference")
    throw flags::UsageError("--device \"" + dovetail::excerpt(o.device) + "\" is not known: cpu or reference");
  if (o.sequences.empty()) throw flags::UsageError("there is no sentence: give --text or --ids, once for each");
  return true;
}

}  // namespace embed_example
