// SPDX-License-Identifier: MIT
// The weights of a model, found in a directory or given as a file: names to tensors, wherever they are stored.
// Loaders ask a checkpoint and never a file, so that how many files there are is nobody else's business. Files are
// mapped: what no rank reads is never brought into memory.
#pragma once
#include <dovetail/io/checkpoint_index.hpp>

namespace dovetail {

/// Weights in one file or in several; move-only. Entries are valid while the object lives, also when it is moved, and
/// each names the file that holds it.
class Checkpoint {
 public:
  /// Opens the weights of a directory: `model.safetensors`, or else the files that `model.safetensors.index.json`
  /// names. Where a directory has both, the single file is read, as the transformers library does. A path may also be
  /// a safetensors file itself, or an index (whatever ends in `.index.json`). Links to files are followed.
  /// @throws IoError naming file, tensor or field: nothing there, a bad file, an index that its files do not match
  explicit Checkpoint(std::filesystem::path const& path) {
    auto const weights = weights_at(path);
    if (!weights.string().ends_with(".index.json")) {
      take(SafetensorsFile(weights));
      return;
    }
    name_ = weights.string();
    CheckpointIndex const index = read_checkpoint_index(load_json(weights), name_);
    for (auto const& file : index.files) {
      auto const part = weights.parent_path() / file;
      if (!there(part))
        throw io_error(name_, ": places ", checkpoint::tensors_of(index, file), " in ", in_quotes(file),
                       ", which is not there; get all ", index.files.size(), " files of the model");
      files_.emplace_back(part);
    }
    tensors_ = merged_tensors(index, files_);
  }
  /// Takes a file that is open, or bytes in memory.
  explicit Checkpoint(SafetensorsFile file) { take(std::move(file)); }

  /// All tensors, sorted by name.
  std::span<TensorEntry const> tensors() const { return tensors_; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& tensor : tensors_) all.push_back(tensor.name);
    return all;
  }
  /// The tensor of this name, or nullptr.
  TensorEntry const* find(std::string_view name) const { return find_tensor(tensors_, name); }
  /// The tensor of this name. @throws IoError that lists the closest names where there is none
  TensorEntry const& at(std::string_view name) const { return tensor_named(tensors_, name, name_); }
  /// The file, or the index of the files, for errors.
  std::string const& name() const { return name_; }
  /// The files, sorted by name.
  std::span<SafetensorsFile const> files() const { return files_; }

 private:
  void take(SafetensorsFile file) {
    name_ = file.name();
    tensors_.assign(file.tensors().begin(), file.tensors().end());
    files_.push_back(std::move(file));
  }

  /// True also for a link to nothing, which opening it then reports.
  static bool there(std::filesystem::path const& path) {
    std::error_code ignored;
    return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  }

  static std::filesystem::path weights_at(std::filesystem::path const& path) {
    constexpr char const* expected = "a model directory or a .safetensors file is expected";
    if (!there(path)) throw io_error(path.string(), ": no such file or directory; ", expected);
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) return path;
    for (char const* name : {"model.safetensors", "model.safetensors.index.json"})
      if (there(path / name)) return path / name;
    throw io_error(path.string(), ": holds neither model.safetensors nor model.safetensors.index.json; ", expected);
  }

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::vector<TensorEntry> tensors_;
};

}  // namespace dovetail
