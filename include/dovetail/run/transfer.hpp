// SPDX-License-Identifier: MIT
// One redistribution of the plan on one rank: the boxes of every rank along the axis, and the exchange that turns the
// placement before into the placement after. What is packed for whom follows from the boxes alone, so both ends of
// every message agree without asking.
#pragma once
#include <dovetail/comm/communicator.hpp>
#include <dovetail/mesh/overlap.hpp>
#include <dovetail/plan/plan.hpp>
#include <dovetail/run/box.hpp>
#include <dovetail/run/row_tables.hpp>
#include <vector>

namespace dovetail {

/// A box whose segments come from a table that each run fills anew.
struct TableBox {
  RowTable const* rows = nullptr;
  Box box{};
  Box now() const {
    Box b = box;
    b.segments = rows->span();
    return b;
  }
  i64 elements() const { return rows->rows * box.width(); }
};

/// Box of a value on the rank at `at`; `range_of(extent)` gives each fixed dim's range.
template <class RangeOf>
TableBox table_box(RowTables& tables, Tensor const& t, Coordinate const& at, RangeOf const& range_of, i64 apart = 0) {
  TableBox b;
  b.rows = tables.table(t.dims, t.places, at, apart);
  b.box.symbols = leading_symbols(t.dims), b.box.dims = t.dims.size();
  for (i32 k = b.box.symbols; k < b.box.dims; ++k) b.box.ranges[k] = range_of(t.dims[k]);
  return b;
}
/// The box of a value that a rank holds in a run.
inline TableBox held_box(RowTables& tables, Tensor const& t, Mesh const& mesh, Coordinate const& at, i64 apart = 0) {
  return table_box(
      tables, t, at, [&](Extent const& e) { return held_part(e, e.lead, t.places, mesh, at); }, apart);
}

/// Room that exchanges pack into; it grows when the extents of a run do.
struct Staging {
  std::vector<std::byte> out{}, in{};
  static void fit(std::vector<std::byte>& room, i64 bytes) {
    if (static_cast<i64>(room.size()) < bytes) room.resize(static_cast<std::size_t>(bytes));
  }
};

/// One exchange of a plan, prepared once: what goes where, in which group.
template <class C>
class Transfer {
 public:
  /// @param group the ranks along the step's axis, in order of their coordinate
  /// @param apart rows between the sequences of what is moved where it is a view of a cache, else 0
  Transfer(Plan const& plan, i32 step, Coordinate const& at, RowTables& tables, typename C::Group group,
           Element element, i64 apart)
      : kind_(plan.steps[step].kind), group_(group), element_(element), size_(bytes_of(element)) {
    Step const& s = plan.steps[step];
    Tensor const &before = plan.values[s.operands[0].value], &after = plan.values[s.results[0]];
    Mesh const& mesh = plan.mesh(s.stage);
    reduction_ = element == Element::choice         ? Reduction::arg_max
                 : s.from.kind == Kind::partial_max ? Reduction::maximum
                                                    : Reduction::sum;
    mine_before_ = held_box(tables, before, mesh, at, apart);
    mine_after_ = held_box(tables, after, mesh, at);
    if (kind_ == StepKind::own) {
      Places outer{};  // an element is owned by one rank of this axis and those outside it; inner axes still split
      for (i32 a = 0; a <= s.axis; ++a) outer[a] = after.places[a];
      owned_ = table_box(tables, after, at, [&](Extent const& e) {
        Range const r =
            e.dim->shares(s.to.dim) ? owned(e, outer, mesh, at) : held_part(e, e.lead, after.places, mesh, at);
        return intersect(r, held_part(e, e.lead, after.places, mesh, at));
      });
    }
    if (!communicates(kind_) || kind_ == StepKind::all_reduce) return;
    for (i32 i = 0; i < mesh[s.axis]->size; ++i) {
      Coordinate there = at;
      there[s.axis] = i;
      bool const shares = kind_ == StepKind::share_reduce;
      brought_.push_back(table_box(tables, before, there, [&](Extent const& e) {
        return shares ? held_part(e, e.lead, before.places, mesh, there)
                      : brought_part(e, e.lead, before.places, mesh, there, s.axis);
      }));
      taken_.push_back(held_box(tables, after, mesh, there));
    }
    for (auto* counts : {&send_, &receive_}) counts->resize(brought_.size());
    me_ = static_cast<std::size_t>(at[s.axis]);
    for (std::size_t j = 0; j < brought_.size(); ++j) {
      to_.push_back(taken_[j]);  // what of my part member j takes
      for (i32 k = to_[j].box.symbols; k < to_[j].box.dims; ++k)
        to_[j].box.ranges[k] = intersect(to_[j].box.ranges[k], brought_[me_].box.ranges[k]);
    }
  }

