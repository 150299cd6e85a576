// SPDX-License-Identifier: MIT
// Token ids on a command line, "1,2,3", with the place of the fault where they are something else.
#pragma once
#include "flags.hpp"

#include <dovetail/meta/integer.hpp>
#include <vector>

namespace flags {

/// "1,2,3" as token ids. @param flag  for errors @throws UsageError
inline std::vector<dovetail::i32> read_ids(char const* flag, std::string const& text) {
  std::vector<dovetail::i32> ids;
  char const *at = text.data(), *const end = at + text.size();
  auto const refuse = [&](char const* what, char const* remedy) {
    auto const offset = static_cast<std::size_t>(at - text.data());
    throw UsageError(std::string(flag) + " \"" + dovetail::excerpt(text, offset) + "\": " + what + " at character " +
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

}  // namespace flags
