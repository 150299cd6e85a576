// SPDX-License-Identifier: MIT
// What a kernel sees: local tensors as rows x width, the step's constants, the sequences of the run. A kernel knows
// nothing of meshes, placements or communication; the same kernel runs the whole model and any part of it. It throws
// std::runtime_error with a plain reason; the executor adds rank, stage, step and tensor.
#pragma once
#include <dovetail/mesh/region.hpp>
#include <dovetail/plan/step.hpp>

namespace dovetail {

/// A local tensor of any element type: row-major, `rows` x `width`.
struct View {
  void* memory = nullptr;
  i64 rows = 0;   ///< of the symbolic dims, sequence after sequence; 1 where there are none
  i64 width = 0;  ///< product of the fixed dims' ranges
  Dims const* dims = nullptr;
  Range ranges[max_dims]{};  ///< global range of each fixed dim, by position in dims; symbolic ones are not set
  Span<Segment> segments{};  ///< which positions the rows are; rows of a cache lie apart, so use Segment::row

  template <class T>
  T* as() const {
    return static_cast<T*>(memory);
  }
  /// Range of the fixed dim `dim`. @pre the tensor has it
  Range range(DimInfo const* dim) const {
    for (i32 k = 0; k < dims->size(); ++k)
      if ((*dims)[k].dim == dim) return ranges[k];
    return {};
  }
  Extent const* extent(DimInfo const* dim) const {
    for (auto const& e : *dims)
      if (e.dim == dim) return &e;
    return nullptr;
  }
};

/// Sampling of the next token of one sequence; greedy where temperature is 0.
struct ChoiceRule {
  double temperature = 0;
  double threshold = 0;  ///< logits below it are out (top-k and top-p, agreed between ranks before)
  bool has_threshold = false;
  std::uint64_t seed = 0;  ///< of this sequence and step: noise is a function of (seed, global token id)
};

/// What a kernel is given for one step: the rank's local operands, parameters and results, and the op's numbers.
template <class Device>
struct KernelCall {
  Device* device = nullptr;
  Step const* step = nullptr;
  View operands[max_operands]{};
  typename Device::Weight const* weights[max_parameters]{};
  View parameters[max_parameters]{};  ///< the weights row-major; for matmul, which takes them packed, the shape only
  View results[max_results]{};
  View state{};  ///< cache of the step: segments give each sequence's first row
  RunShape sequences{};
  Span<ChoiceRule> rules{};  ///< by sequence; empty: greedy

  double number(int i) const { return step->numbers[i]; }
};

/// Computes one op on one device. It writes every element of its results and keeps no reference to them.
template <class Device>
using Kernel = void (*)(KernelCall<Device> const&);

/// One row of a device's kernel table; a user's op adds rows of its own.
template <class Device>
struct KernelRow {
  Op const* op = nullptr;
  Kernel<Device> run = nullptr;
  bool reads_caches = false;  ///< takes rows where Segment::row says; for others a cache's rows are copied together
};

}  // namespace dovetail
