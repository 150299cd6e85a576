// SPDX-License-Identifier: MIT
// Weights from a checkpoint: a rank reads its slices and nothing else. Before anything is read, the names are proved:
// every parameter of the plan has its tensor, every row of a tensor that parameters share is read by exactly one of
// them, and every tensor of the file is read or rightly left alone; and every slice fills its room exactly.
#pragma once
#include <algorithm>
#include <cstring>
#include <dovetail/io/checkpoint.hpp>
#include <dovetail/io/finite.hpp>
#include <dovetail/run/model.hpp>
#include <dovetail/run/stored_parts.hpp>
#include <dovetail/run/weight_store.hpp>
#include <map>
#include <set>

namespace dovetail {

/// A WeightSource that reads a checkpoint. It refers to the checkpoint, which must outlive it.
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
        stored_ends(entry, place.slice, dims);
        auto const shape = own_shape(entry, place.slice, dims);
        auto& rows = shared[entry.name];
        for (Range const& r : stored_rows(place.slice, Range{0, shape.empty() ? 1 : shape[0]}))
          rows.push_back({r, role});
        read.insert(entry.name);
      });
    }
    for (auto& [name, rows] : shared) prove_rows(checkpoint_.at(name), rows);
    if (TensorEntry const* copy = *model.tied_copy ? checkpoint_.find(model.tied_copy) : nullptr) {
      prove_copy(*copy, checkpoint_.at(stored("embedding.weight").name.chars));
      read.insert(copy->name);
    }
    std::string extra;
    int count = 0;
    for (auto const& t : checkpoint_.tensors()) {
      if (read.contains(t.name) || rightly_unread(model, t.name)) continue;
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
    StoredParts const parts = stored_parts(entry, place.slice, shape);
    std::vector<Range> box(parts.size());
    if (is_turned(entry, place.slice)) read_turned(entry, parts, out);
    else read(entry, parts, 0, box, out);
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

  StoredPlace stored(std::string const& role) const {
    if (names_.empty()) return {dovetail::name(role.c_str()), {}};
    StoredPlace place = stored_place(names_, role.c_str());
    if (place.name.empty())
      throw io_error(checkpoint_.name(), ": the model's names say nothing of parameter ", in_quotes(role));
    std::string const full = place.name.chars;
    if (!bare_of_.empty() && full.starts_with(bare_of_)) place.name = dovetail::name(full.c_str() + bare_of_.size());
    return place;
  }

  bool rightly_unread(Model const& model, std::string const& bare_name) const {
    std::string const name = bare_of_ + bare_name;
    for (char const* pattern : model.unread) {
      Vec<Name, 4> taken;
      if (name.size() < sizeof(Name::chars) && matches(pattern, name.c_str(), taken)) return true;
    }
    return false;
  }

  /// A head that is stored although it is tied is the embedding, byte for byte.
  void prove_copy(TensorEntry const& head, TensorEntry const& embedding) const {
    bool const same = head.shape == embedding.shape && head.element == embedding.element &&
                      head.bytes.size() == embedding.bytes.size() &&
                      std::memcmp(head.bytes.data(), embedding.bytes.data(), head.bytes.size()) == 0;
    if (!same)
      throw io_error(checkpoint_.name(), ": tensor ", in_quotes(head.name), " differs from ", in_quotes(embedding.name),
                     ", but config.json ties the two: 'tie_word_embeddings' must be false, or the file lack the first");
  }

  /// Every row of a tensor is read by exactly one parameter.
  void prove_rows(TensorEntry const& entry, std::vector<RowsOf>& rows) const {
    std::sort(rows.begin(), rows.end(), [](RowsOf const& a, RowsOf const& b) { return a.rows.lo < b.rows.lo; });
    bool const turned = is_turned(entry, stored(rows[0].role).slice);
    i64 const count = entry.shape.empty() ? 1 : entry.shape[turned ? 1 : 0];
    i64 next = 0;
    auto const fault = [&](i64 row, std::string const& what) {
      throw io_error(checkpoint_.name(), ": ", turned ? "column " : "row ", row, " of tensor ", in_quotes(entry.name),
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

  /// Reads a matrix that is stored as columns x rows, a piece at a time, and turns it.
  template <class Scalar>
  static void read_turned(TensorEntry const& entry, StoredParts const& parts, Scalar*& out) {
    constexpr i64 most = i64{1} << 20;  // elements of a piece
    i64 const width = indices_in(parts[1]);
    std::vector<Scalar> piece;
    for (Range const& rows : parts[0]) {
      i64 const step = (std::max)(i64{1}, most / rows.size());
      i64 left = 0;  // columns before
      for (Range const& columns : parts[1])
        for (i64 from = columns.lo, to; from < columns.hi; from = to) {
          to = (std::min)(from + step, columns.hi);
          Range const box[] = {{from, to}, rows};
          piece.resize(static_cast<std::size_t>(rows.size() * (to - from)));
          read_slice(entry, box, piece.data());
          check_finite<Scalar>(entry, box, piece);
          for (i64 r = 0; r < rows.size(); ++r)
            for (i64 k = 0; k < to - from; ++k)
              out[r * width + left + k] = piece[static_cast<std::size_t>(k * rows.size() + r)];
          left += to - from;
        }
      out += rows.size() * width;
    }
  }

  /// Reads the boxes of all combinations of runs in row-major order of the slice.
  template <class Scalar>
  void read(TensorEntry const& entry, StoredParts const& parts, std::size_t dim, std::vector<Range>& box,
            Scalar*& out) const {
    if (dim == parts.size()) {
      read_slice(entry, box, out);
      i64 n = 1;
      for (Range const& r : box) n *= r.size();
      check_finite<Scalar>(entry, box, {out, static_cast<std::size_t>(n)});
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
