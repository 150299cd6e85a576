// SPDX-License-Identifier: MIT
// Command line of the plan example: every flag, what is legal, and one plain sentence for each that is wrong.
#pragma once
#include "flags.hpp"

#include <dovetail/plan/storage_bytes.hpp>
#include <vector>

namespace plan_example {

inline constexpr dovetail::i64 most_sequences = 1024;

struct Options {
  std::string config{}, model{};
  std::string layout{};
  std::vector<std::string> compare{};
  std::string format = "text", dtype = "f32";
  dovetail::i64 sequences = 0;  ///< 0: one for each replica of the layout that has most
  dovetail::i64 context = 1024, tokens = 512;

  dovetail::StorageBytes bytes() const {
    return dtype == "f32" ? dovetail::f32_storage : dovetail::StorageBytes{{2, 2, 2, 4, 16, 8}};
  }
};

/// The value of a flag that takes one of a few words.
inline void check_word(std::string const& flag, std::string const& value, std::vector<std::string> const& legal) {
  std::string all;
  for (auto const& word : legal) {
    if (value == word) return;
    all += (all.empty() ? "" : &word == &legal.back() ? " or " : ", ") + word;
  }
  throw flags::UsageError(flag + " \"" + dovetail::excerpt(value) + "\" is not known: " + all);
}

/// Reads the command line. @return false where --help was asked for and printed. @throws flags::UsageError
inline bool read_options(int count, char const* const* arguments, Options& o) {
  using dovetail::i64;
  CLI::App app{
      "Says what a layout makes each device store, compute and exchange, from a configuration alone, without weights.\n"
      "  plan --model DIR --layout \"pp2 tp3\"\n"
      "  plan --config config.json --compare \"tp4\" \"pp4\" \"dp4\" --format svg > layouts.svg"};
  app.add_option("--config", o.config, "A configuration file, such as config.json");
  app.add_option("--model", o.model, "A model directory that holds config.json; weights are not read");
  app.add_option("--layout", o.layout,
                 "One layout: single, tp3, pp2 tp2, pp2[tp3|tp1], tp2=2:1, ... (docs/layouts.md)");
  app.add_option("--compare", o.compare, "Several layouts side by side");
  app.add_option("--format", o.format, "text, json, svg (a picture), or dot (one layout, as a graph) (text)");
  app.add_option("--dtype", o.dtype, "What weights, caches and activations are kept in: f32, f16 or bf16 (f32)");
  flags::add_number(app, "--sequences", o.sequences, i64{1}, most_sequences,
                    "Requests served together (one for each replica of the layout with most)");
  flags::add_number(app, "--context", o.context, i64{1}, i64{1} << 30, "Tokens a request that the caches hold (1024)");
  flags::add_number(app, "--tokens", o.tokens, i64{1}, i64{1} << 30, "Tokens a request that a prefill computes (512)");
  if (!flags::parse(app, count, arguments)) return false;
  if (o.config.empty() == o.model.empty())
    throw flags::UsageError(o.model.empty() ? "there is no model: give --config FILE or --model DIR"
                                            : "--config and --model both name a model: give one of them");
  bool const one = app.count("--layout") > 0, several = app.count("--compare") > 0;
  if (one == several)
    throw flags::UsageError(one ? "--layout and --compare both name layouts: give one of them"
                                : "there is no layout: give --layout TEXT, or --compare TEXT TEXT ...");
  check_word("--format", o.format, {"text", "json", "dot", "svg"});
  check_word("--dtype", o.dtype, {"f32", "f16", "bf16"});
  if (several && o.format == "dot")
    throw flags::UsageError("--format dot draws the graph of one plan: give --layout in place of --compare");
  if (o.compare.size() > 16)
    throw flags::UsageError("--compare names " + std::to_string(o.compare.size()) +
                            " layouts: at most 16 are compared");
  if (o.tokens > o.context)
    throw flags::UsageError("--tokens is " + std::to_string(o.tokens) + ", above --context (" +
                            std::to_string(o.context) + "): the caches must hold what a prefill computes");
  return true;
}

}  // namespace plan_example
