// SPDX-License-Identifier: MIT
// Weights from a checkpoint: a rank reads its slices and nothing else. Before anything is read, the names are proved:
// every parameter of the plan has its tensor, every row of a tensor that parameters share is read by exactly one of
// them, and every tensor of the file is read or rightly left alone; and every slice fills its room exactly.
#pragma once
#include <algorithm>
#include <dovetail/io/checkpoint.hpp>
#include <dovetail/run/model.hpp>
#include <dovetail/run/weight_store.hpp>
#include <map>
#include <set>

namespace dovetail {

class CheckpointSource {
 public:
  /// @throws IoError where the names of plan and file do not match
  CheckpointSource(Checkpoint const& checkpoint, Model const& model, Plan const& plan)
      : checkpoint_(checkpoint), names_(model.names) {
    std::string const prefix = model.optional_prefix;
    bool bare = !prefix.empty();
    for (auto const& t : checkpoint_.tensors()) bare = bare && !t.name.starts_with(prefix);
    if (bare) bare_of_ = prefix;
    std::set<std::string> read, roles;
    std::map<std::string, std::vector<RowsOf>> shared;
    for (i32 p = 0; p < plan.parameters.size(); ++p) {
      Parameter const& parameter = plan.parameters[p];
      each_iteration(plan, parameter.layer, parameter.loop, [&](i64, i64 layer) {
        std::string const role = indexed_name(parameter.name, layer);
        if (!roles.insert(role).second) return;  // tied: another stage reads it, too
        StoredPlace const place = stored(role);
        TensorEntry const& entry = checkpoint_.at(place.name.chars);
        Dims const& dims = plan.values[parameter.value].dims;
        if (place.slice.is_all()) grouped(entry, dims);
        auto& rows = shared[entry.name];
        for (Range const& r : stored_rows(place.slice, Range{0, rows_of(entry, place.slice, dims).rows}))
          rows.push_back({r, role});
        read.insert(entry.name);
      });
    }
    for (auto& [name, rows] : shared) prove_rows(checkpoint_.at(name), rows);
    std::string extra;
    int count = 0;
    for (auto const& t : checkpoint_.tensors()) {
      if (read.count(t.name) || rightly_unread(model, t.name)) continue;
      if (++count <= 5) extra += (extra.empty() ? "" : ", ") + in_quotes(t.name);
    }
    if (count)
      throw io_error(checkpoint_.name(), ": holds ", count, count == 1 ? " tensor" : " tensors",
                     " that the model does not read: ", extra, count > 5 ? ", ..." : "",
                     "; is config.json the one of this file?");
  }

  /// Fills `room` with the slice `shape` of the parameter `name`, row-major.
  template <class Scalar>
  void operator()(std::string const& name, WeightShape const& shape, std::span<Scalar> room) const {
    StoredPlace const place = stored(name);
    TensorEntry const& entry = checkpoint_.at(place.name.chars);
    Scalar* out = room.data();
    if (place.slice.is_all()) {
      std::vector<std::vector<Range>> parts;  // of each stored dim: the runs of indices that the slice holds
      std::size_t from = 0;
      for (std::size_t const end : grouped(entry, shape.dims)) {
        parts.push_back(runs(shape, from, end));
        from = end;
      }
      std::vector<Range> box(parts.size());
      read(entry, parts, 0, box, out);
    } else {
      read_rows(entry, place.slice, shape, out);
    }
    if (out != room.data() + room.size())
      throw io_error(checkpoint_.name(), ": tensor ", in_quotes(entry.name), " filled ", out - room.data(), " of ",
                     room.size(), " elements");
  }

 private:
  Checkpoint const& checkpoint_;
  CheckpointNames names_;
  std::string bare_of_{};  ///< prefix that the file's names lack

  /// Stored rows that a parameter reads.
  struct RowsOf {
    Range rows{};
    std::string role{};
  };
  /// A parameter as a matrix: its first `outputs` dims are the rows, the others the columns.
  struct AsMatrix {
    std::size_t outputs = 0;
    i64 rows = 1, columns = 1;
  };

  StoredPlace stored(std::string const& role) const {
    if (names_.empty()) return {dovetail::name(role.c_str()), {}};
    StoredPlace place = stored_place(names_, role.c_str());
    if (place.name.empty())
      throw io_error(checkpoint_.name(), ": the model's names say nothing of parameter ", in_quotes(role));
    std::string const full = place.name.chars;
    if (!bare_of_.empty() && full.starts_with(bare_of_)) place.name = dovetail::name(full.c_str() + bare_of_.size());
    return place;
  }

