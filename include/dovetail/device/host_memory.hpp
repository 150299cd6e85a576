// SPDX-License-Identifier: MIT
// Memory of the devices that compute on the host: owned, aligned for every vector unit, zero when it is made. Zeroing
// is left to the operating system where it can be, so a cache for a long context costs only the pages that are written.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <dovetail/meta/integer.hpp>
#include <memory>
#include <stdexcept>
#include <string>

namespace dovetail {

/// Owned bytes; movable, and an address taken before a move stays good.
class HostMemory {
 public:
  static constexpr i64 alignment = 64;

  HostMemory() = default;
  /// @throws std::runtime_error where the bytes cannot be had
  explicit HostMemory(i64 bytes) : bytes_(bytes) {
    if (bytes >= 0) block_.reset(std::calloc(static_cast<std::size_t>(bytes) + alignment, 1));
    if (!block_) throw std::runtime_error("cannot allocate " + std::to_string(bytes) + " bytes of host memory");
    auto const address = reinterpret_cast<std::uintptr_t>(block_.get());
    start_ = static_cast<char*>(block_.get()) + (alignment - address % alignment) % alignment;
  }

  void* get() const { return block_ ? start_ : nullptr; }
  i64 bytes() const { return block_ ? bytes_ : 0; }
  template <class T>
  T* as() const {
    return static_cast<T*>(get());
  }

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  std::unique_ptr<void, Free> block_;
  void* start_ = nullptr;
  i64 bytes_ = 0;
};

/// Room for what a kernel needs only while it runs. It grows by doubling, so that a steady run allocates nothing.
class Scratch {
 public:
  /// At least `count` elements of any content; valid until the next call.
  template <class T>
  T* room(i64 count) {
    i64 const wanted = count * static_cast<i64>(sizeof(T));
    if (wanted > memory_.bytes() || !memory_.get())
      memory_ = HostMemory(wanted > 2 * memory_.bytes() ? wanted : 2 * memory_.bytes());
    return memory_.as<T>();
  }

 private:
  HostMemory memory_;
};

}  // namespace dovetail
