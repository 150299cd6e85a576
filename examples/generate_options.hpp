// SPDX-License-Identifier: MIT
// Command line of the generate example: every flag, what is legal, and one plain sentence for each that is wrong.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <dovetail/meta/excerpt.hpp>
#include <dovetail/run/sampling.hpp>
#include <limits>
#include <sstream>
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

/// The value of a flag as a number from `least` to `most`. CLI11 itself takes what is too large for the largest.
template <class Number>
Number read_number(std::string const& flag, std::string const& text, Number least, Number most) {
  Number value{};
  char const* const end = text.data() + text.size();
  auto const [next, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && next == end && value >= least && value <= most) return value;
  bool const plain = !text.empty() && text.find_first_not_of("0123456789+-.") == std::string::npos;
  std::ostringstream what;
  what << flag << " is " << (plain ? dovetail::excerpt(text) : '"' + dovetail::excerpt(text) + '"') << ": a "
       << (std::integral<Number> ? "whole number" : "number") << " from " << least << " to " << most << " is expected";
  throw UsageError(what.str());
}

/// "1,2,3" as token ids.
inline std::vector<dovetail::i32> read_ids(std::string const& text) {
  std::vector<dovetail::i32> ids;
  char const *at = text.data(), *const end = at + text.size();
  auto const refuse = [&](char const* what, char const* remedy) {
    auto const offset = static_cast<std::size_t>(at - text.data());
    throw UsageError("--prompt-ids \"" + dovetail::excerpt(text, offset) + "\": " + what + " at character " +
                     std::to_string(offset + 1) + remedy);
  };
  while (true) {
    while (at != end && *at == ' ') ++at;
    dovetail::i32 id = 0;
    auto const [next, error] = std::from_chars(at, end, id);
    if (error == std::errc::result_out_of_range)
      refuse("the number", " does not fit: token ids are 0 to 2147483647, and below the model's vocab_size");
    if (error != std::errc()) refuse("a token id is expected", "; write ids as 1,2,3");
    ids.push_back(id);
    at = next;
    while (at != end && *at == ' ') ++at;
    if (at == end) return ids;
    if (*at != ',') refuse("a comma is expected", "; write ids as 1,2,3");
    ++at;
  }
}

/// Reads the command line. @return false where --help was asked for and printed. @throws UsageError
inline bool read_options(int count, char const* const* arguments, Options& o) {
  CLI::App app{
      "Generates text with a model split over ranks on threads.\n"
      "  generate --model DIR --layout \"pp2 tp3\" --chat \"Why is the sky blue?\"\n"
      "Prompts may be repeated and mixed: together they are one batch."};
  std::vector<std::string> texts, chats, ids;
  auto const number = [&](std::string const& flag, auto& value, auto least, auto most, char const* what) {
    using Number = std::remove_reference_t<decltype(value)>;
    app.add_option_function<std::string>(
        flag,
        [=, &value](std::string const& text) {
          value = read_number<Number>(flag, text, static_cast<Number>(least), static_cast<Number>(most));
        },
        what);
  };
  constexpr auto most_tokens = dovetail::i64{1} << 40;
  app.set_help_flag("--help,-h", "Print this and exit");
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
  try {
    app.parse(count, arguments);
  } catch (CLI::CallForHelp const&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (CLI::ParseError const& e) {
    throw UsageError(dovetail::excerpt(e.what(), 0, 400));
  }
  std::size_t next[3] = {};
  for (auto const* option : app.parse_order()) {  // the order on the command line is the order of the batch
    if (option == text) o.prompts.push_back({Prompt::Kind::text, texts[next[0]++], {}});
    else if (option == chat) o.prompts.push_back({Prompt::Kind::chat, chats[next[1]++], {}});
    else if (option == id) o.prompts.push_back({Prompt::Kind::ids, ids[next[2]], read_ids(ids[next[2]])}), ++next[2];
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
