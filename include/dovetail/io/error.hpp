// SPDX-License-Identifier: MIT
// The one exception of everything between files and the library, and how its text is put together.
// A message names the file, the tensor or field, the numbers met and what would work; text taken from a file is quoted
// so that hostile names reach a terminal neither long nor with control characters.
#pragma once
#include <dovetail/meta/utf8.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace dovetail {

/// A file, a field or a helper process that is not as it must be.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An IoError whose text is the parts in a row: `throw io_error(file, ": ", count, " tensors")`.
template <class... Parts>
IoError io_error(Parts const&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return IoError(text.str());
}

/// The words for a value of errno.
inline std::string reason(int error) { return error ? std::generic_category().message(error) : "reason unknown"; }

/// Text from a file between single quotes, cut after `longest` bytes; valid UTF-8 whatever the text. Control characters
/// and bytes that belong to no character are shown as '?'.
inline std::string in_quotes(std::string_view text, std::size_t longest = 120) {
  bool const cut = text.size() > longest;
  if (cut) {
    while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xc0) == 0x80) --longest;
    text = text.substr(0, longest);
  }
  std::string shown = "'";
  while (!text.empty()) {
    std::size_t const size = utf8_character(text);
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    bool const control = byte(0) < 0x20 || byte(0) == 0x7f || (size == 2 && byte(0) == 0xc2 && byte(1) < 0xa0);
    if (size && !control) shown += text.substr(0, size);
    else shown += '?';
    text.remove_prefix(size ? size : 1);
  }
  return shown + (cut ? "...'" : "'");
}

}  // namespace dovetail
