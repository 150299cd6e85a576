// SPDX-License-Identifier: MIT
// Where a parameter lies in a stored tensor: which of its dims each stored dim is, which stored indices a rank's slice
// covers, and the order of a matrix that is stored the other way round. Geometry alone; nothing is read here.
#pragma once
#include <algorithm>
#include <dovetail/device/device.hpp>
#include <dovetail/io/error.hpp>
#include <dovetail/io/tensor_entry.hpp>
#include <dovetail/models/checkpoint_names.hpp>
#include <vector>

namespace dovetail {

/// Is the stored matrix inputs x outputs? A vector has but one order.
inline bool is_turned(TensorEntry const& entry, StoredSlice const& slice) {
  return slice.transposed && entry.shape.size() == 2;
}

/// Shape that the stored tensor would have if it held this parameter alone, outputs first.
inline std::vector<i64> own_shape(TensorEntry const& entry, StoredSlice const& slice, Dims const& dims) {
  std::vector<i64> shape = entry.shape;
  if (is_turned(entry, slice)) std::swap(shape[0], shape[1]);
  if (!slice.of || shape.empty() || shape[0] != slice.of) return shape;
  i64 elements = 1, others = 1;
  for (auto const& e : dims) elements *= e.size;
  for (std::size_t k = 1; k < shape.size(); ++k) others *= shape[k];
  shape[0] = others > 0 && elements % others == 0 ? elements / others : -1;
  return shape;
}

/// Where each stored dim ends among the parameter's dims: (heads, head_dim, embed) is stored as [heads*head_dim,
/// embed].
/// @throws IoError where the two do not fit
inline std::vector<std::size_t> stored_ends(TensorEntry const& entry, StoredSlice const& slice, Dims const& dims) {
  std::vector<std::size_t> ends;
  std::vector<i64> const shape = own_shape(entry, slice, dims);
  std::size_t k = 0;
  auto const size = [&](std::size_t i) { return dims[static_cast<i64>(i)].size; };
  auto const count = static_cast<std::size_t>(dims.size());
  for (i64 extent : shape) {
    i64 product = k < count ? size(k++) : -1;
    while (product != extent && k < count && product > 0 && product < extent) product *= size(k++);
    if (product != extent) break;
    ends.push_back(k);
  }
  i64 const rows = shape.empty() ? 1 : shape[0], stored = slice.of ? slice.of : rows;
  bool const fits = ends.size() == shape.size() && k == count && (!slice.block || rows % slice.block == 0) &&
                    slice.row(rows - 1) < stored;
  if (fits) return ends;
  std::vector<i64> wanted;
  std::string names;
  for (auto const& e : dims) {
    wanted.push_back(e.size);
    names += (names.empty() ? "" : ",") + std::string(e.dim->name);
  }
  throw io_error(entry.file, ": tensor ", in_quotes(entry.name), " is ", shape_text(entry.stored_as, entry.shape),
                 ", but the model's is ", shape_text("", wanted), " (", names, ")",
                 slice.of ? ", one of several in " + std::to_string(slice.of) + " rows" : "",
                 slice.transposed ? ", stored the other way round" : "", "; is config.json the one of this file?");
}

/// Runs of stored rows that rows `r` of a parameter are.
inline std::vector<Range> stored_rows(StoredSlice const& slice, Range r) {
  std::vector<Range> all;
  for (i64 at = r.lo; at < r.hi;) {
    i64 const in_block = slice.block ? slice.block - at % slice.block : r.hi - at;
    i64 const size = (std::min)(in_block, r.hi - at), first = slice.row(at);
    all.push_back({first, first + size});
    at += size;
  }
  return all;
}

/// Runs of a stored dim's indices that the ranges of dims [from, end) cover.
inline std::vector<Range> covered_runs(WeightShape const& shape, std::size_t from, std::size_t end) {
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

/// What a rank's slice covers: for each dim of own_shape() the runs of stored indices, in the slice's order.
using StoredParts = std::vector<std::vector<Range>>;

/// The runs that a rank's slice covers. @throws IoError where parameter and stored tensor do not fit
inline StoredParts stored_parts(TensorEntry const& entry, StoredSlice const& slice, WeightShape const& shape) {
  StoredParts parts;
  std::size_t from = 0;
  for (std::size_t const end : stored_ends(entry, slice, shape.dims)) {
    parts.push_back(covered_runs(shape, from, end));
    from = end;
  }
  if (parts.empty() || !slice.of) return parts;
  std::vector<Range> rows;
  for (Range const& own : parts[0])
    for (Range const& r : stored_rows(slice, own)) rows.push_back(r);
  parts[0] = std::move(rows);
  return parts;
}

/// Indices that runs cover.
inline i64 indices_in(std::vector<Range> const& runs) {
  i64 n = 0;
  for (Range const& r : runs) n += r.size();
  return n;
}

}  // namespace dovetail
