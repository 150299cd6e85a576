// SPDX-License-Identifier: MIT
// Bytes of an element by storage class: what turns a plan's element counts into the bytes of one kind of device. Every
// prediction takes it, so that one plan serves devices of all number types.
#pragma once
#include <dovetail/tensor/dtype.hpp>

namespace dovetail {

/// Bytes of one element of each storage class.
struct StorageBytes {
  i64 of[storage_kinds]{};  ///< by Storage
  constexpr i64 operator[](Storage s) const { return of[static_cast<int>(s)]; }
};

/// Devices that keep activations, weights and caches in f32, tokens as 32-bit and counts as 64-bit integers.
inline constexpr StorageBytes f32_storage{{4, 4, 4, 4, 16, 8}};
/// The same with f64.
inline constexpr StorageBytes f64_storage{{8, 8, 8, 4, 16, 8}};

}  // namespace dovetail
