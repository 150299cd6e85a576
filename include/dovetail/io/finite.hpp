// SPDX-License-Identifier: MIT
// NaN and infinity among numbers that were read: one pass over the bits, without branches inside a block, so that
// compilers make vector code of it and no floating-point option can remove it. Loaders ask after each slice: weights
// that are no numbers must be named when they are read, not show up as nonsense in the model's answers.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <dovetail/io/error.hpp>
#include <dovetail/io/tensor_entry.hpp>

namespace dovetail {

/// Bits of floating numbers: those without the sign, and those of infinity, above which every NaN lies.
template <class T>
struct FloatBits;
template <>
struct FloatBits<float> {
  using Bits = std::uint32_t;
  static constexpr Bits unsigned_part = 0x7fffffff, infinity = 0x7f800000;
};
template <>
struct FloatBits<double> {
  using Bits = std::uint64_t;
  static constexpr Bits unsigned_part = 0x7fffffffffffffff, infinity = 0x7ff0000000000000;
};

/// The bits of a number without its sign.
template <class T>
constexpr auto magnitude_bits(T number) {
  return std::bit_cast<typename FloatBits<T>::Bits>(number) & FloatBits<T>::unsigned_part;
}

/// Position of the first number that is NaN or infinite; nothing where all are finite.
template <class T>
std::optional<i64> find_non_finite(std::span<T const> numbers) {
  using Bits = FloatBits<T>;
  constexpr typename Bits::Bits sign = ~Bits::unsigned_part;
  constexpr std::size_t block = 1024;
  for (std::size_t from = 0; from < numbers.size(); from += block) {
    auto const part = numbers.subspan(from, (std::min)(block, numbers.size() - from));
    typename Bits::Bits any = 0;  // adding what infinity lacks carries into the sign's place for it and NaN alone
    for (T number : part) any |= magnitude_bits(number) + (sign - Bits::infinity);
    if (!(any & sign)) continue;
    auto const bad = [](T number) { return magnitude_bits(number) >= Bits::infinity; };
    return static_cast<i64>(from) + (std::find_if(part.begin(), part.end(), bad) - part.begin());
  }
  return std::nullopt;
}

/// Refuses a slice that holds NaN or infinity. @param box  what was read, as `read_slice` takes it
/// @param numbers  the slice, row-major
/// @throws IoError naming file, tensor, the element's index in the stored tensor, and the value
template <class T>
void check_finite(TensorEntry const& entry, std::span<Range const> box, std::span<T const> numbers) {
  auto const found = find_non_finite(numbers);
  if (!found) return;
  std::vector<i64> index(box.size());
  i64 rest = *found;
  for (std::size_t d = box.size(); d-- > 0;) {
    i64 const size = (std::max)(i64{1}, box[d].size());
    index[d] = box[d].lo + rest % size;
    rest /= size;
  }
  T const number = numbers[static_cast<std::size_t>(*found)];
  throw io_error(entry.file, ": tensor ", in_quotes(entry.name), ", ", shape_text(entry.stored_as, entry.shape),
                 ": element ", shape_text("", index), " is ",
                 magnitude_bits(number) > FloatBits<T>::infinity ? "NaN" : "infinite",
                 "; the weights are damaged: get or convert them again");
}

}  // namespace dovetail
