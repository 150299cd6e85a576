// SPDX-License-Identifier: MIT
// Layouts that the tests of a plan's texts share: SmolLM2-135M in three policies, and a small model with 9 query heads
// on 3 KV heads.
#pragma once
#include <dovetail/dovetail.hpp>
#include <string>

namespace printed {

namespace dt = dovetail;

struct Dp : dt::Axis<"dp", 2> {};
struct Pp : dt::Axis<"pp", 2> {};
struct Pp5 : dt::Axis<"pp", 5> {};
struct Tp : dt::Axis<"tp", 3> {};
struct Tp2 : dt::Axis<"tp", 2> {};
struct Unequal : dt::Axis<"tp", dt::Shares<2, 1>{}> {};
struct SmolLM2 : dt::Llama<dt::models::smollm2_135m> {};
struct Layout : dt::Replicated<Dp, dt::Pipelined<Pp, dt::TensorSharded<Tp, SmolLM2>>> {};

inline constexpr dt::LlamaConfig small{18, 4, 9, 3, 2, 27, 41, true, dt::models::rope(1e4)};
inline constexpr dt::AttentionConfig full_norms = [] {
  dt::AttentionConfig c = small.attention();
  c.qk_norm = dt::QkNorm::full;
  return c;
}();
struct Norm : dt::RmsNorm<small.norm("norm")> {};
struct Mlp : dt::GatedMlp<small.mlp()> {};
struct Attention : dt::Attention<full_norms> {};
struct Embedding : dt::TokenEmbedding<small.embedding()> {};
template <class A>
struct SequenceNorms : dt::Sequential<dt::Residual<dt::SequenceSharded<A, Norm>, Attention>,
                                      dt::Residual<dt::SequenceSharded<A, dt::RmsNorm<small.norm("second")>>, Mlp>> {};

inline constexpr dt::SequenceRun two_prompts[] = {{0, 5, 1}, {3, 4, 1}};
inline constexpr dt::RunShape run{two_prompts, 2};

template <class L>
dt::OwnedPlan planned() {
  return dt::build([](dt::Builder& b, dt::Value x) { return dt::apply_layer<L>(b, x); });
}

inline bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace printed
