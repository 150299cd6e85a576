// SPDX-License-Identifier: MIT
// Policies that multiply ranks: each maps named dims onto one axis around a layer. `Mapped` carries them all, the
// named ones differ in the dims they map. The innermost policy on an axis replaces the outer ones there; no dims
// switches the axis off.
#pragma once
#include <dovetail/layer/compose.hpp>

namespace dovetail {

/// The layer L with its dims D split over the axis A. The named policies are this with their dims filled in.
template <class A, class L, class... D>
struct Mapped {
  static constexpr i32 depth = depth_of<L>(), children = children_of<L>();
  static constexpr Value apply(Builder& b, Value x) {
    if constexpr (!NamesAxis<A>) {
      return b.fail(Verdict{.rule = Rule::policy_arguments, .layer = layer_of<A>}), x;
    } else if constexpr (!(NamesDim<D> && ...)) {
      ((NamesDim<D> ? void() : b.fail(Verdict{.rule = Rule::policy_arguments, .layer = layer_of<D>})), ...);
      return x;
    } else {
      MappedDims mapped;
      ((mapped.size() < max_mapped
            ? mapped.push(dim_of<D>)
            : b.fail(Verdict{.rule = Rule::plan_room, .op = "max_mapped", .extent = max_mapped})),
       ...);
      return b.under({axis_of<A>, mapped}, x, &apply_layer<L>);
    }
  }
};

/// Heads (KV heads follow), ffn and vocabulary: column and row splits, the all-reduces of Megatron (Shoeybi et al.,
/// 2019), vocabulary-parallel embedding and logits.
template <class A, class L>
struct TensorSharded : Mapped<A, L, heads, ffn, vocab> {};

/// Batch: replicas that serve other sequences; in training the ranks of a gradient reduction.
template <class A, class L>
struct Replicated : Mapped<A, L, batch> {};

/// Sequence: around what works on each token by itself, it turns all-reduces into reduce-scatters and all-gathers
/// (Korthikanti et al., 2022).
template <class A, class L>
struct SequenceSharded : Mapped<A, L, sequence> {};

}  // namespace dovetail
