// SPDX-License-Identifier: MIT
// The one rule of placement: for one call and one mesh axis, what every operand must be, what every parameter is and
// what comes out. The planner asks it and inserts redistributions; the typed level asks it and refuses. It knows no
// built-in op or layer. docs/design/0002-decide.md tells the rules in words.
#pragma once
#include <dovetail/meta/verdict.hpp>
#include <dovetail/plan/op.hpp>

namespace dovetail {

inline constexpr int max_mapped = 8;  ///< dims that one policy maps
/// Dims that one policy maps to its axis.
using MappedDims = Vec<DimInfo const*, max_mapped>;

/// An operand or a parameter as seen from one axis.
struct Arrival {
  Dims const* dims = nullptr;
  Place at{};
  bool placed = true;  ///< false: a parameter at its first use, still free
};

/// What an axis does with a call: where operands, parameters and results must stand, or the rule that is broken.
struct Decision {
  Rule rule = Rule::ok;
  DimInfo const* dim = nullptr;        ///< what this axis splits the call by
  DimInfo const* other_dim = nullptr;  ///< the second candidate, where ambiguous
  Place operand[max_operands]{};
  Place parameter[max_parameters]{};
  Place result[max_results]{};
};

/// How a tensor's dims stand to a split of `leading`.
enum class Relation : std::uint8_t { none, split, follower };

/// The strongest relation that one of `dims` has to a split of `leading`.
constexpr Relation relation(Dims const& dims, DimInfo const* leading) {
  Relation r = Relation::none;
  for (Extent const* e = dims.begin(); e != dims.end(); ++e) {
    if (e->dim == leading) return Relation::split;
    if (e->dim->leader == leading || e->dim->second_leader == leading)
      r = e->dim->follows == Follows::shares ? Relation::follower : Relation::split;
  }
  return r;
}
/// True where a split of `leading` splits one of `dims`, or a follower among them.
constexpr bool has(Dims const& dims, DimInfo const* leading) { return relation(dims, leading) != Relation::none; }

namespace deciding {

/// Does the call, or a parameter that already stands, need `dim` whole?
constexpr bool is_whole(Call const& call, Vec<Arrival, max_parameters> const& parameters, DimInfo const* dim) {
  for (auto const& r : call.roles)
    if (r.role == Role::whole && r.dim->follows_or_is(dim)) return true;
  for (auto const& p : parameters)
    if (p.placed && has(*p.dims, dim) && !(p.at.cut() && p.at.dim == dim)) return true;
  return false;
}

/// Rule 1 and 2: the dim to split by, from parameters first, else from the first operand that arrives split.
constexpr void choose_dim(Decision& d, Call const& call, Vec<Arrival, max_operands> const& operands,
                          Vec<Arrival, max_parameters> const& parameters, MappedDims const& mapped) {
  auto const candidate = [&](DimInfo const* dim) {
    if (d.dim && d.dim != dim) d.rule = Rule::placement_ambiguous, d.other_dim = dim;
    else d.dim = dim;
  };
  for (Arrival const *a = parameters.items, *end = a + parameters.count; a != end; ++a) {
    Arrival const& p = *a;
    if (p.placed) {
      if (p.at.cut()) candidate(p.at.dim);
      continue;
    }
    for (i32 m = 0; m < mapped.count; ++m)
      if (has(*p.dims, mapped.items[m]) && !is_whole(call, parameters, mapped.items[m])) candidate(mapped.items[m]);
  }
  for (Arrival const *o = operands.items, *end = o + operands.count; !d.dim && o != end; ++o)
    if (o->at.cut() && !is_whole(call, parameters, o->at.dim)) d.dim = o->at.dim;
}

/// Rule 3: what stays Partial because the op lets sums through.
constexpr bool stays_partial(Decision& d, Call const& call, Vec<Arrival, max_operands> const& operands,
                             Vec<Arrival, max_parameters> const& parameters) {
  Op const& op = *call.op;
  if (d.dim || operands.empty()) return false;
  bool stay = op.additive && operands[0].at.kind == Kind::partial_sum;
  for (auto const& o : operands) stay = stay && o.at == operands[0].at;
  for (auto const& p : parameters) stay = stay && (!p.placed || p.at == operands[0].at);
  if (stay) {
    for (i32 i = 0; i < operands.size(); ++i) d.operand[i] = operands[0].at;
    for (i32 i = 0; i < parameters.size(); ++i) d.parameter[i] = operands[0].at;
    for (i32 i = 0; i < call.results.size(); ++i) d.result[i] = operands[0].at;
    return true;
  }
  if (op.lazy < 0 || operands[op.lazy].at.kind != Kind::partial_sum) return false;
  for (i32 i = 0; i < operands.size(); ++i)
    if (i != op.lazy && !operands[i].at.whole()) return false;
  for (i32 i = 0; i < parameters.size(); ++i)
    if (parameters[i].placed && !parameters[i].at.whole()) return false;
  d.operand[op.lazy] = d.result[0] = operands[op.lazy].at;
  return true;
}

}  // namespace deciding

/// Decides one axis. @param mapped the dims that the innermost policy on this axis maps.
/// @post every operand's place is one that a redistribution can make of what arrived; Whole where nothing is said.
constexpr Decision decide(Call const& call, Vec<Arrival, max_operands> const& operands,
                          Vec<Arrival, max_parameters> const& parameters, MappedDims const& mapped) {
  Decision d;
  Op const& op = *call.op;
  for (Arrival const *a = operands.items, *end = a + operands.count; a != end; ++a) {
    Arrival const& o = *a;
    if (!o.at.cut()) continue;
    Extent const* e = find(*o.dims, o.at.dim);
    if (!e || call.role_of(e->dim) != Role::undeclared) continue;
    d.rule = Rule::op_undeclared, d.dim = e->dim;
    return d;
  }
  deciding::choose_dim(d, call, operands, parameters, mapped);
  if (d.rule != Rule::ok || deciding::stays_partial(d, call, operands, parameters)) return d;
  for (i32 i = 0; i < parameters.size(); ++i)
    if (parameters[i].placed && !parameters[i].at.partial()) d.parameter[i] = parameters[i].at;
  if (!d.dim) return d;

  // Rule 4 and 5: operands that have the dim are split by it; followers that meet no leader are consumed as Shared.
  Relation operand[max_operands]{}, result[max_results]{};
  bool arrives_shared = false, any_survives = false, consumed = false;
  i32 leaders = 0;
  for (i32 i = 0; i < operands.count; ++i) {
    operand[i] = relation(*operands.items[i].dims, d.dim);
    leaders += operand[i] == Relation::split;
    arrives_shared = arrives_shared || operands.items[i].at.kind == Kind::shared;
  }
  for (i32 i = 0; i < call.results.count; ++i) {
    result[i] = relation(call.results.items[i].dims, d.dim);
    any_survives = any_survives || result[i] != Relation::none;
  }
  // A sum over holders cannot go into an op that is not linear in it: the value is made whole for it instead.
  for (i32 i = 0; i < operands.count && arrives_shared && !any_survives; ++i)
    if (operand[i] == Relation::follower && operands.items[i].at.kind == Kind::shared && op.linear != i &&
        !op.additive) {
      d.dim = nullptr;
      return d;
    }
  bool holds_part = false, stays_shared = false;
  for (i32 i = 0; i < parameters.count && arrives_shared; ++i)
    holds_part = holds_part || has(*parameters.items[i].dims, d.dim);
  for (i32 i = 0; i < operands.count; ++i) {
    if (operand[i] == Relation::none) continue;
    d.operand[i] = split_on(d.dim);
    if (operand[i] != Relation::follower) continue;
    if (!any_survives && (op.linear < 0 || op.linear == i)) {
      if (!consumed) d.operand[i] = shared_on(d.dim);
      consumed = true;  // one Shared operand counts every element once; a second would count sums of sums
    } else if (arrives_shared && !leaders && ((op.additive && !holds_part) || op.linear == i)) {
      d.operand[i] = shared_on(d.dim);  // beside its leader an op reads exactly what the rank holds; here none is
      stays_shared = true;
    }
  }
  for (i32 i = 0; i < parameters.count; ++i)
    if (!parameters.items[i].placed && has(*parameters.items[i].dims, d.dim)) d.parameter[i] = split_on(d.dim);
  for (i32 i = 0; i < call.results.count; ++i) {
    bool const shared = result[i] != Relation::none && (stays_shared || (op.folds && result[i] == Relation::follower));
    d.result[i] = result[i] != Relation::none ? Place{shared ? Kind::shared : Kind::split, d.dim}
                  : op.maximum                ? partial_max
                                              : partial_sum;
  }
  return d;
}

}  // namespace dovetail
