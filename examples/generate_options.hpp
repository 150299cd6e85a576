// SPDX-License-Identifier: MIT
// Command line of the generate example: every flag, what is legal, and one plain sentence for each that is wrong.
#pragma once
#include "token_ids.hpp"

#include <dovetail/run/sampling.hpp>
#include <limits>
#include <vector>

namespace generate_example {

struct Prompt {
  enum class Kind { text, chat, ids } kind = Kind::text;
  std::string words{};
  std::vector<dovetail::i32> ids{};
};

struct Options {
  std::string model{}, layout = "single", device = "cpu";
  std::vector<Prompt> prompts{};
  dovetail::i64 max_new_tokens = 64, capacity = 0;
  int threads_per_rank = 0;  ///< 0: the cores, shared among the ranks
  bool ignore_eos = false, json = false, logits = false, plan = false, pin = false;
  std::vector<std::string> stop{};
  dovetail::Sampling sampling{};
};

using flags::UsageError;

/// Reads the command line. @return false where --help was asked for and printed. @throws UsageError
inline bool read_options(int count, char const* const* arguments, Options& o) {
  CLI::App app{
      "Generates text with a model split over ranks on threads.\n"
      "  generate --model DIR --layout \"pp2 tp3\" --chat \"Why is the sky blue?\"\n"
      "Prompts may be repeated and mixed: together they are one batch."};
  std::vector<std::string> texts, chats, ids;
  auto const number = [&](char const* flag, auto& value, auto least, auto most, char const* what) {
    using Number = std::remove_reference_t<decltype(value)>;
    flags::add_number(app, flag, value, static_cast<Number>(least), static_cast<Number>(most), what);
  };
  constexpr auto most_tokens = dovetail::i64{1} << 40;
  app.add_option("--model", o.model, "Model directory: config.json, model.safetensors, tokenizer.json")->required();
  app.add_option("--layout", o.layout,
                 "single, tp3, pp2 tp2, dp2 pp2 tp3, pp2[tp3|tp1], tp2=2:1, ... (docs/layouts.md)");
  auto const* const text = app.add_option("--prompt", texts, "Text to continue")->allow_extra_args(false);
  auto const* const chat =
      app.add_option("--chat", chats, "Text to answer, in the model's chat template")->allow_extra_args(false);
  auto const* const id =
      app.add_option("--prompt-ids", ids, "Token ids to continue, such as 1,2,3")->allow_extra_args(false);
  number("--max-new-tokens", o.max_new_tokens, 0, most_tokens, "New tokens a prompt, at most (64)");
  app.add_flag("--ignore-eos", o.ignore_eos, "Go on after an end token");
  app.add_option("--stop", o.stop, "End a text before this string (repeatable)")->allow_extra_args(false);
  number("--capacity", o.capacity, 0, most_tokens, "Tokens a sequence that the caches hold (what the request needs)");
  number("--threads-per-rank", o.threads_per_rank, 0, 1024, "Threads of one rank's products (the cores, shared)");
  app.add_flag("--pin", o.pin, "Keep each rank's thread on one core");
  app.add_option("--device", o.device, "cpu, or reference: doubles on an exact grid, the same bits in every layout");
  number("--temperature", o.sampling.temperature, 0, 1e30, "0 is greedy (0)");
  number("--top-k", o.sampling.top_k, 0, (std::numeric_limits<dovetail::i32>::max)(),
         "Sample among the k best; 0 is all (0)");
  number("--top-p", o.sampling.top_p, 1e-9, 1, "Sample among the best that make up this probability (1)");
  number("--seed", o.sampling.seed, 0, (std::numeric_limits<std::uint64_t>::max)(), "Of the sampling (0)");
  app.add_flag("--json", o.json, "Print one JSON object in place of text");
  app.add_flag("--logits", o.logits, "With --json: logits of every prompt position");
  app.add_flag("--plan", o.plan, "Print the plan first; without a prompt, print it alone");
  if (!flags::parse(app, count, arguments)) return false;
  std::size_t next[3] = {};
  for (auto const* option : app.parse_order()) {  // the order on the command line is the order of the batch
    if (option == text) o.prompts.push_back({Prompt::Kind::text, texts[next[0]++], {}});
    else if (option == chat) o.prompts.push_back({Prompt::Kind::chat, chats[next[1]++], {}});
    else if (option == id)
      o.prompts.push_back({Prompt::Kind::ids, ids[next[2]], flags::read_ids("--prompt-ids", ids[next[2]])}), ++next[2];
  }
  if (o.model.empty())
    throw UsageError("--model is empty: name the directory that holds config.json and model.safetensors");
  if (o.device != "cpu" && o.device != "reference")
    throw UsageError("--device \"" + dovetail::excerpt(o.device) + "\" is not known: cpu or reference");
  if (o.logits && !o.json) throw UsageError("--logits needs --json: only the JSON carries them");
  for (auto const& s : o.stop)
    if (s.empty()) throw UsageError("--stop \"\" would end every text at once: give it a string");
  if (o.prompts.empty() && !o.plan)
    throw UsageError("there is no prompt: give --prompt, --chat or --prompt-ids (or --plan alone)");
  try {
    o.sampling.check();
  } catch (std::invalid_argument const& e) {
    throw UsageError(e.what());
  }
  return true;
}

}  // namespace generate_example
