// SPDX-License-Identifier: MIT
// A layout that both units of the consumer name: an embedding and a head, whose vocabulary is split over two ranks.
#pragma once
#include <dovetail/dovetail.hpp>

inline constexpr dovetail::i64 vocabulary = 6, width = 4;

struct Tp : dovetail::Axis<"tp", 2> {};
struct Model : dovetail::Sequential<dovetail::TokenEmbedding<dovetail::EmbeddingConfig{vocabulary, width}>,
                                    dovetail::LmHead<dovetail::LmHeadConfig{vocabulary, width}>> {};
struct Layout : dovetail::TensorSharded<Tp, Model> {};

inline auto const* plan_here() { return &dovetail::plan_of<Layout>; }
/// The plan as the other unit sees it: the same object.
decltype(*plan_here()) plan_in_other_unit();
