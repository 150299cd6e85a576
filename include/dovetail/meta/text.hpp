// SPDX-License-Identifier: MIT
// Text in constant expressions: `Text` is a literal given as a template argument (names of dims and axes), `Name` a
// short bounded string that plans and configurations carry (role paths such as layers.*.mlp.gate.weight).
#pragma once
#include <cstddef>
#include <dovetail/meta/vector.hpp>

namespace dovetail {

/// A string literal as a template argument.
template <std::size_t N>
struct Text {
  char chars[N]{};
  constexpr Text(char const (&text)[N]) {
    for (std::size_t i = 0; i < N; ++i) chars[i] = text[i];
  }
};

/// True where two texts have the same characters, wherever they lie.
constexpr bool same_text(char const* a, char const* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

inline constexpr i32 max_name = 79;  ///< characters of a name

/// Bounded zero-terminated string of at most max_name characters. An aggregate, written `Name{"mlp"}`, so that it may
/// be part of a template argument on every compiler.
struct Name {
  char chars[max_name + 1]{};

  constexpr i32 size() const {
    i32 n = 0;
    while (chars[n]) ++n;
    return n;
  }
  constexpr bool empty() const { return !chars[0]; }
  constexpr Name& append(char const* text) {
    i32 n = size();
    for (; *text; ++text) {
      if (n == max_name) capacity_exceeded("dovetail: a name is too long; shorten it or raise max_name");
      chars[n++] = *text;
    }
    return *this;
  }
  friend constexpr bool operator==(Name const& a, Name const& b) { return same_text(a.chars, b.chars); }
};

/// A Name of these characters. @throws CapacityError where they are too many
constexpr Name name(char const* text) { return Name{}.append(text); }

/// Printable ASCII: what every name consists of.
constexpr bool is_printable(char c) { return c >= ' ' && c <= '~'; }
/// At least one character, all printable.
constexpr bool is_legal_name(char const* text) {
  char const* c = text;
  while (is_printable(*c)) ++c;
  return c != text && !*c;
}

/// a.b, or the one that is not empty.
constexpr Name join(Name a, char const* b) {
  if (!a.empty() && *b) a.append(".");
  return a.append(b);
}

/// A role path while it grows: it knows its length, and its hash tells two apart without a look at their characters.
struct Path {
  Name name{};
  i32 length = 0;
  bool full = false;  ///< a longer path was cut short
  bool odd = false;   ///< it has a character that is not printable
  std::uint64_t hash = 14695981039346656037ull;

  constexpr Path& append(char c) {
    full = full || length == max_name;
    odd = odd || !is_printable(c);
    if (full) return *this;
    name.chars[length++] = c;
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return *this;
  }
  /// This path, then a dot, then `role`; no dot where either is empty.
  constexpr Path under(char const* role) const {
    Path p = *this;
    if (!*role) return p;
    if (p.length) p.append('.');
    for (; *role; ++role) p.append(*role);
    return p;
  }
};

/// 64-bit FNV-1a over characters and numbers: the hash of a plan, the same on every compiler and machine.
struct Hash {
  std::uint64_t state = 14695981039346656037ull;
  constexpr void add(char c) { state = (state ^ static_cast<unsigned char>(c)) * 1099511628211ull; }
  constexpr void add(char const* text) {
    for (; *text; ++text) add(*text);
    add('\0');
  }
  constexpr void add(i64 n) {
    auto bits = static_cast<std::uint64_t>(n);
    for (int i = 0; i < 8; ++i, bits >>= 8) add(static_cast<char>(bits & 0xff));
  }
};

}  // namespace dovetail
