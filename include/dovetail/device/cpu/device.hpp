// SPDX-License-Identifier: MIT
// The device of floats on the host: oneDNN for matrix products, plain loops for the rest. A weight is packed for
// products when it is finished; its row-major form is kept only where another op reads it. device/cpu.hpp adds the
// table of kernels.
#pragma once
#include <dovetail/device/cpu/products.hpp>
#include <dovetail/device/device.hpp>
#include <dovetail/device/rotary_table.hpp>

namespace dovetail {

/// How a Cpu computes.
struct CpuOptions {
  int threads = 1;  ///< of one rank's products
};

/// The Device of f32 on the host. One a rank: it is not for two threads at a time.
class Cpu {
 public:
  using Scalar = float;
  using Memory = HostMemory;
  static constexpr Element element = Element::f32;

  /// The local part of one weight: packed for products, row-major, or both.
  class Weight {
   public:
    /// Row-major room for the local part; it may go when the weight is finished.
    std::span<float> fill_target() { return {plain_.as<float>(), static_cast<std::size_t>(elements())}; }
    /// Bytes beyond the 4 of each element: blocks that are not full, and a row-major copy where both forms are kept.
    i64 packed_bytes() const { return plain_.bytes() + packed_.bytes() - elements() * bytes_of(Storage::weight); }
    /// Row-major. @throws std::runtime_error where only products read it
    float const* plain() const {
      if (elements() && !plain_.get())
        throw std::runtime_error("this weight is packed for products; make it with WeightShape::read_plainly");
      return plain_.as<float>();
    }
    /// In the blocks of products; nullptr where it is not packed.
    void const* packed() const { return packed_.get(); }
    i64 rows() const { return rows_; }        ///< outputs of matmul
    i64 columns() const { return columns_; }  ///< inputs of matmul; 1 where none reads it
    i64 elements() const { return rows_ * columns_; }

   private:
    friend class Cpu;
    HostMemory plain_, packed_;
    i64 rows_ = 0, columns_ = 0;
    bool for_matmul_ = false, read_plainly_ = false;
  };

  explicit Cpu(CpuOptions options = {}) : products_(options.threads) {
    if (options.threads < 1)
      throw std::invalid_argument("Cpu: threads is 1 or more, not " + std::to_string(options.threads));
  }

  static constexpr i64 bytes_of(Storage s) {
    switch (s) {
      case Storage::choice: return dovetail::bytes_of(Element::choice);
      case Storage::count: return dovetail::bytes_of(Element::i64);
      default: return dovetail::bytes_of(element);  // tokens are i32, as large as f32
    }
  }
  static constexpr std::span<KernelRow<Cpu> const> kernels();

  Memory memory(i64 bytes) { return HostMemory(bytes); }

  Weight make_weight(WeightShape const& shape) {
    Weight w;
    w.rows_ = shape.rows(), w.columns_ = shape.columns();
    w.for_matmul_ = shape.inputs > 0, w.read_plainly_ = shape.read_plainly;
    w.plain_ = HostMemory(w.elements() * bytes_of(Storage::weight));
    return w;
  }
  void finish(Weight& w) {
    if (!w.for_matmul_ || !w.elements()) return;
    i64 const bytes = products_.packed_bytes(w.rows_, w.columns_);
    if (!bytes) return;
    w.packed_ = HostMemory(bytes);
    products_.pack(w.plain_.as<float>(), w.packed_.get(), w.rows_, w.columns_);
    if (!w.read_plainly_) w.plain_ = HostMemory();
  }

  cpu::Products& products() { return products_; }
  Scratch& scratch() { return scratch_; }
  RotaryTables<float>& rotary() { return rotary_; }

 private:
  cpu::Products products_;
  Scratch scratch_;
  RotaryTables<float> rotary_;
};

}  // namespace dovetail
