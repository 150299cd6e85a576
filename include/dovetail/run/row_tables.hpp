// SPDX-License-Identifier: MIT
// Which rows of which sequence a rank and its peers hold in the current run. Values whose symbolic dims are split alike
// share a table; a new run fills the tables again and allocates nothing.
#pragma once
#include <dovetail/mesh/region.hpp>
#include <memory>
#include <vector>

namespace dovetail {

/// Segments of one way to split the symbolic dims, for one coordinate.
struct RowTable {
  Dims dims{};      ///< symbolic ones only
  Places places{};  ///< only of axes that cut them
  Coordinate at{};
  i64 apart = 0;  ///< rows between the sequences of a cache; 0: packed one after the other
  std::vector<Segment> segments{};
  i64 rows = 0;
  Span<Segment> span() const { return {segments.data(), static_cast<i32>(segments.size())}; }
};

/// Rows of a rank's values by sequence, for one run.
class RowTables {
 public:
  RowTables(Mesh const& mesh, i64 sequences) : mesh_(mesh), sequences_(sequences) {}

  /// The table of a value for the rank at `at`; made at the first request, before any run.
  RowTable const* table(Dims const& dims, Places const& places, Coordinate const& at, i64 apart = 0) {
    RowTable wanted;
    for (i32 k = 0; k < leading_symbols(dims); ++k) wanted.dims.push(dims[k]);
    wanted.at = at;
    wanted.apart = apart;
    for (i32 a = 0; a < mesh_.size(); ++a) {
      if (places[a].cut() && find(wanted.dims, places[a].dim)) wanted.places[a] = places[a];
      else wanted.at[a] = 0;
    }
    for (auto const& t : tables_)
      if (t->dims == wanted.dims && t->places == wanted.places && t->at == wanted.at && t->apart == apart)
        return t.get();
    wanted.segments.reserve(static_cast<std::size_t>(sequences_ > 0 ? sequences_ : 1));
    return tables_.emplace_back(std::make_unique<RowTable>(std::move(wanted))).get();
  }

  void fill(RunShape run) {
    for (auto const& t : tables_) {
      t->segments.clear();
      t->rows = 0;
      if (t->dims.empty()) {
        t->segments.push_back({0, {0, 1}, 0});
        t->rows = 1;
        continue;
      }
      Range const mine = sequences_of(t->dims, t->places, mesh_, t->at, run);
      for (i64 s = mine.lo; s < mine.hi; ++s) {
        Range const positions = positions_of(t->dims, t->places, mesh_, t->at, run[s]);
        t->segments.push_back({s, positions, t->apart ? (s - mine.lo) * t->apart : t->rows});
        t->rows += positions.size();
      }
    }
  }

 private:
  Mesh mesh_;
  i64 sequences_;
  std::vector<std::unique_ptr<RowTable>> tables_{};
};

}  // namespace dovetail
