// SPDX-License-Identifier: MIT
// Extents: a fixed number, or a symbol of the plan that a run binds. An extent also carries its indivisible unit and,
// for a sharing follower, the extent of its leader: 3 KV heads of 9 query heads are split as the 9 are.
#pragma once
#include <dovetail/tensor/dim.hpp>

namespace dovetail {

inline constexpr int max_dims = 6;                 ///< dims of one tensor
inline constexpr i64 max_elements = i64{1} << 53;  ///< of one tensor: byte counts and products with shares stay exact

/// Extents that only a run knows. They differ by sequence where prompts are ragged; never resolved by a dim's name.
enum class Symbol : std::uint8_t {
  fixed,    ///< `Extent::size` is the number
  batch,    ///< sequences
  tokens,   ///< new tokens of a sequence
  context,  ///< past and new tokens of a sequence
  rows,     ///< positions of a sequence that get logits
  counted,  ///< a count that a step computed: value `Extent::counter`
};

/// One dim of a tensor with its size, which is a number or known only from a run.
struct Extent {
  DimInfo const* dim = nullptr;
  i64 size = 0;  ///< 0 where symbolic
  i64 lead = 0;  ///< extent that is split: the leader's for a sharing follower, else `size`
  i64 unit = 1;  ///< a split never cuts a unit
  Symbol symbol = Symbol::fixed;
  i32 counter = -1;
  friend constexpr bool operator==(Extent const&, Extent const&) = default;
};

/// Dims of a tensor, outermost first: symbolic ones lead, fixed ones follow.
using Dims = Vec<Extent, max_dims>;

/// `extent<heads>(9)`, `extent<kv_heads>(3, 9)` (3 of 9 leaders), `extent<ffn>(11008, 0, 128)` (units of 128).
template <class D>
constexpr Extent extent(i64 size, i64 lead = 0, i64 unit = 1) {
  return {dim_of<D>, size, lead ? lead : size, unit, Symbol::fixed, -1};
}
template <class D>
constexpr Extent extent(Symbol symbol) {
  return {dim_of<D>, 0, 0, 1, symbol, -1};
}

/// Dims of these extents, outermost first.
constexpr Dims dims(auto const&... extents) {
  Dims d;
  (d.push(extents), ...);
  return d;
}

/// The extent that a split of `leading` splits, or nullptr.
constexpr Extent const* find(Dims const& dims, DimInfo const* leading) {
  if (!leading) return nullptr;
  for (Extent const* e = dims.begin(); e != dims.end(); ++e)
    if (e->dim == leading || e->dim->leader == leading || e->dim->second_leader == leading) return e;
  return nullptr;
}
/// True where `dim` itself is among them, not merely a leader or a follower.
constexpr bool has_exactly(Dims const& dims, DimInfo const* dim) {
  for (Extent const* e = dims.begin(); e != dims.end(); ++e)
    if (e->dim == dim) return true;
  return false;
}
/// `dims` without those of `gone`.
constexpr Dims without(Dims const& dims, Dims const& gone) {
  Dims d;
  for (Extent const* e = dims.begin(); e != dims.end(); ++e)
    if (!has_exactly(gone, e->dim)) d.push(*e);
  return d;
}
/// `dims`, then `more`.
constexpr Dims with(Dims dims, Dims const& more) {
  for (Extent const* e = more.begin(); e != more.end(); ++e) dims.push(*e);
  return dims;
}

}  // namespace dovetail
