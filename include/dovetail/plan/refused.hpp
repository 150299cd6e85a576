// SPDX-License-Identifier: MIT
// What stands in for the plan of a layout that was refused: an object that answers every query with something that
// compares true to anything, so that the one error about the layout is the only one. No program is made from it; the
// questions of plan/plan.hpp and the predictions of plan/ must all be found here by name.
#pragma once
#include <concepts>
#include <dovetail/mesh/region.hpp>
#include <dovetail/plan/plan.hpp>
#include <dovetail/plan/storage_bytes.hpp>

namespace dovetail {

struct Refused;

/// An answer about a plan that does not exist. Comparisons, sums and negations of it are answers of the same kind.
struct Anything {
  template <class T>
  requires(std::integral<T> || std::floating_point<T>) constexpr operator T() const { return T(1); }
  constexpr Anything operator!() const { return {}; }
  constexpr Anything operator-() const { return {}; }
  constexpr Refused const& operator()(auto const&...) const;
  constexpr Refused const& operator[](i64) const;
  constexpr Refused const& operator*() const;
  constexpr Refused const* operator->() const;
  constexpr Refused const* begin() const { return nullptr; }
  constexpr Refused const* end() const { return nullptr; }
  constexpr Anything size() const { return {}; }
  constexpr Anything empty() const { return {}; }
};

/// One of two operands is an answer about a plan that does not exist.
template <class A, class B>
concept EitherIsAnything = std::derived_from<A, Anything> || std::derived_from<B, Anything>;

// Each is found by its argument, so nothing else is compared this way.
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator==(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator!=(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator<(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator<=(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator>(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator>=(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator+(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator-(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator*(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator/(A const&, B const&) { return {}; }
template <class A, class B>
requires EitherIsAnything<A, B>
constexpr Anything operator%(A const&, B const&) { return {}; }

/// What plans, their parts and the results of their queries have as members or functions; all can be called.
template <class Answer>
struct AnyMembers : Anything {
  Answer steps, values, parameters, states, stages_list, loops, scopes, edges, ties, inputs, outputs, result, above;
  Answer verdict, rule, ok, stages, stage, mesh, replicas, ranks_per_replica, ranks, place_of, rank_of, at, base;
  Answer weight_bytes_per_rank, executions, count, executed, inside, output, layer_index, on_stage, layers;
  Answer size, empty, name, share, shares;
  Answer dims, dim, places, storage, value_class, loop, step, origin, extent, lead, unit, symbol, counter;
  Answer kind, op, operands, results, numbers, state, body, axis, scope, from, to, phase, value, witness, parameter;
  Answer layer, placed, tied, gradient, path, parent, from_stage, to_stage, sent, received, first, second, messages;
  Answer bytes, units, other_dim, other_axis, total, of, along, by_kind, by_axis, cost, offset, buffer, peak, gap;
  Answer shares_buffer, items;
};

/// The plan of a refused layout: every member and every question of it is an answer of the same kind.
struct Refused : AnyMembers<AnyMembers<Anything>> {
  template <class L>
  constexpr Refused const& within() const {
    return *this;
  }
  /// Functions that run a plan still compile, so that they add no error of their own.
  constexpr operator Plan const&() const;
};

inline constexpr Refused refused{};       ///< the only one
inline constexpr Plan plan_of_refused{};  ///< where a Plan is asked for: no steps

constexpr Refused const& Anything::operator()(auto const&...) const { return refused; }
constexpr Refused const& Anything::operator[](i64) const { return refused; }
constexpr Refused const& Anything::operator*() const { return refused; }
constexpr Refused const* Anything::operator->() const { return &refused; }
constexpr Refused::operator Plan const&() const { return plan_of_refused; }

// What is handed in is always `refused`, which outlives every reference to it.
// NOLINTBEGIN(bugprone-return-const-ref-from-parameter)

// The predictions of plan/memory.hpp, traffic.hpp, flops.hpp, arena.hpp, peers.hpp, coverage.hpp and identity.hpp. With
// the types of theirs, so that what is a legal call there is one here.
constexpr Refused const& held_parameters(Refused const& p, i64) { return p; }
constexpr Refused const& owned_parameters(Refused const& p, i64) { return p; }
constexpr Refused const& total_parameters(Refused const& p) { return p; }
constexpr Refused const& weight_bytes(Refused const& p, i64, StorageBytes const&) { return p; }
constexpr Refused const& weight_bytes_per_rank(Refused const& p, StorageBytes const&) { return p; }
constexpr Refused const& state_bytes(Refused const& p, i64, RunShape, StorageBytes const&) { return p; }
constexpr Refused const& kv_bytes_per_token(Refused const& p, i64, StorageBytes const&) { return p; }
constexpr Refused const& step_traffic(Refused const& p, i32, i64, RunShape, StorageBytes const&) { return p; }
constexpr Refused const& traffic(Refused const& p, i64, RunShape, StorageBytes const&) { return p; }
constexpr Refused const& total_traffic(Refused const& p, RunShape, StorageBytes const&) { return p; }
constexpr Refused const& traffic_by_axis(Refused const& p, char const*, i64, RunShape, StorageBytes const&) {
  return p;
}
constexpr Refused const& step_flops(Refused const& p, i32, i64, RunShape) { return p; }
constexpr Refused const& flops(Refused const& p, i64, RunShape) { return p; }
constexpr Refused const& arena_of(Refused const& p, i64, RunShape, StorageBytes const&) { return p; }
constexpr Refused const& receives_from(Refused const& p, i32, i64) { return p; }
constexpr Refused const& receivers_of(Refused const& p, i32, i64) { return p; }
constexpr Refused const& rank_along(Refused const& p, i64, i32, i32) { return p; }
constexpr Refused const& coverage(Refused const& p) { return p; }
constexpr Refused const& lifetimes(Refused const& p, i32) { return p; }
constexpr Refused const& plan_hash(Refused const& p) { return p; }
constexpr Refused const& same_plan(Refused const& p, Refused const&) { return p; }
constexpr Refused const& same_plan(Refused const& p, Plan const&) { return p; }
constexpr Refused const& same_plan(Plan const&, Refused const& p) { return p; }

// NOLINTEND(bugprone-return-const-ref-from-parameter)

}  // namespace dovetail
