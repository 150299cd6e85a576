// SPDX-License-Identifier: MIT
// Token embedding, tables of rows (learned positions) and language-model head, tied or not. A lookup is a contraction
// over the vocabulary with its own kernel; a tied head reads the embedding's parameter by its name. The head computes
// logits for the positions that a run asks for (the last of each sequence, or all) and offers the best token of each as
// the output `choice`.
#pragma once
#include <dovetail/layer/ops.hpp>

namespace dovetail {

/// Sizes of a token embedding.
struct EmbeddingConfig {
  i64 vocab_size = 0, embed_size = 0;
  Name name{"embedding.weight"};  ///< absolute: a tied head finds it
  double scale = 1;               ///< of what is looked up (Gemma: sqrt(embed_size))
};

/// ids[batch,sequence] -> [batch,sequence,embed]; parameter `name`[vocab,embed].
constexpr Value token_embedding(Builder& b, Value ids, EmbeddingConfig const& c) {
  Dims const table = dims(extent<vocab>(c.vocab_size), extent<embed>(c.embed_size));
  Dims const kept = b.dims(ids);
  Value const x = b.apply(Call(lookup)
                              .reads(ids)
                              .holds(b.shared_parameter(table, c.name.chars))
                              .contracts<vocab>()
                              .maps_rest()
                              .yields(with(kept, dims(extent<embed>(c.embed_size)))));
  return c.scale == 1 ? x : ops::scale(b, x, c.scale);
}

/// A table whose rows are added to activations: one row for each position (learned positions), or a single one for all
/// (the type of every token).
struct AddedRowConfig {
  Extent rows{};
  i64 embed_size = 0;
  Name role{"positions"};
  i64 row = -1;  ///< the one that is added to all; -1: the row of the token's position
};

/// x[batch,sequence,embed] + table[row,embed]; parameter `role.weight`. A position beyond the table ends the run.
constexpr Value added_row(Builder& b, Value x, AddedRowConfig const& c) {
  return b.in_layer(nullptr, c.role.chars, x, [&](Builder& inner, Value v) {
    ParameterId const table = inner.parameter(dims(c.rows, extent<embed>(c.embed_size)), "weight");
    Numbers const n{{static_cast<double>(c.row)}};
    return inner.apply(Call(add_row).reads(v).holds(table).needs_whole(dims(c.rows)).with(n).yields(inner.dims(v)));
  });
}

/// Sizes and options of a language-model head.
struct LmHeadConfig {
  i64 vocab_size = 0, embed_size = 0;
  bool bias = false;
  Name name{"head.weight"};  ///< absolute: "embedding.weight" ties it
  double softcap = 0;        ///< of the logits; 0: none
};

/// x[batch,sequence,embed] -> logits[batch,rows,vocab]; output `choice`[batch,rows].
constexpr Value lm_head(Builder& b, Value x, LmHeadConfig const& c) {
  Dims const in = dims(extent<embed>(c.embed_size)), out = dims(extent<vocab>(c.vocab_size));
  Dims asked;
  for (auto const& e : b.dims(x)) asked.push(e.dim == dim_of<sequence> ? extent<rows>(Symbol::rows) : e);
  Value const last = b.apply(Call(take_rows).reads(x).contracts<sequence>().maps_rest().yields(asked));
  Value logits = ops::matmul(b, last, b.shared_parameter(with(out, in), c.name.chars), in, out);
  if (c.bias) logits = ops::add_parameter(b, logits, b.shared_parameter(out, "head.bias"));
  if (c.softcap > 0) logits = ops::softcap(b, logits, c.softcap);
  Dims const best = without(b.dims(logits), out);
  b.output("choice", b.apply(Call(choose).reads(logits).contracts<vocab>().maps_rest().yields(best, Storage::choice)));
  return logits;
}

/// `token_embedding` as a type.
template <EmbeddingConfig C>
struct TokenEmbedding {
  static constexpr Value apply(Builder& b, Value x) { return token_embedding(b, x, C); }
};
/// `added_row` as a type.
template <AddedRowConfig C>
struct AddedRow {
  static constexpr Value apply(Builder& b, Value x) { return added_row(b, x, C); }
};
/// `lm_head` as a type.
template <LmHeadConfig C>
struct LmHead {
  static constexpr Value apply(Builder& b, Value x) { return lm_head(b, x, C); }
};

}  // namespace dovetail
