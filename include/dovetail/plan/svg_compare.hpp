// SPDX-License-Identifier: MIT
// Layouts side by side as one picture: what each device holds of which layer, what goes from device to device in a
// decode step, what each stores and waits for. It stands on a ground of its own, so a page may be light or dark. The
// numbers are those of plan/compare.hpp.
#pragma once
#include <dovetail/plan/svg_panel.hpp>

namespace dovetail {

namespace picture {

inline constexpr char const* style = R"(<style>
text { font-family: Helvetica, Arial, 'DejaVu Sans', sans-serif; font-size: 11px; fill: #1f2328; }
.ground { fill: #ffffff; stroke: #d0d7de; }
.card { fill: #f6f8fa; stroke: #d0d7de; }
.heading { font-size: 15px; font-weight: bold; }
.title { font-size: 15px; font-weight: bold; font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
.quiet { fill: #59636e; }
.refused { fill: #a40e26; }
.device { font-weight: bold; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.bytes { fill: #8a2a0b; }
.frame { fill-opacity: 0.13; stroke-opacity: 0.55; }
.before { fill: #0b7a75; stroke: #0b7a75; }
.layer { fill: #3b5bdb; stroke: #3b5bdb; }
.after { fill: #7b2cbf; stroke: #7b2cbf; }
.send { fill: none; stroke: #c2410c; stroke-width: 1.5; marker-end: url(#ahead); }
.exchange { fill: none; stroke: #c2410c; stroke-width: 1.5; marker-start: url(#back); marker-end: url(#ahead); }
.meet { fill: #c2410c; }
.rule { stroke: #d0d7de; }
</style>
<defs>
<marker id="ahead" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto" markerUnits="userSpaceOnUse">
<polygon points="0,0.5 7,4 0,7.5" fill="#c2410c"/></marker>
<marker id="back" markerWidth="8" markerHeight="8" refX="1" refY="4" orient="auto" markerUnits="userSpaceOnUse">
<polygon points="7,0.5 0,4 7,7.5" fill="#c2410c"/></marker>
</defs>
)";

inline constexpr i64 widest = 900, margin = 16, between = 14;

/// Panels in lines: as few lines as there can be, then each as short as can be.
class Lines {
 public:
  explicit Lines(std::vector<LayoutFigures> const& layouts) {
    for (auto const& f : layouts) panels_.emplace_back(f);
    i64 room = widest - 2 * margin;
    std::size_t const fewest = broken(room).size();
    while (room > 0 && broken(room - 1).size() == fewest) --room;
    ends_ = broken(room);
  }
  std::size_t size() const { return ends_.size(); }
  i64 width(std::size_t line) const {
    i64 sum = -between;
    for (std::size_t i = begin(line); i < ends_[line]; ++i) sum += panels_[i].width() + between;
    return sum;
  }
  i64 height(std::size_t line) const {
    i64 most = 0;
    for (std::size_t i = begin(line); i < ends_[line]; ++i) most = (std::max)(most, panels_[i].height());
    return most;
  }
  void draw(SvgWriter& svg, std::size_t line, i64 x, i64 y) const {
    for (std::size_t i = begin(line); i < ends_[line]; ++i) {
      panels_[i].draw(svg, x, y, height(line));
      x += panels_[i].width() + between;
    }
  }

 private:
  std::vector<Panel> panels_{};
  std::vector<std::size_t> ends_{};

  std::size_t begin(std::size_t line) const { return line ? ends_[line - 1] : 0; }
  /// Where lines end if none is wider than `room`; a wider panel has a line of its own.
  std::vector<std::size_t> broken(i64 room) const {
    std::vector<std::size_t> ends;
    i64 used = 0;
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      i64 const more = panels_[i].width() + (used ? between : 0);
      if (i && used + more > room) ends.push_back(i), used = panels_[i].width();
      else used += more;
    }
    if (!panels_.empty()) ends.push_back(panels_.size());
    return ends;
  }
};

/// Explains the signs, in columns, from base line y on. @return the base line of the last words
inline i64 legend(SvgWriter& svg, i64 x, i64 y, i64 width) {
  i64 const columns = (std::max)(i64{1}, width / 190);
  i64 entries = 0;
  auto const entry = [&](std::string const& text, auto const& sign) {
    i64 const at = x + (entries % columns) * (width / columns), base = y + 20 * (entries / columns);
    sign(at, base), svg.write("quiet", at + 38, base, text);
    ++entries;
  };
  auto const swatch = [&](char const* kind, i64 filled) {
    return [&svg, kind, filled](i64 at, i64 base) {
      svg.rectangle(words("frame ", kind).c_str(), at, base - 10, 30, 12);
      svg.rectangle(words("held ", kind).c_str(), at, base - 10, filled, 12);
    };
  };
  entry("a whole layer", swatch("layer", 30));
  entry("its first third", swatch("layer", 10));
  entry("sent between stages",
        [&](i64 at, i64 base) { svg.path("sign send", words("M", at, ' ', base - 4, " H", at + 30)); });
  entry("embedding", swatch("before", 30));
  entry("head", swatch("after", 30));
  entry("exchanged among the dots", [&](i64 at, i64 base) {
    svg.path("sign exchange", words("M", at, ' ', base - 4, " H", at + 30));
    svg.dot("meet", at + 8, base - 4, 3), svg.dot("meet", at + 22, base - 4, 3);
  });
  return y + 20 * ((entries - 1) / columns);
}

}  // namespace picture

/// The picture as SVG text. @param heading  what the layouts are of
inline std::string compare_svg(std::vector<LayoutFigures> const& layouts, Workload const& work,
                               std::string const& heading) {
  picture::Lines const lines(layouts);
  bool const decodes = comparing::any_decodes(layouts);
  std::string const pass =
      decodes ? words("decode step of ") : words("prefill of ", counted(work.tokens, "token"), " of ");
  std::string const what =
      words("Bytes at arrows: what a device receives in one ", pass, counted(work.sequences, "request"), ".");
  std::string const stored =
      decodes ? words("Cache: ", counted(work.context, "token"), " a request.") : words("The model keeps no cache.");
  i64 width = picture::text_width(what, 11);
  for (std::size_t line = 0; line < lines.size(); ++line) width = (std::max)(width, lines.width(line));
  width += 2 * picture::margin;
  SvgWriter inside;
  i64 y = picture::margin + 64;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    lines.draw(inside, line, picture::margin, y);
    y += lines.height(line) + picture::between;
  }
  inside.write("heading", picture::margin, picture::margin + 14, excerpt(heading, 0, 70));
  inside.write("quiet", picture::margin, picture::margin + 34, what);
  inside.write("quiet", picture::margin, picture::margin + 50, stored);
  y = picture::legend(inside, picture::margin, y + 12, width - 2 * picture::margin) + picture::margin;
  std::string const ground =
      words("<rect class=\"ground\" x=\"0\" y=\"0\" width=\"", width, "\" height=\"", y, "\" rx=\"8\"/>\n");
  return inside.text(width, y, heading, words(picture::style, ground).c_str());
}

}  // namespace dovetail
