// SPDX-License-Identifier: MIT
// Any bytes as the index of two files in memory, "one.safetensors" with tensors 'a' and 'c' and "two.safetensors" with
// 'b': an index that is accepted names files of its directory only, and every tensor of it is in the file it says.
#pragma once
#include <dovetail/io/checkpoint.hpp>

#include "read_safetensors.hpp"

namespace fuzz {

inline std::string refusal_of_index(std::string_view input) {
  static auto const one = safetensors_bytes(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})"
      "\n123");
  static auto const two = safetensors_bytes(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})"
                                            "\n4");
  try {
    auto const index = read_checkpoint_index(parse_json(input, "index"), "index");
    std::vector<SafetensorsFile> files;
    for (auto const& name : index.files) {
      must(name.find_first_of(std::string_view("/\\\0", 3)) == name.npos && name != "." && name != ".." &&
               std::filesystem::path(name).filename() == name,
           "a name that leads elsewhere");
      if (name != "one.safetensors" && name != "two.safetensors") return "not there";
      files.push_back(SafetensorsFile::from_memory(name[0] == 'o' ? one : two, name));
    }
    auto const tensors = merged_tensors(index, files);
    must(tensors.size() == index.places.size(), "index and files hold different tensors");
    for (auto const& tensor : tensors) must(index.places.at(tensor.name) == tensor.file, "a tensor in another file");
    return "";
  } catch (IoError const& e) {
    return checked_message(e.what());
  }
}

}  // namespace fuzz
