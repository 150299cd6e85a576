// SPDX-License-Identifier: MIT
// The part of a user's text that an error shows: a window around the fault, "..." where more was cut, and what a
// terminal would act on escaped. Whatever the text, what comes out is short, printable and valid UTF-8. Layout texts
// and the lists of command lines are shown with it.
#pragma once
#include <algorithm>
#include <dovetail/meta/utf8.hpp>

namespace dovetail {

/// At most `longest` bytes of `text` around the one at `at`; control characters and bytes that are no UTF-8 as `\x1b`.
inline std::string excerpt(std::string_view text, std::size_t at = 0, std::size_t longest = 60) {
  constexpr char const* hex = "0123456789abcdef";
  auto const inside = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
  std::size_t from = 0, to = text.size();
  if (text.size() > longest) {
    from = (std::min)(at - (std::min)(at, longest / 2), text.size() - longest);
    to = from + longest;
    for (int i = 0; i < 3 && from > 0 && inside(from); ++i) --from;  // whole characters, of at most four bytes
    for (int i = 0; i < 3 && to < text.size() && inside(to); ++i) --to;
  }
  std::string shown = from > 0 ? "..." : "";
  for (std::string_view rest = text.substr(from, to - from); !rest.empty();) {
    std::size_t const size = utf8_character(rest);
    auto const lead = static_cast<unsigned char>(rest[0]);
    bool const control =
        lead < 0x20 || lead == 0x7f || (size == 2 && lead == 0xc2 && static_cast<unsigned char>(rest[1]) < 0xa0);
    std::string_view const part = rest.substr(0, size ? size : 1);
    if (size && !control) shown += part;
    else
      for (char const c : part) {
        shown += "\\x";
        shown += hex[static_cast<unsigned char>(c) >> 4];
        shown += hex[static_cast<unsigned char>(c) & 15];
      }
    rest.remove_prefix(part.size());
  }
  return shown + (to < text.size() ? "..." : "");
}

}  // namespace dovetail
