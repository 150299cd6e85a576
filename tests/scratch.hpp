// SPDX-License-Identifier: MIT
// A directory of a test's own, empty at the start and gone at the end, and a file written into it with given bytes.
#pragma once
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

namespace dovetail::test {

class Scratch {
 public:
  Scratch() : path_(std::filesystem::temp_directory_path() / ("dovetail-" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directory(path_);
  }
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  std::filesystem::path const& path() const { return path_; }

  std::filesystem::path write(std::string_view name, std::string_view text) const {
    std::ofstream stream(path_ / name, std::ios::binary);
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The text of the Error that `action` throws; "" where it throws nothing. Any other exception passes through.
template <class Error, class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

}  // namespace dovetail::test
