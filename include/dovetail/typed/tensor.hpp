// SPDX-License-Identifier: MIT
// A tensor with its placement in its type, and this rank's part of it in a buffer of its own. Where a value is split or
// partial is a compile-time fact; which coordinate this rank has is not.
#pragma once
#include <dovetail/meta/counted.hpp>
#include <dovetail/typed/box.hpp>
#include <dovetail/typed/words.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace dovetail::typed {

/// True where no dim stands twice.
constexpr bool stands_once(Dims const& dims) {
  for (i32 k = 0; k < dims.size(); ++k)
    for (i32 m = 0; m < k; ++m)
      if (dims[m].dim == dims[k].dim) return false;
  return true;
}
/// True where every axis that cuts the value cuts one of `dims`.
constexpr bool cuts_only(Dims const& dims, Places const& places) {
  for (auto const& p : places.at)
    if (p.cut() && !find(dims, p.dim)) return false;
  return true;
}
/// Does every rank with a share get a unit of every dim that may not be empty?
constexpr bool every_rank_holds(Dims const& dims, Places const& places, Mesh const& mesh) {
  Coordinate at;
  for (i32 a = 0; a < mesh.size(); ++a) at.push(0);
  for (;;) {
    bool idle = false;
    for (i32 a = 0; a < mesh.size(); ++a) idle = idle || mesh[a]->share(at[a]) == 0;
    for (auto const& e : dims)
      if (!idle && !e.dim->may_be_empty && !leading_range(e, e.lead, places, mesh, at).size()) return false;
    i32 a = mesh.size() - 1;
    for (; a >= 0 && ++at[a] == mesh[a]->size; --a) at[a] = 0;
    if (a < 0) return true;
  }
}

/// A rank's part of a tensor of T, whose shape S and place on each axis `Ons` are in its type.
template <class T, class S, class... Ons>
class Tensor;

/// Elements T of the dims of a shape, placed P on each axis A; the axes stand outermost first.
template <class T, class... O, class... A, class... P>
class Tensor<T, typed::Shape<O...>, On<A, P>...> {
  static_assert(!std::is_same_v<T, bool>, "a tensor of bool has no elements that can be reduced");

 public:
  static constexpr bool is_placed = true;
  using Scalar = T;
  using Shape = typed::Shape<O...>;
  using Axes = std::tuple<A...>;
  using Placements = std::tuple<P...>;
  using Sight = std::tuple<O..., P...>;  ///< words that name dims: what a judgement can be spelt with
  static constexpr Dims dims = Shape::dims;
  static constexpr Places places{{P::place...}};
  static constexpr Mesh mesh{{axis_of<A>...}, static_cast<i32>(sizeof...(A))};
  static_assert(stands_once(dims), "typed: a dim stands once in a tensor; give its second occurrence another name");
  static_assert(cuts_only(dims, places), "typed: a tensor is split by a dim that it has");
  static_assert(every_rank_holds(dims, places, mesh),
                "placement/split: a rank would hold no unit of a dim of this tensor; see "
                "docs/errors/placement-split.md");

  /// Zeros. @param at this rank's coordinate on each axis
  explicit Tensor(Coordinate const& at) : Tensor(at, std::vector<T>(static_cast<std::size_t>(box(at).elements()))) {}
  /// This rank's part is `local`, row-major. Throws std::invalid_argument where it has another size.
  Tensor(Coordinate const& at, std::vector<T> local) : at_(at), box_(box(at)), local_(std::move(local)) {
    if (static_cast<i64>(local_.size()) != box_.elements())
      throw std::invalid_argument("dovetail: a tensor's part has " + std::to_string(box_.elements()) +
                                  " elements on this rank, but " + std::to_string(local_.size()) + " were given");
  }
  /// This rank's part of `whole`, row-major.
  static Tensor part_of(std::span<T const> whole,
                        Coordinate const& at) requires((P::place.kind <= Kind::split) && ...) {
    Box const all = box_of(dims, Places{}, mesh, at);
    if (static_cast<i64>(whole.size()) != all.elements())
      throw std::invalid_argument("dovetail: the whole tensor has " + std::to_string(all.elements()) +
                                  " elements, but " + std::to_string(whole.size()) + " were given");
    Tensor t(at);
    copy_common(whole.data(), all, t.local_.data(), t.box_);
    return t;
  }

  Coordinate const& at() const { return at_; }
  /// Global range of each dim that this rank holds.
  Box const& box() const { return box_; }
  std::span<T> local() { return local_; }
  std::span<T const> local() const { return local_; }
  /// The buffer, for a tensor of another type that holds the same elements.
  std::vector<T> release() && { return std::move(local_); }

 private:
  Coordinate at_{};
  Box box_{};
  std::vector<T> local_;

  static Box box(Coordinate const& at) {
    for (i32 a = 0; a < mesh.size(); ++a)
      if (at.size() != mesh.size() || at[a] < 0 || at[a] >= mesh[a]->size)
        throw std::invalid_argument("dovetail: a coordinate does not fit the axes of the tensor; axis " +
                                    std::string(mesh[a]->name) + " has " + counted(mesh[a]->size, "rank"));
    return box_of(dims, places, mesh, at);
  }
};

/// A tensor whose placement is known.
template <class X>
concept Placed = X::is_placed;

/// What a refused op yields. Every op takes it and converts it silently: one mistake, one error. No program is made.
struct RefusedTensor {
  static constexpr bool is_placed = false;
  template <Placed X>
  operator X() const {
    return X(Coordinate{});
  }
};
/// One of these is the result of a call that was refused.
template <class... X>
concept AnyRefused = (std::is_same_v<X, RefusedTensor> || ...);

}  // namespace dovetail::typed
