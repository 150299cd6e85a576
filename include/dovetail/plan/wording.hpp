// SPDX-License-Identifier: MIT
// The one text routine: sentences, explanations, JSON and DOT are all put together with it, so a number or a name
// looks the same in each. Independent of locale; it reads zero-terminated text only.
#pragma once
#include <concepts>
#include <dovetail/meta/counted.hpp>
#include <dovetail/meta/text.hpp>
#include <string>

namespace dovetail {

namespace wording {

inline void append(std::string& text, char const* part) { text += part; }
inline void append(std::string& text, std::string const& part) { text += part; }
inline void append(std::string& text, Name const& part) { text += part.chars; }
inline void append(std::string& text, char part) { text += part; }
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, bool>) void append(std::string& text, T part) {
  text += std::to_string(part);
}

/// 1234567 -> "1.2": a tenth is enough for a person, and integers round the same everywhere.
inline std::string tenths(i64 amount, i64 unit) {
  i64 const n = (10 * (amount / unit)) + (10 * (amount % unit) + unit / 2) / unit;
  return std::to_string(n / 10) + "." + std::to_string(n % 10);
}

inline bool printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }

}  // namespace wording

/// All parts after one another: text, names and integers.
template <class... Parts>
std::string words(Parts const&... parts) {
  std::string text;
  (wording::append(text, parts), ...);
  return text;
}

/// Bytes as a person reads them: "12 B", "4.0 kB", "89.7 MB", "1.6 GB", in powers of ten.
inline std::string readable_bytes(i64 bytes) {
  if (bytes < 1000) return words(bytes, " B");
  if (bytes < 1000'000) return wording::tenths(bytes, 1000) + " kB";
  if (bytes < 1000'000'000) return wording::tenths(bytes, 1000'000) + " MB";
  return wording::tenths(bytes, 1000'000'000) + " GB";
}

/// `text` in double quotes, with what JSON and DOT do not take as it is escaped. Text that is not UTF-8 stays as it is.
inline std::string in_double_quotes(char const* text) {
  constexpr char const* hex = "0123456789abcdef";
  std::string out = "\"";
  for (; *text; ++text) {
    auto const c = static_cast<unsigned char>(*text);
    if (*text == '"' || *text == '\\') out += '\\';
    if (wording::printable(*text)) out += *text;
    else out += words("\\u00", hex[c >> 4], hex[c & 15]);
  }
  return out += '"';
}
inline std::string in_double_quotes(std::string const& text) { return in_double_quotes(text.c_str()); }

}  // namespace dovetail
