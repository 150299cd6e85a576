// SPDX-License-Identifier: MIT
// The index of weights that lie in several files (`model.safetensors.index.json`): which file holds which tensor.
// File names are believed only where they are plain names of safetensors files, so that no index reaches outside its
// directory; index and files must agree on every tensor. `Checkpoint` reads and checks with these.
#pragma once
#include <dovetail/io/json_field.hpp>
#include <dovetail/io/safetensors.hpp>
#include <dovetail/meta/counted.hpp>
#include <dovetail/meta/excerpt.hpp>
#include <map>

namespace dovetail {

/// Most files that one index may name.
inline constexpr std::size_t checkpoint_file_limit = 4096;

/// What an index says.
struct CheckpointIndex {
  std::string name;                           ///< of the index itself, for errors
  std::map<std::string, std::string> places;  ///< tensor to file
  std::vector<std::string> files;             ///< each once, sorted
};

namespace checkpoint {

/// True for the name of a safetensors file in the directory at hand: nothing that leads elsewhere, nothing that a
/// terminal would act on, and no longer than file systems allow.
inline bool plain_file_name(std::string const& name) {
  constexpr std::size_t longest = 255;
  return name.size() <= longest && name.ends_with(".safetensors") && name.find_first_of("/\\:") == std::string::npos &&
         excerpt(name, 0, longest) == name;
}

/// The name of the first tensor that is placed in `file`, and how many there are: "2 tensors ('a', ...)".
inline std::string tensors_of(CheckpointIndex const& index, std::string const& file) {
  std::string first;
  i64 count = 0;
  for (auto const& [tensor, place] : index.places)
    if (place == file && ++count == 1) first = in_quotes(tensor);
  return counted(count, "tensor") + " (" + first + (count > 1 ? ", ...)" : ")");
}

}  // namespace checkpoint

/// Reads an index. @param file  names it in errors
/// @throws IoError naming file and field: no object, no tensors, a file name that is none
inline CheckpointIndex read_checkpoint_index(Json const& json, std::string const& file) {
  if (!json.is_object()) throw io_error(file, ": must be an object that has a 'weight_map'; it is ", json_kind(json));
  CheckpointIndex index{file, {}, {}};
  optional_object(json, "metadata", file);
  Json const* const map = present(json, "weight_map", file);
  constexpr char const* expected = "it names the file of each tensor";
  if (!map) throw io_error(file, ": field 'weight_map' is missing; ", expected);
  if (!map->is_object()) throw io_error(file, ": field 'weight_map' must be an object; it is ", json_kind(*map));
  if (map->empty()) throw io_error(file, ": field 'weight_map' is empty; ", expected);
  for (auto const& [tensor, place] : map->items()) {
    std::string const field = "weight_map." + tensor;
    auto name = json_value<std::string>(place, field, file);
    if (!checkpoint::plain_file_name(name))
      throw io_error(file, ": field ", in_quotes(field), " must be the plain name of a .safetensors file in the same ",
                     "directory; it is ", in_quotes(name));
    index.places.emplace_hint(index.places.end(), tensor, std::move(name));
  }
  for (auto const& [tensor, place] : index.places) index.files.push_back(place);
  std::sort(index.files.begin(), index.files.end());
  index.files.erase(std::unique(index.files.begin(), index.files.end()), index.files.end());
  if (index.files.size() > checkpoint_file_limit)
    throw io_error(file, ": names ", index.files.size(), " files; at most ", checkpoint_file_limit, " are read");
  return index;
}

/// The tensors of all files, sorted by name. @param files  opened, in the order of `index.files`
/// @throws IoError naming tensor and files where the index and the files do not say the same
inline std::vector<TensorEntry> merged_tensors(CheckpointIndex const& index, std::span<SafetensorsFile const> files) {
  auto const position = [&](std::string const& file) {
    return static_cast<std::size_t>(std::lower_bound(index.files.begin(), index.files.end(), file) -
                                    index.files.begin());
  };
  std::vector<TensorEntry> all;
  for (std::size_t i = 0; i < files.size(); ++i)
    for (auto const& tensor : files[i].tensors()) {
      auto const where = [&] { return files[i].name() + ": holds tensor " + in_quotes(tensor.name); };
      auto const place = index.places.find(tensor.name);
      if (place == index.places.end())
        throw io_error(where(), ", which the index ", index.name, " does not name; get the files of one version");
      if (std::size_t const stated = position(place->second); stated != i)
        throw io_error(where(), files[stated].find(tensor.name) ? " and so does " : ", but the index places it in ",
                       files[stated].name(), "; each tensor must be in one file, that of the index");
      all.push_back(tensor);
    }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
  for (auto const& [tensor, file] : index.places)
    if (!find_tensor(all, tensor))
      throw io_error(index.name, ": places tensor ", in_quotes(tensor), " in ", in_quotes(file),
                     ", which does not hold it; get the files of one version");
  return all;
}

}  // namespace dovetail
