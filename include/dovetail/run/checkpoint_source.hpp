// SPDX-License-Identifier: MIT
// Weights from a checkpoint: a rank reads its slices and nothing else. Before anything is read, the names are proved:
// every parameter of the plan has its tensor, and every tensor of the file is read by some parameter or rightly left
// alone; and every slice fills its room exactly.
#pragma once
#include <dovetail/io/checkpoint.hpp>
#include <dovetail/run/model.hpp>
#include <dovetail/run/weight_store.hpp>
#include <set>

namespace dovetail {

class CheckpointSource {
 public:
  /// @throws IoError where the names of plan and file do not match
  CheckpointSource(Checkpoint const& checkpoint, Model const& model, Plan const& plan)
      : checkpoint_(checkpoint), names_(model.names) {
    std::set<std::string> read;
    for (i32 p = 0; p < plan.parameters.size(); ++p) {
      Parameter const& parameter = plan.parameters[p];
      each_iteration(plan, parameter.layer, parameter.loop, [&](i64, i64 layer) {
        std::string const name = stored(indexed_name(parameter.name, layer));
        grouped(checkpoint_.at(name), plan.values[parameter.value].dims);
        read.insert(name);
      });
    }
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
    TensorEntry const& entry = checkpoint_.at(stored(name));
    std::vector<std::vector<Range>> parts;  // of each stored dim: the runs of indices that the slice holds
    std::size_t from = 0;
    for (std::size_t const end : grouped(entry, shape.dims)) {
      parts.push_back(runs(shape, from, end));
      from = end;
    }
    Scalar* out = room.data();
    std::vector<Range> box(parts.size());
    read(entry, parts, 0, box, out);
    if (out != room.data() + room.size())
      throw io_error(checkpoint_.name(), ": tensor ", in_quotes(entry.name), " filled ", out - room.data(), " of ",
                     room.size(), " elements");
  }

 private:
  Checkpoint const& checkpoint_;
  std::span<CheckpointName const> names_;

  std::string stored(std::string const& role) const {
    if (names_.empty()) return role;
    Name const name = stored_name(names_.data(), static_cast<i32>(names_.size()), role.c_str());
    if (name.empty())
      throw io_error(checkpoint_.name(), ": the model's names say nothing of parameter ", in_quotes(role));
    return name.chars;
  }
  static bool rightly_unread(Model const& model, std::string const& name) {
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
