// SPDX-License-Identifier: MIT
// What the kernels of the host devices ask of a view: extents by position, the rows of a sequence, and agreement
// between views. A disagreement is a broken caller and throws, so that no kernel reads or writes beyond a tensor.
#pragma once
#include <dovetail/device/kernel.hpp>
#include <stdexcept>
#include <string>

namespace dovetail::kernels::host {

/// Elements of the fixed dims from position `from` on.
inline i64 elements_from(View const& v, i32 from) {
  i64 n = 1;
  for (i32 k = from > leading_symbols(*v.dims) ? from : leading_symbols(*v.dims); k < v.dims->size(); ++k)
    n *= v.ranges[k].size();
  return n;
}

/// @throws std::runtime_error that names the kernel, what differs and both numbers
inline void require_equal(char const* kernel, char const* what, i64 a, i64 b) {
  if (a != b)
    throw std::runtime_error(std::string(kernel) + ": " + what + " differ: " + std::to_string(a) + " and " +
                             std::to_string(b));
}
inline void require_same_shape(char const* kernel, View const& a, View const& b) {
  require_equal(kernel, "rows of operand and result", a.rows, b.rows);
  require_equal(kernel, "widths of operand and result", a.width, b.width);
}

template <class Device>
bool has_parameter(KernelCall<Device> const& call, int i) {
  return call.parameters[i].dims != nullptr;
}
/// Row-major elements of parameter `i`: of its weight, or where a step before has moved it to.
template <class Device>
typename Device::Scalar const* parameter(KernelCall<Device> const& call, int i) {
  return call.weights[i] ? call.weights[i]->plain() : call.parameters[i].template as<typename Device::Scalar const>();
}

/// x: (rows, inputs); parameter 0: (outputs, inputs); y: (rows, outputs).
template <class Device>
void require_matmul_shapes(KernelCall<Device> const& call) {
  View const &x = call.operands[0], &y = call.results[0];
  require_equal("matmul", "rows of operand and result", x.rows, y.rows);
  require_equal("matmul", "elements of the weight and of operand width times result width", call.parameters[0].width,
                x.width * y.width);
  if (!call.weights[0]) return;
  require_equal("matmul", "widths of operand and weight", x.width, call.weights[0]->columns());
  require_equal("matmul", "widths of result and weight", y.width, call.weights[0]->rows());
}

/// Elements of x that each element of y sums up: those of the dims that y lacks.
inline i64 require_sum_shapes(char const* kernel, View const& x, View const& y) {
  i64 const summed = elements_from(x, y.dims->size());
  require_equal(kernel, "elements of operand and of result times those summed", x.rows * x.width,
                y.rows * y.width * summed);
  return summed;
}
/// Elements of x that each element of `sum` speaks of; x and the result have one shape.
inline i64 require_spread_shapes(char const* kernel, View const& x, View const& sum, View const& y) {
  i64 const inner = elements_from(x, sum.dims->size());
  require_same_shape(kernel, x, y);
  require_equal(kernel, "elements of operand and of sums times those that each is of", x.rows * x.width,
                sum.rows * sum.width * inner);
  return inner;
}
/// The same where parameter 0, if there is one, has a weight for each of them.
template <class Device>
i64 require_scale_shapes(char const* kernel, KernelCall<Device> const& call) {
  i64 const scaled = require_spread_shapes(kernel, call.operands[0], call.operands[1], call.results[0]);
  if (has_parameter(call, 0))
    require_equal(kernel, "weights and elements that they scale", call.parameters[0].width, scaled);
  return scaled;
}

/// Elements after which the second addend of `add` starts again: it is as large as the first, or a parameter over the
/// first's trailing dims. @post divides the elements of the first
template <class Device>
i64 period_of_addend(char const* kernel, KernelCall<Device> const& call) {
  View const& x = call.operands[0];
  if (!has_parameter(call, 0)) {
    require_equal(kernel, "rows of the operands", x.rows, call.operands[1].rows);
    require_equal(kernel, "widths of the operands", x.width, call.operands[1].width);
    return x.rows * x.width;
  }
  i64 const period = call.parameters[0].width;
  if (x.width > 0 && (period <= 0 || x.width % period != 0))
    throw std::runtime_error(std::string(kernel) + ": a parameter of " + std::to_string(period) +
                             " elements does not cover an operand " + std::to_string(x.width) + " wide");
  return period;
}

/// What `add` adds to its first operand: a parameter where there is one, else the second operand.
template <class Device>
typename Device::Scalar const* second_addend(KernelCall<Device> const& call) {
  return has_parameter(call, 0) ? parameter(call, 0) : call.operands[1].template as<typename Device::Scalar const>();
}

/// Segment of `sequence`; `guess` is where it stands when both views list the same sequences.
inline Segment const& segment_of(char const* kernel, View const& v, i64 sequence, i32 guess) {
  if (guess < v.segments.size() && v.segments[guess].sequence == sequence) return v.segments[guess];
  for (Segment const& s : v.segments)
    if (s.sequence == sequence) return s;
  throw std::runtime_error(std::string(kernel) + ": this rank holds no rows of sequence " + std::to_string(sequence));
}

/// Tokens before the run of the sequence that a segment is of.
inline i64 past_of(char const* kernel, RunShape run, Segment const& s) {
  if (s.sequence < 0 || s.sequence >= run.size())
    throw std::runtime_error(std::string(kernel) + ": sequence " + std::to_string(s.sequence) + " is not one of the " +
                             std::to_string(run.size()) + " of the run");
  return run[s.sequence].past;
}

}  // namespace dovetail::kernels::host
