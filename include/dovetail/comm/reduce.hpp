// SPDX-License-Identifier: MIT
// The reduction that a communicator makes: several buffers into one, element by element, always in the order given, so
// that its bits do not depend on which rank computes it or when. The result may be written over one of the sources.
#pragma once
#include <cstdint>
#include <dovetail/comm/communicator.hpp>
#include <dovetail/tensor/half.hpp>

namespace dovetail {

/// Does `a` win an arg-max over `b`? A NaN wins so that it is seen; index -1 is neutral; ties go to the lower index.
constexpr bool outranks(Choice const& a, Choice const& b) {
  if (a.index < 0 || b.index < 0) return a.index >= 0 && b.index < 0;
  bool const a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan;
  if (a_nan || a.value == b.value) return a.index < b.index;
  return a.value > b.value;
}

/// Can elements of this type be reduced so? Choices only by arg_max, and only choices.
constexpr bool reduces(Element e, Reduction r) { return (e == Element::choice) == (r == Reduction::arg_max); }

/// One chunk at a time: read from every source, combined in a local array, written last.
template <class Stored, class Sum, class Load, class Combine, class Store>
void reduce_with(void const* const* sources, int n, void* out, i64 count, Load load, Combine combine, Store store) {
  constexpr i64 chunk = 256;
  Sum sum[chunk];
  auto* const result = static_cast<Stored*>(out);
  for (i64 at = 0; at < count; at += chunk) {
    i64 const size = count - at < chunk ? count - at : chunk;
    auto const* const first = static_cast<Stored const*>(sources[0]) + at;
    for (i64 i = 0; i < size; ++i) sum[i] = load(first[i]);
    for (int s = 1; s < n; ++s) {
      auto const* const source = static_cast<Stored const*>(sources[s]) + at;
      for (i64 i = 0; i < size; ++i) sum[i] = combine(sum[i], load(source[i]));
    }
    for (i64 i = 0; i < size; ++i) result[at + i] = store(sum[i]);
  }
}

/// Sum or maximum of stored elements that are combined as `Sum`.
template <class Stored, class Sum, class Load, class Store>
void reduce_numbers(void const* const* sources, int n, void* out, i64 count, Reduction r, Load load, Store store) {
  auto const add = [](Sum a, Sum b) { return static_cast<Sum>(a + b); };
  // A NaN on either side stays.
  auto const larger = [](Sum a, Sum b) { return b > a || b != b ? b : a; };  // NOLINT(misc-redundant-expression)
  if (r == Reduction::sum) {
    reduce_with<Stored, Sum>(sources, n, out, count, load, add, store);
  } else {
    reduce_with<Stored, Sum>(sources, n, out, count, load, larger, store);
  }
}

/// Integers: sums are of the unsigned type, which wraps.
template <class Stored, class Unsigned>
void reduce_integers(void const* const* sources, int n, void* out, i64 count, Reduction r) {
  auto const same = [](Stored x) { return x; };
  auto const bits = [](Stored x) { return static_cast<Unsigned>(x); };
  auto const back = [](Unsigned x) { return static_cast<Stored>(x); };
  if (r == Reduction::sum) {
    reduce_numbers<Stored, Unsigned>(sources, n, out, count, r, bits, back);
  } else {
    reduce_numbers<Stored, Stored>(sources, n, out, count, r, same, same);
  }
}

/// out[i] = sources[0][i] combined with sources[1][i], ... in this order.
/// @pre n >= 1, reduces(element, reduction), every pointer aligned for the element, or count == 0.
inline void reduce_in_order(void const* const* sources, int n, void* out, i64 count, Element element, Reduction r) {
  auto const same = [](auto x) { return x; };
  switch (element) {
    case Element::f32: return reduce_numbers<float, float>(sources, n, out, count, r, same, same);
    case Element::f64: return reduce_numbers<double, double>(sources, n, out, count, r, same, same);
    case Element::f16: return reduce_numbers<std::uint16_t, float>(sources, n, out, count, r, float_of_f16, f16_of);
    case Element::bf16: return reduce_numbers<std::uint16_t, float>(sources, n, out, count, r, float_of_bf16, bf16_of);
    case Element::i32: return reduce_integers<std::int32_t, std::uint32_t>(sources, n, out, count, r);
    case Element::i64: return reduce_integers<std::int64_t, std::uint64_t>(sources, n, out, count, r);
    case Element::u8: return reduce_integers<std::uint8_t, std::uint8_t>(sources, n, out, count, r);
    case Element::choice:
      return reduce_with<Choice, Choice>(
          sources, n, out, count, same, [](Choice a, Choice b) { return outranks(b, a) ? b : a; }, same);
  }
}

}  // namespace dovetail
