// SPDX-License-Identifier: MIT
// Ops between typed tensors: `contract`, `add`, `map`. Each computes on this rank's parts alone, and compiles only
// where decide() says that this is right: nothing is ever moved here.
#pragma once
#include <dovetail/plan/builtin_ops.hpp>
#include <dovetail/typed/judge.hpp>

namespace dovetail::typed {

/// Any function of single elements, which knows nothing of sums.
inline constexpr Op elementwise{.name = "map", .elementwise = true};

namespace computing {

template <class Shape, i32 From, i32 To>
struct Part;
template <class... O, i32 From, i32 To>
struct Part<Shape<O...>, From, To> {
  template <std::size_t... I>
  static auto pick(std::index_sequence<I...>) -> Shape<std::tuple_element_t<From + I, std::tuple<O...>>...>;
  using type = decltype(pick(std::make_index_sequence<static_cast<std::size_t>(To - From)>()));
};
template <class A, class B>
struct Joined;
template <class... A, class... B>
struct Joined<Shape<A...>, Shape<B...>> {
  using type = Shape<A..., B...>;
};

/// Dims at the end of `x` that are the dims at the end of `w`.
constexpr i32 common_at_end(Dims const& x, Dims const& w) {
  i32 n = 0;
  while (n < x.size() && n < w.size() && x[x.size() - 1 - n] == w[w.size() - 1 - n]) ++n;
  return n;
}
constexpr i32 common(Dims const& x, Dims const& w) {
  i32 n = 0;
  for (auto const& e : x) n += has_exactly(w, e.dim);
  return n;
}

template <class X, class W>
struct Contraction {
  static constexpr i32 contracted = common_at_end(X::dims, W::dims), parameters = 1;
  static constexpr i32 kept = X::dims.size() - contracted, made = W::dims.size() - contracted;
  static_assert(contracted > 0 && common(X::dims, W::dims) == contracted,
                "typed: contract(x, w) sums over the last dims of both, which are equal, and they share no others");
  using Result = typename Joined<typename Part<typename X::Shape, 0, kept>::type,
                                 typename Part<typename W::Shape, 0, made>::type>::type;
  using Sum = typename Part<typename W::Shape, made, made + contracted>::type;
  static constexpr Call call = Call(matmul).contracts(Sum::dims).maps(Result::dims).yields(Result::dims);
};

template <Op const& F, class X, class... Y>
struct Elementwise {
  static constexpr i32 parameters = 0;
  static_assert(((common_at_end(X::dims, Y::dims) == Y::dims.size()) && ...),
                "typed: the dims of a second operand are the last dims of the first");
  using Result = typename X::Shape;
  static constexpr Call call = Call(F).yields(Result::dims);
};

template <class Form, class Y, class X, class W>
Y contracted(X const& x, W const& w) {
  Y y(x.at());
  i64 rows = 1, width = 1, depth = 1;
  for (i32 k = 0; k < X::dims.size(); ++k) (k < Form::kept ? rows : depth) *= x.box().ranges[k].size();
  for (i32 k = 0; k < Form::made; ++k) width *= w.box().ranges[k].size();
  auto const* const left = x.local().data();
  auto const* const right = w.local().data();
  for (i64 m = 0; m < rows; ++m)
    for (i64 n = 0; n < width; ++n) {
      typename X::Scalar sum{};
      for (i64 k = 0; k < depth; ++k) sum += left[m * depth + k] * right[n * depth + k];
      y.local()[static_cast<std::size_t>(m * width + n)] = sum;
    }
  return y;
}

template <class Y, class F, class A, class B>
Y combined(F const& f, A const& a, B const& b) {
  Y y(a.at());
  auto const left = a.local(), right = b.local();
  for (std::size_t i = 0; i < left.size(); ++i) y.local()[i] = f(left[i], right[i % right.size()]);
  return y;
}

}  // namespace computing

/// y[m.., n..] = sum over k of x[m.., k..] w[n.., k..]: w is stored as checkpoints store it, output dims first.
template <Placed X, Placed W>
auto contract(X const& x, W const& w) {
  using Form = computing::Contraction<X, W>;
  using Y = typename Judged<Form, X, W>::type;
  if constexpr (Placed<Y>) return computing::contracted<Form, Y>(x, w);
  else return Y{};
}

/// x + y; y may have only the last dims of x, as a bias has. Partial sums add up where both are Partial.
template <Placed X, Placed Y>
auto add(X const& x, Y const& y) {
  using Z = typename Judged<computing::Elementwise<dovetail::add, X, Y>, X, Y>::type;
  if constexpr (Placed<Z>) return computing::combined<Z>([](auto a, auto b) { return a + b; }, x, y);
  else return Z{};
}

/// f(x) or f(x, y) of single elements; y may have only the last dims of x.
template <class F, Placed X>
auto map(F const& f, X const& x) {
  using Y = typename Judged<computing::Elementwise<elementwise, X>, X>::type;
  if constexpr (Placed<Y>) return computing::combined<Y>([&](auto a, auto) { return f(a); }, x, x);
  else return Y{};
}
template <class F, Placed X, Placed Y>
auto map(F const& f, X const& x, Y const& y) {
  using Z = typename Judged<computing::Elementwise<elementwise, X, Y>, X, Y>::type;
  if constexpr (Placed<Z>) return computing::combined<Z>(f, x, y);
  else return Z{};
}

// After a refusal: no second error.
template <class... X>
requires AnyRefused<X...> RefusedTensor contract(X const&...) { return {}; }
template <class... X>
requires AnyRefused<X...> RefusedTensor add(X const&...) { return {}; }
template <class F, class... X>
requires AnyRefused<X...> RefusedTensor map(F const&, X const&...) { return {}; }

}  // namespace dovetail::typed
