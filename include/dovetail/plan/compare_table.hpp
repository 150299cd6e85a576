// SPDX-License-Identifier: MIT
// Figures of layouts as one table for people: a column a layout, a block of lines a device, and the sum over all
// devices. A layout that was refused has its sentence in its column.
#pragma once
#include <dovetail/plan/compare_words.hpp>

namespace dovetail {

namespace comparing {

inline constexpr std::size_t shown_devices = 16;  ///< of one layout in the table

/// Lines of one table, all cells wrapped to their column.
class Table {
 public:
  Table(std::size_t columns, std::size_t width) : columns_(columns), width_(width) {}

  /// `cell(column)` gives the text of each.
  void row(std::string const& label, auto const& cell) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t c = 0; c < columns_; ++c) {
      cells.push_back(wrapped(cell(c), width_));
      height = (std::max)(height, cells.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      std::string out = line ? std::string() : label;
      out.resize((std::max)(out.size(), label_width), ' ');
      for (auto const& c : cells) {
        std::string const part = line < c.size() ? c[line] : std::string();
        out += "  " + part;
        if (auto const shown = shown_width(part); shown < width_) out.append(width_ - shown, ' ');
      }
      while (!out.empty() && out.back() == ' ') out.pop_back();
      text_ += out + '\n';
    }
  }
  void blank() { text_ += '\n'; }
  std::string const& text() const { return text_; }

 private:
  static constexpr std::size_t label_width = 18;
  std::size_t columns_, width_;
  std::string text_;
};

inline std::string table_text(std::vector<LayoutFigures> const& layouts) {
  std::size_t const width = layouts.size() == 1 ? 96 : layouts.size() == 2 ? 44 : 30;
  Table table(layouts.size(), width);
  std::size_t most = 0;
  bool const decodes = any_decodes(layouts);
  for (auto const& f : layouts) most = (std::max)(most, f.devices.size());
  auto const each = [&](std::string const& label, auto const& of) {
    table.row(label, [&](std::size_t c) { return layouts[c].ok() ? of(layouts[c]) : std::string(); });
  };
  table.row("", [&](std::size_t c) { return excerpt(layouts[c].title); });
  table.row("", [&](std::size_t c) {
    return layouts[c].ok() ? heading_words(layouts[c]) : "refused: " + layouts[c].refusal;
  });
  for (std::size_t n = 0; n < most && n < shown_devices; ++n) {
    table.blank();
    auto const device = [&](std::string const& label, auto const& of) {
      each(label, [&](LayoutFigures const& f) {
        return n < f.devices.size() ? of(f, f.devices[n]) : std::string(label[0] == ' ' ? "" : "-");
      });
    };
    auto const bytes = [&](char const* label, auto const& of) {
      device(label, [&](auto const&, DeviceFigures const& d) { return readable_bytes(of(d)); });
    };
    device(words("device ", n),
           [](LayoutFigures const& f, DeviceFigures const& d) { return holding_words(f.parts, d.holds); });
    device("  serves", [](auto const&, DeviceFigures const& d) { return requests_words(d.sequences); });
    bytes("  weights", [](DeviceFigures const& d) { return d.weights; });
    bytes("  cache", [](DeviceFigures const& d) { return d.cache; });
    device("  waits", waits_words);
    for (bool decoding : {true, false}) {
      if (decoding && !decodes) continue;
      auto const pass = [decoding](DeviceFigures const& d) -> PassFigures const& {
        return decoding ? d.decode : d.prefill;
      };
      device(decoding ? "  a decode step" : "  a prefill",
             [&](auto const&, DeviceFigures const& d) { return "receives " + axes_words(pass(d).received); });
      bytes("    activations", [&](DeviceFigures const& d) { return pass(d).arena; });
      device("    computes",
             [&](auto const&, DeviceFigures const& d) { return readable_count(pass(d).flops) + " operations"; });
    }
  }
  if (most > shown_devices) {
    table.blank();
    each(words("device ", shown_devices, " on"), [](LayoutFigures const& f) {
      i64 const left = static_cast<i64>(f.devices.size()) - static_cast<i64>(shown_devices);
      return left > 0 ? words(counted(left, "device"), " more, in the JSON") : std::string("-");
    });
  }
  table.blank();
  each("all devices", [](LayoutFigures const& f) {
    i64 weights = 0, cache = 0;
    for (auto const& d : f.devices) weights += d.weights, cache += d.cache;
    return readable_bytes(weights) + " of weights, " + readable_bytes(cache) + " of cache";
  });
  if (decodes) each("  a decode step", [](LayoutFigures const& f) { return axes_words(f.decode); });
  if (decodes) each("    by kind", [](LayoutFigures const& f) { return kinds_words(f.decode); });
  each("  a prefill", [](LayoutFigures const& f) { return axes_words(f.prefill); });
  each("    by kind", [](LayoutFigures const& f) { return kinds_words(f.prefill); });
  return table.text();
}

}  // namespace comparing

/// The figures as one table.
inline std::string compare_table(std::vector<LayoutFigures> const& layouts, Workload const& work) {
  return comparing::workload_words(work, comparing::any_decodes(layouts)) + "\n\n" + comparing::table_text(layouts);
}

}  // namespace dovetail
