// SPDX-License-Identifier: MIT
// Dims are names. A dim says who it follows and whether every rank of an axis must hold a unit of it; its extent and
// its unit belong to the tensor. A user adds a dim with one line: `struct patches : dovetail::Dim<"patches"> {};`.
#pragma once
#include <concepts>
#include <dovetail/meta/named.hpp>

namespace dovetail {

/// Option of Dim: ranks without a unit are legal, and neutral in every op.
inline constexpr int may_be_empty = 1;
/// Option of Dim: printed as its extent, since its name tells a reader less.
inline constexpr int shown_by_size = 2;

/// Base of a dim that follows nothing.
template <Text Label, int Options = 0>
struct Dim {
  static constexpr auto label = Label;
  static constexpr DimInfo describe_dim() {
    return {
        Label.chars, nullptr, nullptr, Follows::nothing, (Options & may_be_empty) != 0, (Options & shown_by_size) != 0};
  }
};

/// Base of a dim whose ranks hold the image of the leader's range: KV heads of query heads.
template <Text Label, class Leader>
struct SharingFollower {
  static constexpr auto label = Label;
  static constexpr DimInfo describe_dim() {
    return {Label.chars, &named<Leader>::dim, nullptr, Follows::shares, false, false};
  }
};

/// Base of a dim that is partitioned as its two leaders are, with an extent known from data: slots of routed tokens.
template <Text Label, class First, class Second>
struct PartitionFollower {
  static constexpr auto label = Label;
  static constexpr DimInfo describe_dim() {
    return {Label.chars, &named<First>::dim, &named<Second>::dim, Follows::partition, true, false};
  }
};

/// A type that is a dim.
template <class D>
concept NamesDim = requires {
  { D::describe_dim() } -> std::same_as<DimInfo>;
};

// The dims of language models. Users' own are no different.
struct batch : Dim<"batch", may_be_empty> {};                   ///< sequences
struct sequence : Dim<"sequence", may_be_empty> {};             ///< new tokens
struct keys : Dim<"keys", may_be_empty> {};                     ///< past and new tokens: a guise of sequence
struct rows : Dim<"rows", may_be_empty> {};                     ///< positions that get logits: a guise of sequence
struct embed : Dim<"embed"> {};                                 ///< channels between blocks
struct heads : Dim<"heads"> {};                                 ///< query heads
struct kv_heads : SharingFollower<"kv_heads", heads> {};        ///< each serves some query heads
struct head_dim : Dim<"head_dim", shown_by_size> {};            ///< channels of a head
struct ffn : Dim<"ffn"> {};                                     ///< hidden channels of an MLP
struct positions : Dim<"positions", may_be_empty> {};           ///< rows of a table by position
struct kinds : Dim<"kinds", may_be_empty> {};                   ///< rows of a table of token types
struct vocab : Dim<"vocab", may_be_empty> {};                   ///< token ids
struct experts : Dim<"experts"> {};                             ///< MLPs of which each token takes a few
struct slots : PartitionFollower<"slots", batch, sequence> {};  ///< tokens as they are dealt to experts

}  // namespace dovetail
