// SPDX-License-Identifier: MIT
// Writes a picture as SVG text: rectangles, lines and words at whole pixels, in the order that they are told, each with
// a class that the style sheet at the top gives its look. Any bytes may be in a word: what comes out is well-formed XML
// in UTF-8. It needs neither a library nor a font of its own.
#pragma once
#include <dovetail/meta/excerpt.hpp>
#include <dovetail/plan/wording.hpp>

namespace dovetail {

/// Text as it stands in XML, in an attribute or between tags.
inline std::string xml_text(std::string const& text) {
  std::string out;
  for (char c : excerpt(text, 0, text.size())) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

/// A picture while it is told; `text()` is the whole of it.
class SvgWriter {
 public:
  /// A rectangle; one without an area is left out.
  void rectangle(char const* look, i64 x, i64 y, i64 width, i64 height, i64 radius = 2) {
    if (width <= 0 || height <= 0) return;
    body_ += words("<rect class=\"", look, "\" x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", height,
                   "\" rx=\"", radius, "\"/>\n");
  }
  /// Words whose base line is at y; the look says whether they begin, end or are centred at x.
  void write(char const* look, i64 x, i64 y, std::string const& text) {
    if (text.empty()) return;
    body_ += words("<text class=\"", look, "\" x=\"", x, "\" y=\"", y, "\">", xml_text(text), "</text>\n");
  }
  /// A path in SVG's own notation, such as "M0 0 H10".
  void path(char const* look, std::string const& way) {
    body_ += words("<path class=\"", look, "\" d=\"", way, "\"/>\n");
  }
  /// A filled circle around (x, y).
  void dot(char const* look, i64 x, i64 y, i64 radius) {
    body_ += words("<circle class=\"", look, "\" cx=\"", x, "\" cy=\"", y, "\" r=\"", radius, "\"/>\n");
  }
  /// What is told in `inside()` is one group, with a title that viewers show where the pointer rests.
  void group(char const* look, std::string const& title, auto const& inside) {
    body_ += words("<g class=\"", look, "\">\n<title>", xml_text(title), "</title>\n");
    inside();
    body_ += "</g>\n";
  }

  /// The whole picture. @param top  style sheet and definitions, as XML
  std::string text(i64 width, i64 height, std::string const& title, char const* top) const {
    return words("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
                 "\" viewBox=\"0 0 ", width, ' ', height, "\" role=\"img\">\n<title>", xml_text(title), "</title>\n",
                 top, body_, "</svg>\n");
  }

 private:
  std::string body_;
};

}  // namespace dovetail
