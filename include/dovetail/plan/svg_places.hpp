// SPDX-License-Identifier: MIT
// Where everything of a panel stands: which devices are columns and which parts of the model rows, the lanes of arrows,
// and what height that takes. A panel is placed before it is drawn, so that no word or arrow meets another; what does
// not fit (many devices, many layers) is left out with a mark.
#pragma once
#include <dovetail/plan/compare_words.hpp>

namespace dovetail {

namespace picture {

inline constexpr i64 label_width = 74, column_width = 68, cell_width = 52, row_height = 15, row_gap = 3;
inline constexpr i64 pad = 16, lane_height = 18, exchange_height = 42, figure_height = 17;
inline constexpr std::size_t most_columns = 8;  ///< devices that are drawn of one layout
inline constexpr std::size_t longest_run = 3;   ///< layers alike that are drawn one by one
inline constexpr std::size_t most_rows = 40, longest_title = 40;

/// Pixels that words take at most in a font of so many pixels, in any usual face.
inline i64 text_width(std::string const& text, i64 size) {
  return (static_cast<i64>(comparing::shown_width(text)) * size * 62 + 99) / 100;
}

/// Things that lie on a line each, where none may meet another: the lowest lane that is free from `lo` to `hi`.
class Lanes {
 public:
  i64 take(i64 lo, i64 hi) {
    for (std::size_t lane = 0;; ++lane) {
      if (lane == taken_.size()) taken_.emplace_back();
      bool free = true;
      for (auto const& r : taken_[lane]) free = free && (hi < r.lo || r.hi < lo);
      if (!free) continue;
      taken_[lane].push_back({lo, hi});
      return static_cast<i64>(lane);
    }
  }
  i64 size() const { return static_cast<i64>(taken_.size()); }

 private:
  std::vector<std::vector<Range>> taken_{};
};

/// A row of cells: one part, or a mark for the parts left out.
struct Row {
  std::size_t part = 0;
  bool left_out = false;
  i64 y = 0;
};

/// An arrow between stages: from below a cell of the sender, along a lane, to a cell of the receiver.
struct Send {
  Link const* link = nullptr;
  std::size_t from = 0, to = 0;  ///< columns
  std::size_t row = 0;           ///< of the receiver's first part
  i64 start = 0, lane = 0;       ///< where it begins, and where it runs across
};
/// An arrow among the devices of an axis, with two lines of words below.
struct Meeting {
  std::vector<std::size_t> columns{};
  i64 middle = 0, lane = 0;
  std::string first{}, second{};
};

/// Places within one panel, in pixels from its corner.
struct PanelPlaces {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  LayoutFigures const& f;
  i64 width = 0, height = 0, exchanges_y = 0, figures_y = 0;
  std::vector<std::string> refusal{};  ///< lines, where there is nothing else
  std::vector<std::size_t> columns{};  ///< devices that are drawn; `none` stands for those left out
  std::vector<Row> rows{};
  std::vector<Send> sends{};
  std::vector<Meeting> meetings{};

  /// @param figures must live as long as this
  explicit PanelPlaces(LayoutFigures const& figures) : f(figures) {
    width = (std::max)(i64{250}, text_width(excerpt(f.title, 0, longest_title), 15) + 2 * pad);
    if (!f.ok()) {
      refusal = comparing::wrapped(excerpt("refused: " + f.refusal, 0, 900), 34);
      height = 2 * pad + 30 + 15 * static_cast<i64>(refusal.size());
      return;
    }
    choose_columns();
    choose_rows();
    width = (std::max)(width, 2 * pad + label_width + column_width * static_cast<i64>(columns.size()));
    place();
  }
  static i64 centre(std::size_t column) {
    return pad + label_width + column_width * static_cast<i64>(column) + column_width / 2;
  }
  Holding const& held(std::size_t column, std::size_t part) const { return f.devices[columns[column]].holds[part]; }