  static bool is_transposed(TensorEntry const& entry, StoredSlice const& slice) {
    return slice.transposed && entry.shape.size() == 2;
  }
  static i64 stored_row_count(TensorEntry const& entry, StoredSlice const& slice) {
    return entry.shape.empty() ? 1 : entry.shape[is_transposed(entry, slice) ? 1 : 0];
  }
  /// @throws IoError where the parameter does not fit the stored tensor's columns, or its slice the rows
  AsMatrix rows_of(TensorEntry const& entry, StoredSlice const& slice, Dims const& dims) const {
    AsMatrix m;
    if (slice.is_all()) {
      m.rows = stored_row_count(entry, slice);
      return m;
    }
    auto const count = static_cast<std::size_t>(dims.size());
    m.outputs = count;
    i64 const inputs = entry.shape.size() == 2 ? entry.shape[is_transposed(entry, slice) ? 0 : 1] : 1;
    while (m.outputs > 0 && m.columns < inputs) m.columns *= dims[static_cast<i64>(--m.outputs)].size;
    for (std::size_t k = 0; k < m.outputs; ++k) m.rows *= dims[static_cast<i64>(k)].size;
    bool const matches = m.columns == inputs && (entry.shape.size() == 1 || entry.shape.size() == 2) &&
                         (!slice.block || m.rows % slice.block == 0) &&
                         slice.row(m.rows - 1) < stored_row_count(entry, slice) &&
                         stored_row_count(entry, slice) == (slice.of ? slice.of : m.rows);
    if (!matches)
      throw io_error(checkpoint_.name(), ": tensor ", in_quotes(entry.name), " is ",
                     shape_text(entry.stored_as, entry.shape), ", but the model reads ", m.rows, " rows of ", m.columns,
                     " (", dim_names(dims), ") from row ", slice.first, " of ", slice.of ? slice.of : m.rows,
                     slice.transposed ? ", transposed" : "", "; is config.json the one of this file?");
    return m;
  }
  /// Runs of stored rows that rows `r` of the parameter are.
  static std::vector<Range> stored_rows(StoredSlice const& slice, Range r) {
    std::vector<Range> all;
    for (i64 at = r.lo; at < r.hi;) {
      i64 const in_block = slice.block ? slice.block - at % slice.block : r.hi - at;
      i64 const size = (std::min)(in_block, r.hi - at), first = slice.row(at);
      all.push_back({first, first + size});
      at += size;
    }
    return all;
  }
  /// Every row of a tensor is read by exactly one parameter.
  void prove_rows(TensorEntry const& entry, std::vector<RowsOf>& rows) const {
    std::sort(rows.begin(), rows.end(), [](RowsOf const& a, RowsOf const& b) { return a.rows.lo < b.rows.lo; });
    bool const columns = is_transposed(entry, stored(rows[0].role).slice);
    i64 const count = entry.shape.empty() ? 1 : entry.shape[columns ? 1 : 0];
    i64 next = 0;
    auto const fault = [&](i64 row, std::string const& what) {
      throw io_error(checkpoint_.name(), ": ", columns ? "column " : "row ", row, " of tensor ", in_quotes(entry.name),
                     " (", shape_text(entry.stored_as, entry.shape), ") is read by ", what,
                     "; is config.json the one of this file?");
    };
    for (RowsOf const& r : rows) {
      if (r.rows.lo > next) fault(next, "no parameter");
      if (r.rows.lo < next) fault(r.rows.lo, "two parameters, one of them " + in_quotes(r.role));
      next = r.rows.hi;
    }
    if (next < count) fault(next, "no parameter");
  }

