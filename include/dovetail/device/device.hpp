// SPDX-License-Identifier: MIT
// The device concept: an element type, memory, weights in whatever form the device likes best, and a kernel table.
// The executor is written against it alone. One object serves one rank; packing, scratch and streams are its own.
#pragma once
#include <concepts>
#include <dovetail/device/kernel.hpp>
#include <span>

namespace dovetail {

/// What the executor tells a device about a parameter before it is filled.
struct WeightShape {
  Dims dims{};
  Range ranges[max_dims]{};   ///< part that this rank holds, by dim
  i32 inputs = 0;             ///< trailing dims that matmul contracts; 0: no matmul reads it
  bool read_plainly = false;  ///< an op other than matmul reads it row-major

  i64 elements() const { return extent(0, dims.size()); }
  i64 rows() const { return extent(0, dims.size() - inputs); }               ///< of the matrix that matmul reads
  i64 columns() const { return extent(dims.size() - inputs, dims.size()); }  ///< 1 where no matmul reads it

 private:
  i64 extent(i32 from, i32 to) const {
    i64 n = 1;
    for (i32 k = from; k < to; ++k) n *= ranges[k].size();
    return n;
  }
};

/// What runs the steps of one rank: its number type, memory, weights and table of kernels.
template <class D>
concept Device = requires(D& d, D const& c, WeightShape const& shape, typename D::Weight& w,
                          std::span<KernelRow<D> const> t) {
  typename D::Scalar;                                     // element of activations, weights and caches
  { D::element } -> std::convertible_to<Element>;         // the same, as communicators call it
  { D::bytes_of(Storage::weight) } -> std::same_as<i64>;  // what one element of a storage class takes
  { D::kernels() } -> std::convertible_to<std::span<KernelRow<D> const>>;
  { d.make_weight(shape) } -> std::same_as<typename D::Weight>;
  { w.fill_target() } -> std::same_as<std::span<typename D::Scalar>>;  // row-major room for the local part
  {d.finish(w)};                                                       // packs; the room may be gone afterwards
  { w.packed_bytes() } -> std::same_as<i64>;                           // beyond the logical bytes
  { d.memory(i64{}) } -> std::same_as<typename D::Memory>;             // owns bytes, zeroed; .get() -> void*
};

}  // namespace dovetail
