// SPDX-License-Identifier: MIT
// The weights of a model, found in a directory or given as a file: names to tensors, wherever they are stored.
// Loaders ask a checkpoint and never a file, so that how many files there are is nobody else's business.
#pragma once
#include <dovetail/io/safetensors.hpp>

namespace dovetail {

class Checkpoint {
 public:
  /// Opens the `model.safetensors` of a directory, or the file itself. @throws IoError where there is none, or a bad
  /// one
  explicit Checkpoint(std::filesystem::path const& path) : file_(weights_at(path)) {}
  /// Takes a file that is open, or bytes in memory.
  explicit Checkpoint(SafetensorsFile file) : file_(std::move(file)) {}

  std::span<TensorEntry const> tensors() const { return file_.tensors(); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& tensor : tensors()) all.push_back(tensor.name);
    return all;
  }
  TensorEntry const* find(std::string_view name) const { return file_.find(name); }
  TensorEntry const& at(std::string_view name) const { return file_.at(name); }
  /// The file, for errors.
  std::string const& name() const { return file_.name(); }

 private:
  static std::filesystem::path weights_at(std::filesystem::path const& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw io_error(path.string(),
                     ": no such file or directory; a model directory or a .safetensors file is expected");
    if (!std::filesystem::is_directory(path, ignored)) return path;
    auto const single = path / "model.safetensors", index = path / "model.safetensors.index.json";
    if (std::filesystem::exists(single, ignored)) return single;
    if (std::filesystem::exists(index, ignored))
      throw io_error(index.string(),
                     ": weights in several files are not read by this version; "
                     "merge them into one model.safetensors");
    throw io_error(path.string(), ": holds no model.safetensors; a model directory or a .safetensors file is expected");
  }

  SafetensorsFile file_;
};

}  // namespace dovetail