 private:
  std::size_t column_of(i64 rank) const {
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c] == static_cast<std::size_t>(rank)) return c;
    return none;
  }
  void choose_columns() {
    std::size_t const n = f.devices.size();
    for (std::size_t d = 0; d < n; ++d) {
      if (n <= most_columns || d + 1 == n || d < most_columns - 2) columns.push_back(d);
      else if (columns.back() != none) columns.push_back(none);
    }
  }
  bool alike(std::size_t a, std::size_t b) const {
    if (f.parts[a].kind != f.parts[b].kind) return false;
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c] != none && !held(c, a).alike(held(c, b))) return false;
    return true;
  }
  void choose_rows() {
    for (std::size_t i = 0; i < f.parts.size();) {
      std::size_t end = i + 1;
      while (end < f.parts.size() && alike(i, end)) ++end;
      bool const all = end - i <= longest_run;
      for (std::size_t k = i; k < end; ++k)
        if (all || k == i || k + 1 == end) rows.push_back({k, false, 0});
        else if (k == i + 1) rows.push_back({k, true, 0});
      i = end;
    }
    if (rows.size() <= most_rows) return;
    rows.erase(rows.begin() + most_rows - 4, rows.end() - 3);
    rows[most_rows - 5].left_out = true;
  }

  std::size_t first_row(std::size_t column) const {
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (!held(column, rows[r].part).none()) return r;
    return rows.size();
  }

  /// Everything's place, from the top down.
  void place() {
    std::vector<Lanes> lanes(rows.size());
    for (auto const& link : f.links) {
      Send s{&link, column_of(link.from), column_of(link.to), 0, 0, 0};
      if (s.from == none || s.to == none) continue;
      s.row = first_row(s.to);
      if (s.row == rows.size()) continue;  // no part of the receiver is drawn
      s.lane =
          lanes[s.row].take(static_cast<i64>((std::min)(s.from, s.to)), static_cast<i64>((std::max)(s.from, s.to)));
      sends.push_back(s);
    }
    i64 y = 58 + 13 * (1 + (f.replicas > 1) + (f.stages > 1)) + 6;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (lanes[r].size()) y += 14 + lane_height * lanes[r].size();
      rows[r].y = y, y += row_height + row_gap;
    }
    for (auto& s : sends) {
      i64 const from = rows[s.row].y - 14 - lane_height * lanes[s.row].size();
      s.start = from;
      for (std::size_t r = 0; r < s.row; ++r)
        if (!held(s.from, rows[r].part).none()) s.start = rows[r].y + row_height;
      s.lane = from + 15 + lane_height * s.lane;
    }
    i64 const lanes_of_meetings = place_meetings();
    exchanges_y = y + 6;
    figures_y = exchanges_y + exchange_height * lanes_of_meetings + 6;
    height = figures_y + figure_height * 4 + 8;
  }

  /// @return how many lanes they take
  i64 place_meetings() {
    Lanes lanes;
    for (auto const& e : f.exchanges) {
      Meeting m;
      Cost most{};
      for (i64 rank : e.devices) {
        if (std::size_t const c = column_of(rank); c != none) m.columns.push_back(c);
        Cost const here = f.shown(f.devices[static_cast<std::size_t>(rank)]).received.along(e.axis);
        if (here.bytes > most.bytes) most = here;
      }
      if (m.columns.size() < 2) continue;
      m.first = words(excerpt(e.axis, 0, 12), ": ", e.times, e.times == 1 ? " exchange" : " exchanges");
      m.second = readable_bytes(most.bytes) + (same_for_all(e) ? " a device" : " at most");
      i64 const half = (std::max)(text_width(m.first, 11), text_width(m.second, 11)) / 2 + 2;
      i64 const lo = centre(m.columns.front()), hi = centre(m.columns.back());
      m.middle = (std::min)((std::max)((lo + hi) / 2, half + 4), width - half - 4);
      m.lane = lanes.take((std::min)(lo, m.middle - half), (std::max)(hi, m.middle + half));
      meetings.push_back(std::move(m));
    }
    return lanes.size();
  }
  bool same_for_all(AxisExchange const& e) const {
    auto const bytes = [&](i64 rank) {
      return f.shown(f.devices[static_cast<std::size_t>(rank)]).received.along(e.axis).bytes;
    };
    for (i64 rank : e.devices)
      if (bytes(rank) != bytes(e.devices[0])) return false;
    return true;
  }
};

}  // namespace picture

}  // namespace dovetail
