// SPDX-License-Identifier: MIT
// Writes JSON text (RFC 8259) as it is told, with commas and escapes in place; whatever bytes a name holds, the text is
// valid UTF-8. It does not check that what it is told is complete; plan/json.hpp, which uses it, is tested against a
// parser.
#pragma once
#include <charconv>
#include <cmath>
#include <dovetail/meta/utf8.hpp>
#include <dovetail/plan/wording.hpp>

namespace dovetail {

/// JSON text that is written piece by piece; objects and lists are opened and closed by the caller.
class JsonWriter {
 public:
  std::string const& text() const { return text_; }

  void value(char const* v) { element() += in_double_quotes(as_utf8(v)); }
  void value(std::string const& v) { value(v.c_str()); }
  void value(Name const& v) { value(v.chars); }
  void value(bool v) { element() += v ? "true" : "false"; }
  void value(std::integral auto v) { element() += std::to_string(v); }
  /// The shortest digits that read back as the same number; JSON has no other numbers than finite ones: null.
  void value(double v) {
    char digits[32];
    std::string& out = element();
    if (!std::isfinite(v)) out += "null";
    else out.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
  }

  /// `fields()` writes the fields.
  void object(auto const& fields) { nested('{', '}', fields); }
  /// `elements()` writes the elements.
  void array(auto const& elements) { nested('[', ']', elements); }
  /// An array with one element a line: `write(element)` for each of `all`.
  void lines(auto const& all, auto const& write) {
    array([&] {
      for (auto const& one : all) {
        if (has_elements_) text_ += ',';
        text_ += "\n  ";
        has_elements_ = false;
        write(one);
      }
    });
  }

  /// The name of the field that comes next.
  JsonWriter& key(char const* name) {
    element() += in_double_quotes(as_utf8(name)) + ":";
    has_elements_ = false;
    return *this;
  }
  void field(char const* name, auto const& v) { key(name).value(v); }
  /// The same on a line of its own.
  JsonWriter& line(char const* name) {
    element() += '\n';
    has_elements_ = false;
    return key(name);
  }

 private:
  std::string text_;
  bool has_elements_ = false;  ///< something stands before, so a comma is due

  std::string& element() {
    if (has_elements_) text_ += ',';
    has_elements_ = true;
    return text_;
  }
  void nested(char open, char close, auto const& inside) {
    element() += open;
    has_elements_ = false;
    inside();
    text_ += close;
    has_elements_ = true;
  }
};

}  // namespace dovetail
