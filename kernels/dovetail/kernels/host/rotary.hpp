// SPDX-License-Identifier: MIT
// Walk over the pairs that rotary positions turn, the same for every host device; a device says how it turns one.
#pragma once
#include <dovetail/device/rotary_table.hpp>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::host {

template <class Scalar>
struct Pair {
  Scalar first, second;
};

/// y = x with each pair of a head replaced by turn(first, second, cosine, sine) at its position, past tokens included;
/// elements beyond the rotated ones are kept. numbers: see RotaryNumbers.
/// x and y: [batch,sequence,heads,head_dim], head_dim whole; y may lie where x does.
template <class Device>
void rotate_pairs(KernelCall<Device> const& call, auto const& turn) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &y = call.results[0];
  require_same_shape("rotate", x, y);
  i64 const head_size = elements_from(x, x.dims->size() - 1);
  RotaryNumbers const numbers(call.step->numbers, head_size);
  auto& table = call.device->rotary().of(call.step->numbers, head_size);
  i64 const pairs = numbers.rotated / 2, next = numbers.interleaved ? 1 : pairs, step = numbers.interleaved ? 2 : 1;
  for (Segment const& s : x.segments)
    for (i64 j = 0; head_size > 0 && j < s.range.size(); ++j) {
      Scalar const* const cosines = table.row(past_of("rotate", call.sequences, s) + s.range.lo + j);
      for (i64 at = (s.row + j) * x.width; at < (s.row + j + 1) * x.width; at += head_size) {
        Scalar const* const from = x.as<Scalar>() + at;
        Scalar* const to = y.as<Scalar>() + at;
        for (i64 i = 0; i < pairs; ++i) {
          auto const turned = turn(from[i * step], from[i * step + next], cosines[i], cosines[pairs + i]);
          to[i * step] = turned.first, to[i * step + next] = turned.second;
        }
        for (i64 i = numbers.rotated; i < head_size; ++i) to[i] = from[i];
      }
    }
}

}  // namespace dovetail::kernels::host
