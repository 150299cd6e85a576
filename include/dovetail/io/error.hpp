// SPDX-License-Identifier: MIT
// The one exception of everything between files and the library, and how its text is put together.
// A message names the file, the tensor or field, the numbers met and what would work; text taken from a file is quoted
// so that hostile names reach a terminal neither long nor with control characters.
#pragma once
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

/// Text from a file between single quotes: control characters shown as '?', cut after `longest` bytes, whole UTF-8.
inline std::string in_quotes(std::string_view text, std::size_t longest = 120) {
  bool const cut = text.size() > longest;
  if (cut) {
    while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xc0) == 0x80) --longest;
    text = text.substr(0, longest);
  }
  std::string shown = "'";
  for (char c : text) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return shown + (cut ? "...'" : "'");
}

}  // namespace dovetail
