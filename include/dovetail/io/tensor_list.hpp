// SPDX-License-Identifier: MIT
// Tensors by name: the search of everything that holds a sorted list of entries, and the error that suggests names.
// A file and a checkpoint of many files answer alike because both ask here.
#pragma once
#include <algorithm>
#include <dovetail/io/error.hpp>
#include <dovetail/io/suggest.hpp>
#include <dovetail/io/tensor_entry.hpp>

namespace dovetail {

/// The entry of this name, or nullptr. @pre `tensors` is sorted by name
inline TensorEntry const* find_tensor(std::span<TensorEntry const> tensors, std::string_view name) {
  auto const at = std::lower_bound(tensors.begin(), tensors.end(), name,
                                   [](TensorEntry const& t, std::string_view wanted) { return t.name < wanted; });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

/// The entry of this name. @param file  names the list in the error
/// @throws IoError that lists the closest names where there is none
inline TensorEntry const& tensor_named(std::span<TensorEntry const> tensors, std::string_view name,
                                       std::string const& file) {
  if (auto const* found = find_tensor(tensors, name)) return *found;
  std::vector<std::string> names;
  for (auto const& tensor : tensors) names.push_back(tensor.name);
  std::string near;
  for (auto const& candidate : closest(name, names)) near += (near.empty() ? "" : ", ") + in_quotes(candidate);
  throw io_error(file, ": has no tensor ", in_quotes(name), " among its ", names.size(),
                 near.empty() ? "" : "; did you mean ", near, near.empty() ? "" : "?");
}

}  // namespace dovetail
