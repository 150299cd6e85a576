// SPDX-License-Identifier: MIT
// A safetensors file, opened for reading: mapped, its header checked whole, its tensors listed by name.
// Once open, every entry's bytes lie inside the file; what is wrong with a file is said when it is opened. Entries are
// valid while the object lives, also when it is moved. Loaders and `Checkpoint` use it.
#pragma once
#include <dovetail/io/read_slice.hpp>
#include <dovetail/io/safetensors_header.hpp>
#include <dovetail/io/suggest.hpp>
#include <memory>

namespace dovetail {

class SafetensorsFile {
 public:
  /// Opens and checks the file. @throws IoError naming file, tensor and numbers
  explicit SafetensorsFile(std::filesystem::path const& path, Access access = Access::map)
      : file_(std::in_place, path, access), name_(std::make_unique<std::string const>(file_->path())) {
    header_ = read_safetensors_header(file_->bytes(), *name_);
  }

  /// The same over bytes that the caller keeps alive. @param name  stands for the file in errors
  static SafetensorsFile from_memory(std::span<std::byte const> bytes, std::string name = "(memory)") {
    return SafetensorsFile(bytes, std::move(name));
  }

  /// All tensors, sorted by name.
  std::span<TensorEntry const> tensors() const { return header_.tensors; }
  /// The strings under __metadata__.
  std::map<std::string, std::string> const& metadata() const { return header_.metadata; }
  std::string const& name() const { return *name_; }

  /// The tensor of this name, or nullptr.
  TensorEntry const* find(std::string_view name) const {
    auto const at = std::lower_bound(header_.tensors.begin(), header_.tensors.end(), name,
                                     [](TensorEntry const& t, std::string_view wanted) { return t.name < wanted; });
    return at != header_.tensors.end() && at->name == name ? &*at : nullptr;
  }

  /// The tensor of this name. @throws IoError that lists the closest names where there is none
  TensorEntry const& at(std::string_view name) const {
    if (auto const* found = find(name)) return *found;
    std::vector<std::string> names;
    for (auto const& tensor : header_.tensors) names.push_back(tensor.name);
    std::string near;
    for (auto const& candidate : closest(name, names)) near += (near.empty() ? "" : ", ") + in_quotes(candidate);
    throw io_error(*name_, ": has no tensor ", in_quotes(name), " among its ", names.size(),
                   near.empty() ? "" : "; did you mean ", near, near.empty() ? "" : "?");
  }

 private:
  SafetensorsFile(std::span<std::byte const> bytes, std::string name)
      : name_(std::make_unique<std::string const>(std::move(name))), header_(read_safetensors_header(bytes, *name_)) {}

  std::optional<MappedFile> file_;           // none where the bytes are the caller's
  std::unique_ptr<std::string const> name_;  // on the heap: entries refer to it, and it must not move
  SafetensorsHeader header_;
};

}  // namespace dovetail
