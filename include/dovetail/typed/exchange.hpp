// SPDX-License-Identifier: MIT
// Redistributions between typed tensors, each along one named axis: what the planner would insert, called by hand.
// A call compiles only where it changes the placement that it says; every member of the axis' group calls it.
#pragma once
#include <dovetail/comm/communicator.hpp>
#include <dovetail/typed/judge.hpp>

namespace dovetail::typed {

namespace exchanging {

template <class T>
constexpr Element element_of() {
  static_assert(
      std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, i32> || std::is_same_v<T, i64>,
      "typed: elements that are exchanged are float, double, i32 or i64");
  return std::is_same_v<T, float>    ? Element::f32
         : std::is_same_v<T, double> ? Element::f64
         : std::is_same_v<T, i32>    ? Element::i32
                                     : Element::i64;
}

/// X with the placement P on one axis.
template <class X, class Axis, class P>
struct Replaced;
template <class T, class S, class... A, class... Q, class Axis, class P>
struct Replaced<Tensor<T, S, On<A, Q>...>, Axis, P> {
  static_assert((std::is_same_v<A, Axis> + ... + 0) == 1, "typed: the tensor is not placed on this axis");
  using type = Tensor<T, S, On<A, std::conditional_t<std::is_same_v<A, Axis>, P, Q>>...>;
};
template <class X, class Axis>
constexpr i32 index_of() {
  for (i32 a = 0; a < X::mesh.size(); ++a)
    if (X::mesh[a] == axis_of<Axis>) return a;
  return 0;
}
template <class X, class Axis>
using PlaceOn = std::tuple_element_t<index_of<X, Axis>(), typename X::Placements>;

struct leave_out {};  ///< the call has no use here: the value stands as it would make it
struct any_dim : Dim<"any dim"> {};
template <Place Got, Place To>
constexpr auto fix() {
  if constexpr (Got.whole() || Got == To) return leave_out{};
  else return use<redistribution(Got, To)>{};
}

/// Asserts that X stands on the axis as `Needs`, and that no axis inside cuts a dim that changes: an outer split may
/// not change under an inner one. `type` is what a change to `To` makes of X.
template <StepKind Kind, class X, class Axis, class Needs, class To>
struct Changed {
  using Got = PlaceOn<X, Axis>;
  static constexpr i32 inner = [] {
    for (i32 a = index_of<X, Axis>() + 1; a < X::mesh.size(); ++a)
      if (X::places[a].cut() && (X::places[a].dim == Needs::place.dim || X::places[a].dim == To::place.dim)) return a;
    return i32{-1};
  }();
  static constexpr auto verdict() {
    if constexpr (inner < 0) {
      using Fix = decltype(fix<Got::place, To::place>());
      return std::type_identity<placement_needs<use<Kind>, operand<0>, Axis, Needs, Got, Fix>>{};
    } else {
      using Inside = std::tuple_element_t<inner, typename X::Placements>;
      return std::type_identity<placement_needs<use<Kind>, operand<0>, std::tuple_element_t<inner, typename X::Axes>,
                                                Whole, Inside, use<StepKind::all_gather>>>{};
    }
  }
  static constexpr bool is_legal = inner < 0 && std::is_same_v<Needs, Got>;
  using type = typename Replaced<X, Axis, To>::type;
};
template <class C>
struct Asserted {
  static_assert(sizeof(typename decltype(C::verdict())::type) > 0);
  using type = std::conditional_t<C::is_legal, typename C::type, RefusedTensor>;
};

/// Throws std::invalid_argument unless the group is this rank's along the axis.
template <class X, class Axis>
void check_group(auto const& group, X const& x) {
  i32 const a = index_of<X, Axis>();
  if (group.size() == X::mesh[a]->size && group.rank() == x.at()[a]) return;
  throw std::invalid_argument("dovetail: axis " + std::string(X::mesh[a]->name) + " has " +
                              counted(X::mesh[a]->size, "rank") + " and this is " + std::to_string(x.at()[a]) +
                              ", but the group has " + std::to_string(group.size()) + " and it is " +
                              std::to_string(group.rank()) + " there");
}

/// Boxes of the axis' members, which differ from this rank in that coordinate only, and their sizes.
struct Members {
  std::vector<Box> boxes{};
  std::vector<i64> counts{};
  i64 total = 0;
};
template <class X>
Members members_of(Coordinate at, i32 axis) {
  Members m;
  for (at[axis] = 0; at[axis] < X::mesh[axis]->size; ++at[axis]) {
    m.boxes.push_back(box_of(X::dims, X::places, X::mesh, at));
    m.counts.push_back(m.boxes.back().elements());
    m.total += m.counts.back();
  }
  return m;
}

template <class Y, class Axis>
Y reduced(auto& communicator, auto const& group, auto x, Reduction reduction) {
  check_group<decltype(x), Axis>(group, x);
  auto const values = x.local();
  communicator
      .all_reduce(group, values.data(), static_cast<i64>(values.size()), element_of<typename Y::Scalar>(), reduction)
      .wait();
  Coordinate const at = x.at();
  return Y(at, std::move(x).release());
}

template <class Y, class Axis, class X>
Y scattered(auto& communicator, auto const& group, X const& x) {
  check_group<X, Axis>(group, x);
  Members const members = members_of<Y>(x.at(), index_of<X, Axis>());
  std::vector<typename X::Scalar> packed(static_cast<std::size_t>(members.total));
  auto* to = packed.data();
  for (auto const& box : members.boxes) {
    copy_common(x.local().data(), x.box(), to, box);
    to += box.elements();
  }
  Y y(x.at());
  communicator
      .reduce_scatter(group, packed.data(), y.local().data(), members.counts, element_of<typename X::Scalar>(),
                      Reduction::sum)
      .wait();
  return y;
}

template <class Y, class Axis, class X>
Y gathered(auto& communicator, auto const& group, X const& x) {
  check_group<X, Axis>(group, x);
  Members const members = members_of<X>(x.at(), index_of<X, Axis>());
  std::vector<typename X::Scalar> packed(static_cast<std::size_t>(members.total));
  communicator.all_gather(group, x.local().data(), packed.data(), members.counts, element_of<typename X::Scalar>())
      .wait();
  Y y(x.at());
  auto const* from = packed.data();
  for (auto const& box : members.boxes) {
    copy_common(from, box, y.local().data(), y.box());
    from += box.elements();
  }
  return y;
}

template <class Y>
Y sliced(auto const& x) {
  Y y(x.at());
  copy_common(x.local().data(), x.box(), y.local().data(), y.box());
  return y;
}

}  // namespace exchanging

/// Partial to Whole: every rank gets the sum (the maximum of a PartialMax).
template <class Axis, Communicator C, Placed X>
auto all_reduce(C& communicator, typename C::Group const& group, X x) {
  using Got = exchanging::PlaceOn<X, Axis>;
  using Needs = std::conditional_t<Got::place.partial(), Got, Partial>;
  using Y = typename exchanging::Asserted<exchanging::Changed<StepKind::all_reduce, X, Axis, Needs, Whole>>::type;
  auto const reduction = Got::place.kind == Kind::partial_max ? Reduction::maximum : Reduction::sum;
  if constexpr (Placed<Y>) return exchanging::reduced<Y, Axis>(communicator, group, std::move(x), reduction);
  else return Y{};
}

/// Partial to Split<D>: every rank gets its part of the sum.
template <class Axis, class D, WithReduceScatter C, Placed X>
auto reduce_scatter(C& communicator, typename C::Group const& group, X const& x) {
  using Y =
      typename exchanging::Asserted<exchanging::Changed<StepKind::reduce_scatter, X, Axis, Partial, Split<D>>>::type;
  if constexpr (Placed<Y>) return exchanging::scattered<Y, Axis>(communicator, group, x);
  else return Y{};
}

/// Split to Whole: every rank gets all parts.
template <class Axis, WithAllGather C, Placed X>
auto all_gather(C& communicator, typename C::Group const& group, X const& x) {
  using Got = exchanging::PlaceOn<X, Axis>;
  using Needs = std::conditional_t<Got::place.kind == Kind::split, Got, Split<exchanging::any_dim>>;
  using Y = typename exchanging::Asserted<exchanging::Changed<StepKind::all_gather, X, Axis, Needs, Whole>>::type;
  if constexpr (Placed<Y>) return exchanging::gathered<Y, Axis>(communicator, group, x);
  else return Y{};
}

/// Whole to Split<D>: this rank keeps its part; nothing is sent.
template <class Axis, class D, Placed X>
auto slice(X const& x) {
  using Y = typename exchanging::Asserted<exchanging::Changed<StepKind::slice, X, Axis, Whole, Split<D>>>::type;
  if constexpr (Placed<Y>) return exchanging::sliced<Y>(x);
  else return Y{};
}

// After a refusal: no second error.
template <class Axis>
RefusedTensor all_reduce(auto&, auto const&, RefusedTensor const&) {
  return {};
}
template <class Axis, class D>
RefusedTensor reduce_scatter(auto&, auto const&, RefusedTensor const&) {
  return {};
}
template <class Axis>
RefusedTensor all_gather(auto&, auto const&, RefusedTensor const&) {
  return {};
}
template <class Axis, class D>
RefusedTensor slice(RefusedTensor const&) {
  return {};
}

}  // namespace dovetail::typed
