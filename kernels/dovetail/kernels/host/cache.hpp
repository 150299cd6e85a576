// SPDX-License-Identifier: MIT
// Writing new rows into a KV cache, the same for every host device. The op's result is a view of the cache, so nothing
// else is copied.
#pragma once
#include <algorithm>
#include <dovetail/kernels/host/shape.hpp>

namespace dovetail::kernels::host {

/// Row `past + position` of each sequence's part of the cache becomes the new row at `position`.
/// x: [batch,sequence,..]; state: the same sequences in the same order, each from its segment's row on.
template <class Device>
void append(KernelCall<Device> const& call) {
  using Scalar = typename Device::Scalar;
  View const &x = call.operands[0], &cache = call.state;
  require_equal("append", "widths of operand and cache", x.width, cache.width);
  require_equal("append", "sequences of operand and cache", x.segments.size(), cache.segments.size());
  for (i32 k = 0; k < x.segments.size(); ++k) {
    Segment const &from = x.segments[k], &to = cache.segments[k];
    require_equal("append", "sequences of operand and cache", from.sequence, to.sequence);
    i64 const first = to.row + past_of("append", call.sequences, from) + from.range.lo;
    std::copy_n(x.as<Scalar>() + from.row * x.width, from.range.size() * x.width, cache.as<Scalar>() + first * x.width);
  }
}

}  // namespace dovetail::kernels::host
