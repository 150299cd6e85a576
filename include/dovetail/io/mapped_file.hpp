// SPDX-License-Identifier: MIT
// The bytes of a file, read-only: mapped into memory where the system can, otherwise read whole. Bytes stay in place
// for the life of the object, also when it is moved. A mapped file must not be cut short by another program meanwhile:
// systems answer a read beyond the new end with a signal. Readers of weights and of JSON open their files here.
#pragma once
#include <cerrno>
#include <cstddef>
#include <dovetail/io/error.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <utility>
#include <vector>
#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace dovetail {

/// How a file's bytes are brought into memory.
enum class Access { map, copy };

/// Read-only bytes of a regular file; move-only.
class MappedFile {
 public:
  /// Opens `path`; an empty file gives no bytes. Where mapping fails the file is read instead.
  /// @throws IoError naming path and reason: not there, a directory, no permission, not readable.
  explicit MappedFile(std::filesystem::path const& path, Access access = Access::map) : path_(path.string()) {
    std::error_code failed;
    auto const status = std::filesystem::status(path, failed);
    if (status.type() == std::filesystem::file_type::not_found) throw absent(path);
    if (failed) throw io_error(path_, ": cannot be opened (", failed.message(), ")");
    if (status.type() == std::filesystem::file_type::directory)
      throw io_error(path_, ": is a directory; a file is expected");
    if (status.type() != std::filesystem::file_type::regular) throw io_error(path_, ": is not a regular file");
    if (access == Access::copy || !map()) read();
  }

  MappedFile(MappedFile&& o) noexcept
      : path_(std::move(o.path_)),
        copy_(std::move(o.copy_)),
        bytes_(std::exchange(o.bytes_, {})),
        mapped_(std::exchange(o.mapped_, false)) {}
  MappedFile& operator=(MappedFile&& o) noexcept {
    std::swap(path_, o.path_);
    std::swap(copy_, o.copy_);
    std::swap(bytes_, o.bytes_);
    std::swap(mapped_, o.mapped_);
    return *this;
  }
  ~MappedFile() {
#if __has_include(<sys/mman.h>)
    if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
#endif
  }

  std::span<std::byte const> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<char const*>(bytes_.data()), bytes_.size()}; }
  std::string const& path() const { return path_; }
  bool mapped() const { return mapped_; }

 private:
  IoError absent(std::filesystem::path const& path) const {
    std::error_code none;
    auto const target = std::filesystem::read_symlink(path, none);  // caches of models are folders of links
    if (none) return io_error(path_, ": no such file");
    return io_error(path_, ": is a link to ", in_quotes(target.string()), ", where there is no file; get it again");
  }

  /// True where the file is mapped, or empty; false where the system cannot map it.
  bool map() {
#if __has_include(<sys/mman.h>)
    int const file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) throw io_error(path_, ": cannot be opened (", reason(errno), ")");
    struct stat status {};
    bool const known = ::fstat(file, &status) == 0 && status.st_size >= 0;
    auto const size = static_cast<std::uintmax_t>(status.st_size);
    void* at = MAP_FAILED;
    if (known && size > 0 && size <= (std::numeric_limits<std::size_t>::max)())
      at = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, file, 0);
    ::close(file);
    if (at == MAP_FAILED) return known && size == 0;
    bytes_ = {static_cast<std::byte const*>(at), static_cast<std::size_t>(size)};
    mapped_ = true;
    return true;
#else
    return false;
#endif
  }

  void read() {
    errno = 0;
    std::ifstream stream(path_, std::ios::binary | std::ios::ate);
    auto const size = stream ? static_cast<std::streamoff>(stream.tellg()) : -1;
    if (size < 0) throw io_error(path_, ": cannot be opened (", reason(errno), ")");
    copy_.resize(static_cast<std::size_t>(size));
    stream.seekg(0);
    if (size > 0 && !stream.read(reinterpret_cast<char*>(copy_.data()), size))
      throw io_error(path_, ": only ", stream.gcount(), " of ", size, " bytes could be read");
    bytes_ = copy_;
  }

  std::string path_;
  std::vector<std::byte> copy_;
  std::span<std::byte const> bytes_;
  bool mapped_ = false;
};

}  // namespace dovetail
