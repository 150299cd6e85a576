// SPDX-License-Identifier: MIT
// From the rows of a sequence to one vector: their mean, and a vector's unit length. What sentence encoders end with.
#pragma once
#include <dovetail/layer/norm.hpp>

namespace dovetail {

/// [batch,sequence,..] -> [batch,..]: the mean over each sequence's own rows, however long the others are.
constexpr Value mean_pool(Builder& b, Value x) {
  Dims const gone = dims(extent<sequence>(Symbol::tokens));
  return b.apply(Call(mean_rows).reads(x).contracts<sequence>().maps_rest().yields(without(b.dims(x), gone)));
}

/// What `unit_length` brings to length 1.
struct UnitLengthConfig {
  Dims over{};             ///< trailing dims of x whose 2-norm becomes 1
  double epsilon = 1e-24;  ///< added to the square, so that a vector of zeros stays one
};

/// x / |x| over the stated dims.
constexpr Value unit_length(Builder& b, Value x, UnitLengthConfig const& c) {
  Value const sum = b.apply(Call(square_sum).reads(x).contracts(c.over).yields(without(b.dims(x), c.over)));
  return b.apply(Call(rms_scale).reads(x).reads(sum).with(Numbers{{1, c.epsilon}}).yields(b.dims(x)));
}

/// `mean_pool` as a type.
struct MeanPool {
  static constexpr Value apply(Builder& b, Value x) { return mean_pool(b, x); }
};
/// `unit_length` as a type.
template <UnitLengthConfig C>
struct UnitLength {
  static constexpr Value apply(Builder& b, Value x) { return unit_length(b, x, C); }
};

}  // namespace dovetail
