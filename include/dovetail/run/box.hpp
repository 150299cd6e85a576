// SPDX-License-Identifier: MIT
// Boxes of local tensors and the one routine that finds what two of them have in common, run by run. Slices, masks,
// packing for a collective and unpacking after it are all walks over an overlap; so is reading a shard.
#pragma once
#include <cstddef>
#include <cstring>
#include <dovetail/device/kernel.hpp>

namespace dovetail {

/// What a rank holds or brings: segments of rows, and a range of every fixed dim. Rows lie `width` elements apart.
struct Box {
  Span<Segment> segments{};
  Range ranges[max_dims]{};  ///< by position in dims; symbolic ones are not looked at
  i32 symbols = 0, dims = 0;

  i64 width() const {
    i64 n = 1;
    for (i32 k = symbols; k < dims; ++k) n *= ranges[k].size();
    return n;
  }
};

/// Calls f(offset in a, offset in b, elements) for every run that is contiguous in both, in the order of global
/// indices: the same for every pair of boxes with the same overlap.
template <class F>
void each_overlap(Box const& a, Box const& b, F&& f) {
  i32 const dims = a.dims;
  Range common[max_dims];
  i64 a_stride[max_dims], b_stride[max_dims];
  i64 a_width = 1, b_width = 1, run = 1, a_start = 0, b_start = 0;
  i32 inner = dims;  // dims from `inner` on are whole in both, so they lie in one run
  for (i32 k = dims - 1; k >= a.symbols; --k) {
    common[k] = intersect(a.ranges[k], b.ranges[k]);
    if (!common[k].size()) return;
    a_stride[k] = a_width, b_stride[k] = b_width;
    a_start += (common[k].lo - a.ranges[k].lo) * a_width;
    b_start += (common[k].lo - b.ranges[k].lo) * b_width;
    bool const joined =
        inner == k + 1 && (k + 1 == dims || (common[k + 1] == a.ranges[k + 1] && common[k + 1] == b.ranges[k + 1]));
    if (joined) run *= common[k].size(), inner = k;
    a_width *= a.ranges[k].size(), b_width *= b.ranges[k].size();
  }
  bool const whole_rows = run == a_width && run == b_width;
  i32 next = 0;
  for (Segment const& s : a.segments) {
    while (next < b.segments.size() && b.segments[next].sequence < s.sequence) ++next;
    if (next == b.segments.size()) return;
    Segment const& t = b.segments[next];
    Range const positions = t.sequence == s.sequence ? intersect(s.range, t.range) : Range{};
    if (!positions.size()) continue;
    i64 a_row = (s.row + positions.lo - s.range.lo) * a_width + a_start;
    i64 b_row = (t.row + positions.lo - t.range.lo) * b_width + b_start;
    if (whole_rows) {
      f(a_row, b_row, positions.size() * run);
      continue;
    }
    for (i64 p = 0; p < positions.size(); ++p, a_row += a_width, b_row += b_width) {
      i64 index[max_dims] = {}, at_a = a_row, at_b = b_row;
      for (;;) {
        f(at_a, at_b, run);
        i32 k = inner - 1;
        for (; k >= a.symbols; --k) {
          at_a += a_stride[k], at_b += b_stride[k];
          if (++index[k] < common[k].size()) break;
          at_a -= a_stride[k] * index[k], at_b -= b_stride[k] * index[k];
          index[k] = 0;
        }
        if (k < a.symbols) break;
      }
    }
  }
}

/// Elements that two boxes have in common.
inline i64 overlap_elements(Box const& a, Box const& b) {
  i64 n = 0;
  each_overlap(a, b, [&](i64, i64, i64 run) { n += run; });
  return n;
}

/// Copies what `from` and `to` have in common, from one local tensor into another.
inline void copy_overlap(Box const& from, std::byte const* source, Box const& to, std::byte* target, i64 element) {
  each_overlap(from, to, [&](i64 a, i64 b, i64 run) {
    std::memcpy(target + b * element, source + a * element, static_cast<std::size_t>(run * element));
  });
}
/// Copies it to a buffer, packed. @return elements
inline i64 pack_overlap(Box const& from, std::byte const* source, Box const& to, std::byte* packed, i64 element) {
  i64 n = 0;
  each_overlap(from, to, [&](i64 a, i64, i64 run) {
    std::memcpy(packed + n * element, source + a * element, static_cast<std::size_t>(run * element));
    n += run;
  });
  return n;
}
/// The reverse: from a packed buffer into the local tensor of `to`. @return elements
inline i64 unpack_overlap(Box const& from, std::byte const* packed, Box const& to, std::byte* target, i64 element) {
  i64 n = 0;
  each_overlap(from, to, [&](i64, i64 b, i64 run) {
    std::memcpy(target + b * element, packed + n * element, static_cast<std::size_t>(run * element));
    n += run;
  });
  return n;
}
/// Adds a packed buffer to the local tensor of `to`. @return elements
template <class T>
i64 add_overlap(Box const& from, T const* packed, Box const& to, T* target) {
  i64 n = 0;
  each_overlap(from, to, [&](i64, i64 b, i64 run) {
    for (i64 i = 0; i < run; ++i) target[b + i] += packed[n + i];
    n += run;
  });
  return n;
}

}  // namespace dovetail
