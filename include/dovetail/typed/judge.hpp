// SPDX-License-Identifier: MIT
// The judgement on hand-written code: decide() says how an op needs its operands, and where the planner would insert a
// step the type is refused, with one error that names op, operand, axis, what is needed, what came, and the function
// that makes one of the other.
#pragma once
#include <dovetail/plan/plan_of.hpp>
#include <dovetail/typed/tensor.hpp>

namespace dovetail::typed {

// ---- words of the message
template <auto* Op>
struct op {};  ///< the op that was called
template <StepKind Function>
struct use {};  ///< all_reduce<Axis>(..), all_gather<Axis>(..), reduce_scatter<Axis, Dim>(..), slice<Axis, Dim>(..)
template <i32 Number>
struct operand {};  ///< its number, from 0

template <class Op, class Operand, class Axis, class Needs, class Got, class Fix>
struct placement_needs {
  static_assert(std::is_same_v<Needs, Got>,
                "placement/needs: an operand is not placed as this op needs it; arguments: op, operand, axis, needed "
                "place, given place, what makes it so; see docs/errors/placement-needs.md");
};

/// The first operand that an op does not take as it is.
struct Fault {
  i32 operand = -1, axis = -1;
  Place needs{}, got{};
};

/// One use of an op. @param Form gives `call`, a Call on the operands' dims, and `parameters`, how many of the last
/// operands stand where they are and are not moved (weights)
template <class Form, class... X>
struct Decided {
  static constexpr i32 count = static_cast<i32>(sizeof...(X)), movable = count - Form::parameters;
  static constexpr Dims dims[sizeof...(X)] = {X::dims...};
  static constexpr Places places[sizeof...(X)] = {X::places...};

  static constexpr Decision on(i32 axis) {
    Vec<Arrival, max_operands> operands;
    Vec<Arrival, max_parameters> parameters;
    for (i32 i = 0; i < count; ++i) {
      Arrival const arrival{&dims[i], places[i][axis], true};
      if (i < movable) operands.push(arrival);
      else parameters.push(arrival);
    }
    return decide(Form::call, operands, parameters, MappedDims{});
  }
  static constexpr Place result(i32 axis) { return on(axis).result[0]; }
  static constexpr Fault fault(i32 axes) {
    for (i32 a = 0; a < axes; ++a) {
      Decision const d = on(a);
      for (i32 i = 0; i < count; ++i) {
        Place const needs = i < movable ? d.operand[i] : d.parameter[i - movable];
        if (!(needs == places[i][a])) return {i, a, needs, places[i][a]};
      }
    }
    return {};
  }
};

namespace judging {

template <Place P, class Sight>
struct Word;
template <Place P, class... W>
struct Word<P, std::tuple<W...>> {
  using type = decltype(spelling::word<P, W...>());
};

struct Accepted {};
template <class Form, Fault F, class Axes, class Sight>
constexpr auto verdict() {
  if constexpr (F.axis < 0) return std::type_identity<Accepted>{};
  else
    return std::type_identity<placement_needs<op<Form::call.op>, operand<F.operand>, std::tuple_element_t<F.axis, Axes>,
                                              typename Word<F.needs, Sight>::type, typename Word<F.got, Sight>::type,
                                              use<redistribution(F.got, F.needs)>>>{};
}

template <bool Legal, class T, class S, class Axes, class Sight, class D, class Index>
struct ResultOf {
  using type = RefusedTensor;
};
template <class T, class S, class Axes, class Sight, class D, std::size_t... I>
struct ResultOf<true, T, S, Axes, Sight, D, std::index_sequence<I...>> {
  using type = Tensor<T, S, On<std::tuple_element_t<I, Axes>, typename Word<D::result(I), Sight>::type>...>;
};

}  // namespace judging

/// A Form applied to tensors: asserts, at class scope, that they are placed as it needs them, and names the result.
template <class Form, class First, class... Rest>
struct Judged {
  using Axes = typename First::Axes;
  static_assert((std::is_same_v<Axes, typename Rest::Axes> && ...),
                "typed: the operands of one op stand on the same axes, in the same order");
  static_assert((std::is_same_v<typename First::Scalar, typename Rest::Scalar> && ...),
                "typed: the operands of one op have the same element type");
  using Sight = decltype(std::tuple_cat(typename First::Sight{}, typename Rest::Sight{}...));
  using D = Decided<Form, First, Rest...>;
  static constexpr Fault fault = D::fault(First::mesh.size());
  static_assert(sizeof(typename decltype(judging::verdict<Form, fault, Axes, Sight>())::type) > 0);
  using type = typename judging::ResultOf<(fault.axis < 0), typename First::Scalar, typename Form::Result, Axes, Sight,
                                          D, std::make_index_sequence<std::tuple_size_v<Axes>>>::type;
};

}  // namespace dovetail::typed
