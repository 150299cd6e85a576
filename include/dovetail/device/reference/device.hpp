// SPDX-License-Identifier: MIT
// The device of doubles on a grid, by which every layout and every other device is judged. Its weights are rounded to
// the grid when they are finished and stay row-major; its kernels are plain loops. device/reference.hpp adds the table.
#pragma once
#include <dovetail/device/device.hpp>
#include <dovetail/device/reference/grid.hpp>
#include <dovetail/device/rotary_table.hpp>

namespace dovetail {

/// The Device of doubles on an exact grid: sums do not depend on their order, so every layout gives the same bits.
class Reference {
 public:
  using Scalar = double;
  using Memory = HostMemory;
  static constexpr Element element = Element::f64;

  /// The local part of one weight, row-major.
  class Weight {
   public:
    /// Row-major room for the local part.
    std::span<double> fill_target() { return {values_.as<double>(), static_cast<std::size_t>(rows_ * columns_)}; }
    i64 packed_bytes() const { return 0; }
    double const* plain() const { return values_.as<double>(); }
    i64 rows() const { return rows_; }        ///< outputs of matmul
    i64 columns() const { return columns_; }  ///< inputs of matmul; 1 where none reads it
    double reach() const { return reach_; }   ///< largest 2-norm of a row; see grid::largest_norm

   private:
    friend class Reference;
    HostMemory values_;
    i64 rows_ = 0, columns_ = 0;
    double reach_ = 0;
  };

  static constexpr i64 bytes_of(Storage s) {
    switch (s) {
      case Storage::token: return dovetail::bytes_of(Element::i32);
      case Storage::choice: return dovetail::bytes_of(Element::choice);
      case Storage::count: return dovetail::bytes_of(Element::i64);
      default: return dovetail::bytes_of(element);
    }
  }
  static constexpr std::span<KernelRow<Reference> const> kernels();

  Memory memory(i64 bytes) { return HostMemory(bytes); }

  Weight make_weight(WeightShape const& shape) {
    Weight w;
    w.rows_ = shape.rows(), w.columns_ = shape.columns();
    w.values_ = HostMemory(shape.elements() * bytes_of(Storage::weight));
    return w;
  }
  /// Rounds the weights to the grid. @throws RangeError for one that is not finite or too large
  void finish(Weight& w) {
    grid::check_values("weight", w.plain(), w.rows_, w.columns_);
    for (double& v : w.fill_target()) v = grid::round(v);
    w.reach_ = grid::largest_norm(w.plain(), w.columns_, w.rows_, w.columns_);
  }

  Scratch& scratch() { return scratch_; }
  RotaryTables<double>& rotary() { return rotary_; }

 private:
  Scratch scratch_;
  RotaryTables<double> rotary_;
};

}  // namespace dovetail
