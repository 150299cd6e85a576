// SPDX-License-Identifier: MIT
// What must hold whatever is read, and of every message about it. The readers in this folder take any bytes, return the
// one message that refuses them ("" where they are accepted), and throw InvariantBroken where the library does not keep
// its word. The fuzz targets feed them drawn bytes; tests/broken feeds them files of known faults.
#pragma once
#include <dovetail/meta/excerpt.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

struct InvariantBroken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void must(bool holds, std::string const& what) {
  if (!holds) throw InvariantBroken(what);
}

/// A message for a person: there, short, UTF-8 without control characters but line ends.
inline std::string checked_message(std::string message) {
  must(!message.empty(), "a refusal says nothing");
  std::string one_line = message;
  for (char& c : one_line)
    if (c == '\n') c = ' ';
  if (dovetail::excerpt(one_line, 0, 5000) != one_line)  // it escapes what is not UTF-8 or acts on a terminal
    throw InvariantBroken("a message that no terminal should get: " + dovetail::excerpt(message, 0, 400));
  return message;
}

/// Parts of `text` between separators; one at least.
inline std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at; (at = text.find(separator)) != text.npos; text.remove_prefix(at + separator.size()))
    parts.emplace_back(text.substr(0, at));
  parts.emplace_back(text);
  return parts;
}

}  // namespace fuzz
