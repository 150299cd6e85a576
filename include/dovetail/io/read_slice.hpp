// SPDX-License-Identifier: MIT
// A box of a stored tensor, copied in row-major order and converted exactly to float or double.
// A rank reads its shard with this and touches no other byte: dims that the box holds whole at the end of the shape
// are copied in one run with those before them. The box is checked against the shape; nothing else is ever read.
#pragma once
#include <bit>
#include <concepts>
#include <cstring>
#include <dovetail/io/error.hpp>
#include <dovetail/io/tensor_entry.hpp>
#include <dovetail/tensor/half.hpp>

namespace dovetail {

/// The stored (little-endian, unaligned) number at `at`.
template <class Number>
Number stored_number(std::byte const* at) {
  std::byte raw[sizeof(Number)];
  if constexpr (std::endian::native == std::endian::little) std::memcpy(raw, at, sizeof raw);
  else
    for (std::size_t i = 0; i < sizeof raw; ++i) raw[i] = at[sizeof raw - 1 - i];
  Number number;
  std::memcpy(&number, raw, sizeof raw);
  return number;
}

/// `count` stored elements, converted. @pre element is f32, f16, bf16, or f64 where T is double
template <class T>
void convert_run(Element element, std::byte const* from, i64 count, T* out) {
  switch (element) {
    case Element::f32:
      if constexpr (std::same_as<T, float> && std::endian::native == std::endian::little) {
        std::memcpy(out, from, static_cast<std::size_t>(count) * sizeof(float));
      } else {
        for (i64 i = 0; i < count; ++i) out[i] = stored_number<float>(from + 4 * i);
      }
      break;
    case Element::f16:
      for (i64 i = 0; i < count; ++i) out[i] = float_of_f16(stored_number<std::uint16_t>(from + 2 * i));
      break;
    case Element::bf16:
      for (i64 i = 0; i < count; ++i) out[i] = float_of_bf16(stored_number<std::uint16_t>(from + 2 * i));
      break;
    default:
      for (i64 i = 0; i < count; ++i) out[i] = static_cast<T>(stored_number<double>(from + 8 * i));
  }
}

/// Copies the elements of `entry` inside `box` (a range for each dim of the shape) to `out`, row-major.
/// @param out  room for the product of the ranges' sizes
/// @throws IoError where the box does not fit the shape, or the stored type does not convert to T exactly
template <class T>
requires std::same_as<T, float> || std::same_as<T, double>
void read_slice(TensorEntry const& entry, std::span<Range const> box, T* out) {
  auto const& shape = entry.shape;
  auto const where = [&] {
    return std::string(entry.file) + ": tensor " + in_quotes(entry.name) + ", " + shape_text(entry.stored_as, shape);
  };
  bool const exact = entry.element == Element::f32 || entry.element == Element::f16 || entry.element == Element::bf16 ||
                     (entry.element == Element::f64 && std::same_as<T, double>);
  if (!exact)
    throw io_error(where(), ": cannot be read as ", sizeof(T) == 4 ? "f32" : "f64", " without loss; ",
                   sizeof(T) == 4 ? "F32, F16 and BF16 can" : "F64, F32, F16 and BF16 can");
  if (box.size() != shape.size())
    throw io_error(where(), ": a box of ", box.size(), " ranges was asked of ", shape.size(), " dims");
  bool empty = false;
  for (std::size_t d = 0; d < box.size(); ++d) {
    if (box[d].lo < 0 || box[d].lo > box[d].hi || box[d].hi > shape[d])
      throw io_error(where(), ": range [", box[d].lo, ", ", box[d].hi, ") was asked of dim ", d, ", which has ",
                     shape[d]);
    empty = empty || box[d].lo == box[d].hi;
  }
  if (empty) return;

  // `inner` is the first dim of the part that lies in one piece: all dims after it are whole.
  std::size_t inner = box.size();
  i64 run = 1, stride = 1;  // elements in one piece; elements from one index of dim inner - 1 to the next
  while (inner > 0) {
    --inner;
    run = stride * box[inner].size();
    stride *= shape[inner];
    if (box[inner].size() != shape[inner]) break;
  }
  i64 const size = bytes_of(*entry.element);
  std::vector<i64> index(inner), strides(inner);
  for (std::size_t d = inner; d-- > 0;) {
    index[d] = box[d].lo;
    strides[d] = stride;
    stride *= shape[d];
  }
  i64 const first = box.empty() ? 0 : [&] {
    i64 offset = 0;
    for (std::size_t d = 0; d < box.size(); ++d) offset = offset * shape[d] + (d <= inner ? box[d].lo : 0);
    return offset;
  }();
  for (i64 offset = first;; out += run) {
    convert_run(*entry.element, entry.bytes.data() + offset * size, run, out);
    std::size_t d = inner;
    for (; d > 0; --d) {  // the next index of the dims before `inner`, last one fastest
      offset += strides[d - 1];
      if (++index[d - 1] < box[d - 1].hi) break;
      offset -= strides[d - 1] * box[d - 1].size();
      index[d - 1] = box[d - 1].lo;
    }
    if (d == 0) return;
  }
}

}  // namespace dovetail
