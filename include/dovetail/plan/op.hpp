// SPDX-License-Identifier: MIT
// An op is the smallest thing that is placed. `Op` says what is always true of it, `Call` what one use of it reads,
// holds and yields, and what it does with each dim. Built-in ops and users' own are described in the same words.
#pragma once
#include <dovetail/mesh/split.hpp>
#include <dovetail/tensor/dtype.hpp>

namespace dovetail {

inline constexpr int max_operands = 4;    ///< values that one call reads or looks at
inline constexpr int max_parameters = 2;  ///< parameters that it holds
inline constexpr int max_results = 2;     ///< values that it yields
inline constexpr int max_roles = 12;      ///< dims that it says something about
inline constexpr int max_numbers = 8;     ///< constants of a step

/// An op's identity is its address; make it `inline constexpr Op silu{.name = "silu", .elementwise = true};`.
struct Op {
  char const* name = "";
  bool elementwise = false;     ///< every dim not named in the call is mapped
  bool additive = false;        ///< f(sum x, sum y) = sum f(x, y): operands that are all Partial may stay Partial
  bool maximum = false;         ///< what it contracts is a maximum, not a sum
  int lazy = -1;                ///< operand in which it is linear: Partial there and Whole elsewhere stays Partial
  bool folds = false;           ///< contracts a leader into its sharing follower
  int linear = -1;              ///< operand in which it is linear: a Shared value there stays Shared
  int flops = 0;                ///< floating-point operations for each point of the union of its dims
  Op const* adjoint = nullptr;  ///< op that carries cotangents back; placed by the same rules
};

/// What an op does with a dim. `routed`: the dim's rows go where data says.
enum class Role : std::uint8_t { undeclared, mapped, contracted, whole, routed };

/// What a call does with one dim.
struct DimRole {
  DimInfo const* dim = nullptr;
  Role role = Role::undeclared;
};

/// Handles that layers pass around; what they stand for is in the plan.
struct Value {
  i32 id = -1;
};
/// A parameter of the layer that is being built.
struct ParameterId {
  i32 id = -1;
};
/// A state of the layer that is being built, such as a cache.
struct StateId {
  i32 id = -1;
};

/// Constants of one step (an epsilon, a rotary base); their meaning is the op's.
struct Numbers {
  double at[max_numbers]{};
  constexpr double operator[](int i) const { return at[i]; }
  friend constexpr bool operator==(Numbers const&, Numbers const&) = default;
};

/// A witness is looked at for its placement only; it is not read.
struct Operand {
  Value value{};
  bool witness = false;
};

/// What a call yields: its dims, and what it is stored as.
struct Result {
  Dims dims{};
  Storage storage = Storage::activation;
};

/// One use of an op. Fill it with the functions below, then give it to the builder.
struct Call {
 private:
  // before its uses: clang needs it so
  template <class T, int Most>
  constexpr Call& put(Vec<T, Most>& list, T const& item, char const* bound) {
    if (list.count < Most) list.items[list.count++] = item;
    else full = bound, most = Most;
    return *this;
  }

 public:
  Op const* op = nullptr;
  Vec<Operand, max_operands> operands{};
  Vec<ParameterId, max_parameters> parameters{};
  Vec<Result, max_results> results{};
  Vec<DimRole, max_roles> roles{};
  StateId state{};
  Numbers numbers{};
  bool rest_is_mapped = false;
  char const* full = nullptr;  ///< constant that bounds what there was no room for
  i32 most = 0;                ///< its value

  constexpr explicit Call(Op const& o) : op(&o) {}
  constexpr Call& reads(Value v) { return put(operands, {v, false}, "max_operands"); }
  constexpr Call& witnesses(Value v) { return put(operands, {v, true}, "max_operands"); }
  constexpr Call& holds(ParameterId p) { return put(parameters, p, "max_parameters"); }
  constexpr Call& keeps(StateId s) { return state = s, *this; }
  constexpr Call& yields(Dims const& d, Storage s = Storage::activation) { return put(results, {d, s}, "max_results"); }
  constexpr Call& with(Numbers const& n) { return numbers = n, *this; }
  constexpr Call& says(DimInfo const* dim, Role role) { return put(roles, {dim, role}, "max_roles"); }
  /// A split of one of these dims is a split of the result.
  constexpr Call& maps(Dims const& d) { return all(d, Role::mapped); }
  /// The same for every dim that is not named.
  constexpr Call& maps_rest() { return rest_is_mapped = true, *this; }
  constexpr Call& contracts(Dims const& d) { return all(d, Role::contracted); }
  constexpr Call& needs_whole(Dims const& d) { return all(d, Role::whole); }
  template <class... D>
  constexpr Call& maps() {
    return (says(dim_of<D>, Role::mapped), ...), *this;
  }
  template <class... D>
  constexpr Call& contracts() {
    return (says(dim_of<D>, Role::contracted), ...), *this;
  }
  template <class... D>
  constexpr Call& needs_whole() {
    return (says(dim_of<D>, Role::whole), ...), *this;
  }
  template <class... D>
  constexpr Call& routes() {
    return (says(dim_of<D>, Role::routed), ...), *this;
  }

  /// What this call does with `dim`; one that is not named takes the role of its named follower or leader.
  constexpr Role role_of(DimInfo const* dim) const {
    Role related = op->elementwise || rest_is_mapped ? Role::mapped : Role::undeclared;
    for (DimRole const* r = roles.begin(); r != roles.end(); ++r) {
      if (r->dim == dim) return r->role;
      if (r->dim->leader == dim || dim->leader == r->dim) related = r->role;
    }
    return related;
  }

 private:
  constexpr Call& all(Dims const& d, Role role) {
    for (Extent const* e = d.begin(); e != d.end(); ++e) says(e->dim, role);
    return *this;
  }
};

}  // namespace dovetail