  /// Reads rows of a stored matrix, turned where it is stored so, into the slice.
  template <class Scalar>
  void read_rows(TensorEntry const& entry, StoredSlice const& slice, WeightShape const& shape, Scalar*& out) const {
    constexpr i64 most = i64{1} << 20;  // elements that are turned at a time
    AsMatrix const m = rows_of(entry, slice, shape.dims);
    auto const columns = runs(shape, m.outputs, static_cast<std::size_t>(shape.dims.size()));
    i64 width = 0;
    for (Range const& c : columns) width += c.size();
    std::vector<Scalar> turned;
    for (Range const& mine : runs(shape, 0, m.outputs))
      for (Range const& rows : stored_rows(slice, mine)) {
        i64 left = 0;  // columns before
        for (Range const& c : columns) {
          if (entry.shape.size() == 1) {
            read_slice(entry, std::span<Range const>(&rows, 1), out + left);
          } else if (!slice.transposed && columns.size() == 1) {
            Range const box[] = {rows, c};
            read_slice(entry, box, out);
          } else {
            i64 const step = (std::max)(i64{1}, most / rows.size());
            for (i64 from = c.lo; from < c.hi; from += step) {
              Range const part{from, (std::min)(from + step, c.hi)};
              Range const turned_box[] = {part, rows}, box[] = {rows, part};
              turned.resize(static_cast<std::size_t>(rows.size() * part.size()));
              read_slice(entry, slice.transposed ? turned_box : box, turned.data());
              for (i64 r = 0; r < rows.size(); ++r)
                for (i64 k = 0; k < part.size(); ++k)
                  out[r * width + left + from - c.lo + k] =
                      turned[static_cast<std::size_t>(slice.transposed ? k * rows.size() + r : r * part.size() + k)];
            }
          }
          left += c.size();
        }
        out += rows.size() * width;
      }
  }
  bool rightly_unread(Model const& model, std::string const& bare_name) const {
    std::string const name = bare_of_ + bare_name;
    for (char const* pattern : model.unread) {
      Vec<Name, 4> taken;
      if (name.size() < sizeof(Name::chars) && matches(pattern, name.c_str(), taken)) return true;
    }
    return false;
  }

  /// Where each stored dim ends among the parameter's dims: (heads, head_dim, embed) is stored as [heads*head_dim,
  /// embed].
  std::vector<std::size_t> grouped(TensorEntry const& entry, Dims const& dims) const {
    std::vector<std::size_t> ends;
    std::size_t k = 0;
    auto const size = [&](std::size_t i) { return dims[static_cast<i64>(i)].size; };
    auto const count = static_cast<std::size_t>(dims.size());
    for (i64 extent : entry.shape) {
      i64 product = k < count ? size(k++) : -1;
      while (product != extent && k < count && product > 0 && product < extent) product *= size(k++);
      if (product != extent) break;
      ends.push_back(k);
    }
    if (ends.size() != entry.shape.size() || k != count) {
      std::vector<i64> wanted;
      for (auto const& e : dims) wanted.push_back(e.size);
      throw io_error(checkpoint_.name(), ": tensor ", in_quotes(entry.name), " is ",
                     shape_text(entry.stored_as, entry.shape), ", but the model's is ", shape_text("", wanted), " (",
                     dim_names(dims), "); is config.json the one of this file?");
    }
    return ends;
  }
  static std::string dim_names(Dims const& dims) {
    std::string text;
    for (auto const& e : dims) text += (text.empty() ? "" : ",") + std::string(e.dim->name);
    return text;
  }

  /// Runs of a stored dim's indices that the ranges of dims [from, end) cover.
  static std::vector<Range> runs(WeightShape const& shape, std::size_t from, std::size_t end) {
    std::vector<Range> all{{0, 1}};
    for (std::size_t k = from; k < end; ++k) {
      Range const r = shape.ranges[k];
      i64 const extent = shape.dims[static_cast<i64>(k)].size;
      std::vector<Range> next;
      for (Range const& a : all)
        for (i64 i = a.lo; i < a.hi; ++i) {
          Range const run{i * extent + r.lo, i * extent + r.hi};
          if (!run.size()) continue;
          if (!next.empty() && next.back().hi == run.lo) next.back().hi = run.hi;
          else next.push_back(run);
        }
      all = std::move(next);
    }
    return all;
  }

  /// Reads the boxes of all combinations of runs in row-major order of the slice.
  template <class Scalar>
  void read(TensorEntry const& entry, std::vector<std::vector<Range>> const& parts, std::size_t dim,
            std::vector<Range>& box, Scalar*& out) const {
    if (dim == parts.size()) {
      read_slice(entry, box, out);
      i64 n = 1;
      for (Range const& r : box) n *= r.size();
      out += n;
      return;
    }
    bool single_after = true;
    for (std::size_t d = dim + 1; d < parts.size(); ++d) single_after = single_after && parts[d].size() == 1;
    for (Range const& run : parts[dim])
      for (i64 i = run.lo; i < run.hi; i = box[dim].hi) {
        box[dim] = {i, single_after ? run.hi : i + 1};
        read(entry, parts, dim + 1, box, out);
      }
  }
};

}  // namespace dovetail
