// SPDX-License-Identifier: MIT
// Command line of the generate example: every flag, what is legal, and one plain sentence for each that is wrong.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <dovetail/run/sampling.hpp>
#include <stdexcept>
#include <string>
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

/// A mistake on the command line.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "1,2,3" as token ids.
inline std::vector<dovetail::i32> read_ids(std::string const& text) {
  std::vector<dovetail::i32> ids;
  char const *at = text.data(), *const end = at + text.size();
  while (true) {
    while (at != end && *at == ' ') ++at;
    dovetail::i32 id = 0;
    auto const [next, error] = std::from_chars(at, end, id);
    if (error == std::errc::result_out_of_range)
      throw UsageError("--prompt-ids \"" + text + "\": a number does not fit 32 bits");
    if (error != std::errc())
      throw UsageError("--prompt-ids \"" + text + "\": a token id is expected at character " +
                       std::to_string(at - text.data() + 1) + "; write ids as 1,2,3");
    ids.push_back(id);
    at = next;
    while (at != end && *at == ' ') ++at;
    if (at == end) return ids;
    if (*at++ != ',')
      throw UsageError("--prompt-ids \"" + text + "\": a comma is expected at character " +
                       std::to_string(at - text.data()) + "; write ids as 1,2,3");
  }
}

/// Reads the command line. @return false where --help was asked for and printed. @throws UsageError
inline bool read_options(int count, char const* const* arguments, Options& o) {
  CLI::App app{
      "Generates text with a model split over ranks on threads.\n"
      "  generate --model DIR --layout \"pp2 tp3\" --chat \"Why is the sky blue?\"\n"
      "Prompts may be repeated and mixed: together they are one batch."};
  std::vector<std::string> texts, chats, ids;
  app.set_help_flag("--help,-h", "Print this and exit");
  app.add_option("--model", o.model, "Model directory: config.json, model.safetensors, tokenizer.json")->required();
  app.add_option("--layout", o.layout,
                 "single, tp3, pp2 tp2, dp2 pp2 tp3, pp2[tp3|tp1], tp2=2:1, ... (docs/layouts.md)");
  auto const* const text = app.add_option("--prompt", texts, "Text to continue")->allow_extra_args(false);
  auto const* const chat =
      app.add_option("--chat", chats, "Text to answer, in the model's chat template")->allow_extra_args(false);
  auto const* const id =
      app.add_option("--prompt-ids", ids, "Token ids to continue, such as 1,2,3")->allow_extra_args(false);
  app.add_option("--max-new-tokens", o.max_new_tokens, "New tokens a prompt, at most (64)");
  app.add_flag("--ignore-eos", o.ignore_eos, "Go on after an end token");
  app.add_option("--stop", o.stop, "End a text before this string (repeatable)")->allow_extra_args(false);
  app.add_option("--capacity", o.capacity, "Tokens a sequence that the caches hold (what the request needs)");
  app.add_option("--threads-per-rank", o.threads_per_rank, "Threads of one rank's products (the cores, shared)");
  app.add_flag("--pin", o.pin, "Keep each rank's thread on one core");
  app.add_option("--device", o.device, "cpu, or reference: doubles on an exact grid, the same bits in every layout");
  app.add_option("--temperature", o.sampling.temperature, "0 is greedy (0)");
  app.add_option("--top-k", o.sampling.top_k, "Sample among the k best; 0 is all (0)");
  app.add_option("--top-p", o.sampling.top_p, "Sample among the best that make up this probability (1)");
  app.add_option("--seed", o.sampling.seed, "Of the sampling (0)");
  app.add_flag("--json", o.json, "Print one JSON object in place of text");
  app.add_flag("--logits", o.logits, "With --json: logits of every prompt position");
  app.add_flag("--plan", o.plan, "Print the plan first; without a prompt, print it alone");
  try {
    app.parse(count, arguments);
  } catch (CLI::CallForHelp const&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (CLI::ParseError const& e) {
    throw UsageError(e.what());
  }
  std::size_t next[3] = {};
  for (auto const* option : app.parse_order()) {  // the order on the command line is the order of the batch
    if (option == text) o.prompts.push_back({Prompt::Kind::text, texts[next[0]++], {}});
    else if (option == chat) o.prompts.push_back({Prompt::Kind::chat, chats[next[1]++], {}});
    else if (option == id) o.prompts.push_back({Prompt::Kind::ids, ids[next[2]], read_ids(ids[next[2]])}), ++next[2];
  }
  if (o.device != "cpu" && o.device != "reference")
    throw UsageError("--device \"" + o.device + "\" is not known: cpu or reference");
  if (o.max_new_tokens < 0) throw UsageError("--max-new-tokens is " + std::to_string(o.max_new_tokens) + ": 0 or more");
  if (o.capacity < 0)
    throw UsageError("--capacity is " + std::to_string(o.capacity) + ": 1 or more, or 0 for what is needed");
  if (o.threads_per_rank < 0 || o.threads_per_rank > 1024)
    throw UsageError("--threads-per-rank is " + std::to_string(o.threads_per_rank) +
                     ": 1 to 1024, or 0 for a share of the cores");
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
