// SPDX-License-Identifier: MIT
// What the plan calls things by: descriptions of dims, axes and layers, and the one place where the description of a
// user's type lives. The address of `named<T>::dim` (axis, layer) is the identity of T in a plan: plans keep the
// user's own word, and a refused plan turns it back into a template argument that every compiler prints.
#pragma once
#include <dovetail/meta/text.hpp>

namespace dovetail {

/// How a dim follows its leaders.
enum class Follows : std::uint8_t {
  nothing,
  shares,     ///< holds the image of the leader's range; held ranges overlap, owned ones never do (kv_heads)
  partition,  ///< no overlap, an extent known only from data (slots of batch and sequence)
};

/// A dim as plans know it. Its identity is its address: two dims of one name are two dims.
struct DimInfo {
  char const* name = "";
  DimInfo const* leader = nullptr;
  DimInfo const* second_leader = nullptr;
  Follows follows = Follows::nothing;
  bool may_be_empty = false;   ///< a rank may hold none of it; where false, more ranks than units is an error
  bool shown_by_size = false;  ///< prints as its extent where that is fixed: f32[batch,sequence,heads/tp,64]

  /// Does a split of `leading` split this dim?
  constexpr bool follows_or_is(DimInfo const* leading) const {
    return leading && (this == leading || leader == leading || second_leader == leading);
  }
  constexpr bool shares(DimInfo const* leading) const {
    return this != leading && follows == Follows::shares && follows_or_is(leading);
  }
};

/// An axis as plans know it: name, ranks, and what each has a share of. Its identity is its address.
struct AxisInfo {
  char const* name = "";
  i32 size = 1;
  i64 const* shares = nullptr;  ///< `size` weights for unequal devices, or nullptr for balanced blocks

  constexpr i64 share(i64 rank) const { return shares ? shares[rank] : 1; }
  /// Ranks that hold anything at all: a stated share of 0 gives none.
  constexpr i64 holders() const {
    i64 n = 0;
    for (i32 r = 0; r < size; ++r) n += share(r) > 0;
    return n;
  }
};

/// Equal by name, size and shares: what a plan made at compile time and one made at run time have in common.
constexpr bool same_axis(AxisInfo const& a, AxisInfo const& b) {
  if (!same_text(a.name, b.name) || a.size != b.size) return false;
  for (i32 r = 0; r < a.size; ++r)
    if (a.share(r) != b.share(r)) return false;
  return true;
}

/// A layer has no data of its own: its address says which type it is.
struct LayerInfo {
  char is_layer = 1;
};

/// Members are instantiated where they are used: a dim has no axis and an axis no dim.
template <class T>
struct named {
  static constexpr DimInfo dim = T::describe_dim();
  static constexpr AxisInfo axis = T::describe_axis();
  static constexpr LayerInfo layer{};
};

/// Identity of the dim D in plans.
template <class D>
inline constexpr DimInfo const* dim_of = &named<D>::dim;
/// Identity of the axis A in plans.
template <class A>
inline constexpr AxisInfo const* axis_of = &named<A>::axis;
/// Identity of the layer L in plans.
template <class L>
inline constexpr LayerInfo const* layer_of = &named<L>::layer;

}  // namespace dovetail
