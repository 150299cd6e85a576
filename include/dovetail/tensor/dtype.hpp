// SPDX-License-Identifier: MIT
// Element types of buffers and of files, and the storage classes by which a plan counts: a plan holds element counts
// and a class, a device says how many bytes an element of each class takes.
#pragma once
#include <dovetail/meta/integer.hpp>

namespace dovetail {

/// Element type of a buffer. `choice` is a (value, index) pair: what an arg-max reduces.
enum class Element : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, choice };

/// What a value is for, so that a device can store each kind in a type of its own.
enum class Storage : std::uint8_t { activation, weight, cache, token, choice, count };
inline constexpr int storage_kinds = 6;  ///< how many Storage has

/// A candidate of an arg-max; ties go to the lower index, so the winner does not depend on the split.
struct Choice {
  double value = 0;
  i64 index = -1;
};

/// Bytes of one element.
constexpr i64 bytes_of(Element e) {
  switch (e) {
    case Element::f32:
    case Element::i32: return 4;
    case Element::f64:
    case Element::i64: return 8;
    case Element::f16:
    case Element::bf16: return 2;
    case Element::u8: return 1;
    case Element::choice: return static_cast<i64>(sizeof(Choice));
  }
  return 0;
}

constexpr char const* name_of(Element e) {
  constexpr char const* names[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "choice"};
  return names[static_cast<int>(e)];
}

constexpr char const* name_of(Storage s) {
  constexpr char const* names[] = {"activation", "weight", "cache", "token", "choice", "count"};
  return names[static_cast<int>(s)];
}

}  // namespace dovetail