  /// After the row tables were filled for a run: counts, and room for them.
  void bind(Staging& staging) {
    if (brought_.empty()) return;
    i64 out = 0, in = 0;
    bool const reduces = kind_ == StepKind::reduce_scatter, gathers = kind_ == StepKind::all_gather;
    for (std::size_t j = 0; j < brought_.size(); ++j) {
      send_[j] = gathers   ? brought_[j].elements()
                 : reduces ? taken_[j].elements()
                           : overlap_elements(mine_before_.now(), to_[j].now());
      receive_[j] = gathers || reduces ? send_[j] : overlap_elements(brought_[j].now(), mine_after_.now());
      if (!gathers || j == me_) out += send_[j];
      in += receive_[j];
    }
    Staging::fit(staging.out, out * size_);
    if (!reduces) Staging::fit(staging.in, in * size_);
  }

  template <class Scalar>
  void run(C& comm, Staging& staging, std::byte* before, std::byte* after) {
    i64 const elements = mine_after_.elements();
    switch (kind_) {
      case StepKind::all_reduce:
        if (before != after && elements) std::memcpy(after, before, bytes(elements));
        comm.all_reduce(group_, after, elements, element_, reduction_).wait();
        return;
      case StepKind::slice: copy_overlap(mine_before_.now(), before, mine_after_.now(), after, size_); return;
      case StepKind::own:
        if (elements) std::memset(after, 0, bytes(elements));
        if (owned_.box.width()) mask(before, after);
        return;
      case StepKind::reduce_scatter: {
        i64 packed = 0;
        for (auto const& t : taken_)
          packed += pack_overlap(mine_before_.now(), before, t.now(), staging.out.data() + packed * size_, size_);
        comm.reduce_scatter(group_, staging.out.data(), after, send_, element_, reduction_).wait();
        return;
      }
      case StepKind::all_gather: {
        pack_overlap(mine_before_.now(), before, brought_[me_].now(), staging.out.data(), size_);
        comm.all_gather(group_, staging.out.data(), staging.in.data(), send_, element_).wait();
        i64 at = 0;
        for (auto const& b : brought_)
          at += unpack_overlap(b.now(), staging.in.data() + at * size_, mine_after_.now(), after, size_);
        return;
      }
      default: {  // all_to_all, share_reduce
        i64 packed = 0, at = 0;
        for (auto const& t : to_)
          packed += pack_overlap(mine_before_.now(), before, t.now(), staging.out.data() + packed * size_, size_);
        comm.all_to_all(group_, staging.out.data(), send_, staging.in.data(), receive_, element_).wait();
        bool const adds = kind_ == StepKind::share_reduce;
        if (adds && elements) std::memset(after, 0, bytes(elements));
        for (auto const& b : brought_) {
          std::byte const* const from = staging.in.data() + at * size_;
          at += adds ? add_overlap(b.now(), reinterpret_cast<Scalar const*>(from), mine_after_.now(),
                                   reinterpret_cast<Scalar*>(after))
                     : unpack_overlap(b.now(), from, mine_after_.now(), after, size_);
        }
      }
    }
  }

 private:
  StepKind kind_;
  typename C::Group group_;
  Element element_;
  Reduction reduction_;
  i64 size_;
  std::size_t me_ = 0;
  TableBox mine_before_{}, mine_after_{}, owned_{};
  std::vector<TableBox> brought_{}, taken_{}, to_{};  ///< by rank along the axis
  std::vector<i64> send_{}, receive_{};

  std::size_t bytes(i64 elements) const { return static_cast<std::size_t>(elements * size_); }
  /// Copies what is owned. The rows of both tensors lie alike, but those of a cache begin elsewhere.
  void mask(std::byte const* before, std::byte* after) const {
    Box const all = mine_before_.now(), owned = owned_.now(), to = mine_after_.now();
    for (i32 s = 0; s < all.segments.size(); ++s) {
      Box one = all, part = owned;
      one.segments = {&all.segments[s], 1}, part.segments = {&owned.segments[s], 1};
      i64 const back = (all.segments[s].row - to.segments[s].row) * all.width();
      each_overlap(one, part, [&](i64 from, i64, i64 run) {
        std::memcpy(after + (from - back) * size_, before + from * size_, bytes(run));
      });
    }
  }
};

}  // namespace dovetail
