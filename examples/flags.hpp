// SPDX-License-Identifier: MIT
// What the command lines of the examples have in common: flags that take a number from a range, and one plain sentence
// for each mistake. CLI11 splits the line; what is legal is said here.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <concepts>
#include <cstdio>
#include <dovetail/meta/excerpt.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

namespace flags {

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

/// Adds a flag that takes a number from `least` to `most`, with the words that --help says of it.
template <class Number>
void add_number(CLI::App& app, std::string const& flag, Number& value, Number least, Number most, char const* what) {
  app.add_option_function<std::string>(
      flag, [=, &value](std::string const& text) { value = read_number<Number>(flag, text, least, most); }, what);
}

/// Reads the command line. @return false where --help was asked for and printed. @throws UsageError
inline bool parse(CLI::App& app, int count, char const* const* arguments) {
  app.set_help_flag("--help,-h", "Print this and exit");
  try {
    app.parse(count, arguments);
  } catch (CLI::CallForHelp const&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (CLI::ParseError const& e) {
    throw UsageError(dovetail::excerpt(e.what(), 0, 400));
  }
  return true;
}

}  // namespace flags
