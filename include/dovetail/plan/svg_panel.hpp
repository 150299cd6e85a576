// SPDX-License-Identifier: MIT
// Draws the panel of one layout: devices are columns, parts of the model are rows, a cell is filled as far as the
// device holds the part; arrows are what goes from device to device in one pass. Where all that stands is known
// before: plan/svg_places.hpp.
#pragma once
#include <dovetail/plan/svg.hpp>
#include <dovetail/plan/svg_places.hpp>

namespace dovetail {

namespace picture {

/// One layout, placed and ready to be drawn.
class Panel {
 public:
  /// @param figures must live as long as this
  explicit Panel(LayoutFigures const& figures) : p_(figures) {}
  i64 width() const { return p_.width; }
  i64 height() const { return p_.height; }

  /// Draws it at a place, as high as the others of its line.
  void draw(SvgWriter& svg, i64 left, i64 top, i64 height) const {
    svg.group("panel", p_.f.title, [&] {
      svg.rectangle("card", left, top, p_.width, height, 6);
      svg.write("title", left + pad, top + 27, excerpt(p_.f.title, 0, longest_title));
      if (!p_.f.ok()) {
        for (std::size_t i = 0; i < p_.refusal.size(); ++i)
          svg.write("refused", left + pad, top + 50 + 15 * static_cast<i64>(i), p_.refusal[i]);
        return;
      }
      svg.write("quiet", left + pad, top + 44, subtitle());
      draw_heads(svg, left, top);
      draw_cells(svg, left, top);
      draw_sends(svg, left, top);
      draw_meetings(svg, left, top);
      draw_figures(svg, left, top + height - p_.height);  // of all panels of a line, at one height
    });
  }

 private:
  PanelPlaces p_;

  static char const* kind_of(ModelPart const& part) {
    return part.kind == ModelPart::Kind::before ? "before" : part.kind == ModelPart::Kind::after ? "after" : "layer";
  }
  std::string subtitle() const {
    std::string const text = comparing::heading_words(p_.f);
    return p_.f.devices.size() > most_columns ? words(text, "; drawn are ", most_columns - 1) : text;
  }

  void draw_heads(SvgWriter& svg, i64 left, i64 top) const {
    for (std::size_t c = 0; c < p_.columns.size(); ++c) {
      i64 y = top + 64;
      if (p_.columns[c] == PanelPlaces::none) {
        svg.write("middle", left + p_.centre(c), y, "...");
        continue;
      }
      DeviceFigures const& d = p_.f.devices[p_.columns[c]];
      svg.write("device middle", left + p_.centre(c), y, words("device ", d.rank));
      if (p_.f.stages > 1) svg.write("quiet middle", left + p_.centre(c), y += 13, words("stage ", d.stage));
      if (d.replicas > 1) svg.write("quiet middle", left + p_.centre(c), y + 13, words("replica ", d.replica));
    }
  }

  void draw_cells(SvgWriter& svg, i64 left, i64 top) const {
    for (auto const& row : p_.rows) {
      ModelPart const& part = p_.f.parts[row.part];
      i64 const base = top + row.y + row_height - 4;
      if (row.left_out) svg.write("quiet end", left + pad + label_width - 10, base, "\xe2\x8b\xae");
      else svg.write("quiet end", left + pad + label_width - 6, base, part_words(part, part));
      for (std::size_t c = 0; c < p_.columns.size(); ++c) {
        if (p_.columns[c] == PanelPlaces::none) continue;
        Holding const& h = p_.held(c, row.part);
        if (h.none()) continue;
        if (row.left_out) svg.write("quiet middle", left + p_.centre(c), base, "\xe2\x8b\xae");
        else draw_cell(svg, kind_of(part), h, left + p_.centre(c) - cell_width / 2, top + row.y);
      }
    }
  }
  /// The frame is the whole of the part; filled is the range of the first dim that is split.
  static void draw_cell(SvgWriter& svg, char const* kind, Holding const& h, i64 x, i64 y) {
    Range filled{0, cell_width};
    if (!h.complete() && !h.shares.empty()) {
      DimShare const& s = h.shares.front();
      filled = {cell_width * s.range.lo / s.of, cell_width * s.range.hi / s.of};
      if (s.range.size() && !filled.size()) filled.hi = filled.lo + 1;
    }
    svg.rectangle(words("frame ", kind).c_str(), x, y, cell_width, row_height);
    svg.rectangle(words("held ", kind).c_str(), x + filled.lo, y, filled.size(), row_height);
  }

  void draw_sends(SvgWriter& svg, i64 left, i64 top) const {
    for (auto const& s : p_.sends) {
      i64 const from = left + p_.centre(s.from), to = left + p_.centre(s.to);
      svg.path("send", words("M", from, ' ', top + s.start + 1, " V", top + s.lane, " H", to, " V",
                             top + p_.rows[s.row].y - 2));
      i64 const side = s.to > s.from ? column_width / 2 : -column_width / 2;
      svg.write("bytes middle", from + side, top + s.lane - 4, readable_bytes(p_.f.shown(*s.link).bytes));
    }
  }
  void draw_meetings(SvgWriter& svg, i64 left, i64 top) const {
    for (auto const& m : p_.meetings) {
      i64 const y = top + p_.exchanges_y + exchange_height * m.lane + 8;
      svg.path("exchange", words("M", left + p_.centre(m.columns.front()) - 12, ' ', y, " H",
                                 left + p_.centre(m.columns.back()) + 12));
      for (std::size_t c : m.columns) svg.dot("meet", left + p_.centre(c), y, 3);
      svg.write("bytes middle", left + m.middle, y + 16, m.first);
      svg.write("bytes middle", left + m.middle, y + 29, m.second);
    }
  }

  void draw_figures(SvgWriter& svg, i64 left, i64 top) const {
    i64 y = top + p_.figures_y;
    svg.path("rule", words("M", left + pad, ' ', y, " H", left + p_.width - pad));
    auto const line = [&](char const* label, auto const& of) {
      y += figure_height;
      svg.write("quiet end", left + pad + label_width - 6, y - 1, label);
      for (std::size_t c = 0; c < p_.columns.size(); ++c)
        if (p_.columns[c] != PanelPlaces::none)
          svg.write("figure middle", left + p_.centre(c), y - 1, of(p_.f.devices[p_.columns[c]]));
    };
    line("weights", [](DeviceFigures const& d) { return readable_bytes(d.weights); });
    line("cache", [](DeviceFigures const& d) { return readable_bytes(d.cache); });
    line("requests", [](DeviceFigures const& d) {
      if (!d.sequences.size()) return std::string("none");
      return d.sequences.size() == 1 ? words(d.sequences.lo) : words(d.sequences.lo, '-', d.sequences.hi - 1);
    });
    line("waits for", [&](DeviceFigures const& d) { return waits(d); });
  }
  /// Short: devices by number.
  std::string waits(DeviceFigures const& d) const {
    std::vector<i64> all = d.peers;
    for (i64 rank : d.senders) comparing::add_once(all, rank);
    for (i64 rank : comparing::token_from(p_.f, d)) comparing::add_once(all, rank);
    if (all.empty()) return "nobody";
    std::string const text = comparing::runs_words(all);
    return text.size() <= 9 ? text : words(all.size(), " others");
  }
};

}  // namespace picture

}  // namespace dovetail
