// SPDX-License-Identifier: MIT
// A tensor as a safetensors file stores it, and the element types that the format knows.
// Entries are views: name and shape are copies, the bytes and the file's name belong to the file that was opened.
#pragma once
#include <cstddef>
#include <dovetail/tensor/dtype.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail {

/// An element type of the safetensors format.
struct StoredType {
  std::string_view name;           ///< the word in the header
  i64 bits;                        ///< of one element; below 8 where several share a byte
  std::optional<Element> element;  ///< the library's type, where it has one
};

/// Element types as safetensors files spell them.
inline constexpr StoredType stored_types[] = {
    {"F32", 32, Element::f32},        {"F16", 16, Element::f16},    {"BF16", 16, Element::bf16},
    {"F64", 64, Element::f64},        {"I64", 64, Element::i64},    {"I32", 32, Element::i32},
    {"U8", 8, Element::u8},           {"BOOL", 8, std::nullopt},    {"I8", 8, std::nullopt},
    {"I16", 16, std::nullopt},        {"U16", 16, std::nullopt},    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},        {"C64", 64, std::nullopt},    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},     {"F8_E8M0", 8, std::nullopt}, {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt}};

/// The format's word for an element type; empty where it has none.
constexpr std::string_view stored_name(Element element) {
  for (auto const& type : stored_types)
    if (type.element == element) return type.name;
  return {};
}

/// One tensor of an open file.
struct TensorEntry {
  std::string name;
  std::optional<Element> element;    ///< none where the format has a type that the library has not
  std::vector<i64> shape;            ///< row-major; empty for a single number
  std::span<std::byte const> bytes;  ///< little-endian, of any alignment; valid while the file is open
  std::string_view stored_as;        ///< the format's word for the type
  std::string_view file;             ///< for errors; valid while the file is open

  i64 elements() const {
    i64 product = 1;
    for (i64 extent : shape) product *= extent;
    return product;
  }
};

/// "f32[49152,576]": the notation of plans and errors.
inline std::string shape_text(std::string_view element, std::span<i64 const> shape) {
  std::string text(element);
  text += '[';
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + ']';
}

}  // namespace dovetail
