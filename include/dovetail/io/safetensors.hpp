// SPDX-License-Identifier: MIT
// A safetensors file, opened for reading: mapped, its header checked whole, its tensors listed by name.
// Once open, every entry's bytes lie inside the file; what is wrong with a file is said when it is opened. Entries are
// valid while the object lives, also when it is moved. Loaders and `Checkpoint` use it.
#pragma once
#include <dovetail/io/read_slice.hpp>
#include <dovetail/io/safetensors_header.hpp>
#include <dovetail/io/tensor_list.hpp>
#include <memory>

namespace dovetail {

/// A safetensors file, mapped into memory, whose header was checked.
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
  TensorEntry const* find(std::string_view name) const { return find_tensor(tensors(), name); }

  /// The tensor of this name. @throws IoError that lists the closest names where there is none
  TensorEntry const& at(std::string_view name) const { return tensor_named(tensors(), name, *name_); }

 private:
  SafetensorsFile(std::span<std::byte const> bytes, std::string name)
      : name_(std::make_unique<std::string const>(std::move(name))), header_(read_safetensors_header(bytes, *name_)) {}

  std::optional<MappedFile> file_;           // none where the bytes are the caller's
  std::unique_ptr<std::string const> name_;  // on the heap: entries refer to it, and it must not move
  SafetensorsHeader header_;
};

}  // namespace dovetail
