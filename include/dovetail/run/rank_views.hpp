// SPDX-License-Identifier: MIT
// Which part of every value and cache of its stage a rank holds. Boxes are bound once; their rows, and the views that
// kernels get, follow the extents of each run without allocation. Where the parts lie: run/rank_memory.hpp.
#pragma once
#include <dovetail/run/batch.hpp>
#include <dovetail/run/transfer.hpp>

namespace dovetail {

/// Views of every value of one rank, bound anew for each run.
class RankViews {
 public:
  /// @param plan must live as long as this
  RankViews(Plan const& plan, RankPlace const& place, ExecutorOptions options)
      : plan_(plan),
        place_(place),
        capacity_(options.capacity),
        tables_(mesh(), options.sequences),
        boxes_(index(plan.values.size())),
        views_(boxes_.size()),
        cache_of_(boxes_.size(), -1) {
    for (auto const& s : plan_.steps)
      if (s.state >= 0) cache_of_[index(s.results[0])] = s.state;
    for (i32 v = 0; v < plan_.values.size(); ++v) {
      if (plan_.values[v].stage != place_.stage) continue;
      boxes_[index(v)] = box_of(v, rows_apart(v));
      views_[index(v)] = view_of(v, boxes_[index(v)]);
    }
    for (auto const& s : plan_.states) {
      bool const mine = s.stage == place_.stage;
      cache_boxes_.push_back(mine ? box_of(s.value, capacity_) : TableBox{});
      cache_views_.push_back(mine ? view_of(s.value, cache_boxes_.back()) : View{});
    }
  }
  RankViews(RankViews const&) = delete;

  /// Rows for a run.
  void bind(RunShape run) {
    tables_.fill(run);
    for (std::size_t v = 0; v < views_.size(); ++v)
      if (boxes_[v].rows) refresh(views_[v], boxes_[v]);
    for (std::size_t s = 0; s < cache_views_.size(); ++s)
      if (cache_boxes_[s].rows) refresh(cache_views_[s], cache_boxes_[s]);
  }
  static void refresh(View& v, TableBox const& b) { v.rows = b.rows->rows, v.segments = b.rows->span(); }

  /// Of a value of this stage in the current run; its memory is not in it.
  View const& view(i32 value) const { return views_[index(value)]; }
  View const& cache_view(i32 state) const { return cache_views_[index(state)]; }
  TableBox const& box(i32 value) const { return boxes_[index(value)]; }
  /// The state that a value is a view of, or -1.
  i32 cache_of(i32 value) const { return cache_of_[index(value)]; }
  /// Rows between the sequences of a value that is a view of a cache; 0: they follow one another.
  i64 rows_apart(i32 value) const { return cache_of(value) >= 0 ? capacity_ : 0; }
  /// A value's box with its rows one after the other; asked before any run.
  TableBox packed_box(i32 value) { return box_of(value, 0); }
  RowTables& tables() { return tables_; }

 private:
  Plan const& plan_;
  RankPlace place_;
  i64 capacity_;
  RowTables tables_;
  std::vector<TableBox> boxes_{};  ///< by value of this stage
  std::vector<View> views_{};      ///< likewise
  std::vector<i32> cache_of_{};    ///< by value
  std::vector<TableBox> cache_boxes_{};
  std::vector<View> cache_views_{};

  static std::size_t index(i32 i) { return static_cast<std::size_t>(i); }
  Mesh const& mesh() const { return plan_.mesh(place_.stage); }
  TableBox box_of(i32 value, i64 apart) { return held_box(tables_, plan_.values[value], mesh(), place_.at, apart); }
  View view_of(i32 value, TableBox const& b) const {
    View v;
    v.dims = &plan_.values[value].dims, v.width = b.box.width();
    for (i32 k = 0; k < v.dims->size(); ++k) v.ranges[k] = b.box.ranges[k];
    return v;
  }
};

}  // namespace dovetail
