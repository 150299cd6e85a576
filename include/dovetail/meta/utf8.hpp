// SPDX-License-Identifier: MIT
// Where text is UTF-8 and where it is not, by the rules of Unicode: no overlong forms, no surrogates, at most U+10FFFF.
// Text from a command line is checked with this before it is handed on; JSON is written by way of `as_utf8`, and
// StreamDecoder counts replacement characters.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace dovetail {

/// U+FFFD as UTF-8: what decoders write for bytes that are not a character, or not yet.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// Bytes of the character at the start of `text`, 1 to 4; 0 where there is none that is whole and valid.
constexpr std::size_t utf8_character(std::string_view text) {
  auto const byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned const lead = byte(0);
  if (text.empty()) return 0;
  if (lead < 0x80) return 1;
  std::size_t const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  unsigned const lowest = lead == 0xe0 ? 0xa0u : lead == 0xf0 ? 0x90u : 0x80u;
  unsigned const highest = lead == 0xed ? 0x9fu : lead == 0xf4 ? 0x8fu : 0xbfu;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (std::size_t i = 2; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return size;
}

/// Offset of the first byte that is not part of a valid character; the size of the text where all is valid.
constexpr std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (std::size_t const size = utf8_character(text.substr(at))) at += size;
  return at;
}

/// `text` with U+FFFD in place of each byte that is not part of a valid character.
inline std::string as_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    std::size_t const size = utf8_character(text);
    valid += size ? text.substr(0, size) : replacement_character;
    text.remove_prefix(size ? size : 1);
  }
  return valid;
}

}  // namespace dovetail
