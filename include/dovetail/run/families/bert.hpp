// SPDX-License-Identifier: MIT
// config.json of BERT encoders.
#pragma once
#include <dovetail/models/bert.hpp>
#include <dovetail/run/families/fields.hpp>

namespace dovetail::model_config {

inline constexpr char const* bert_fields[] = {"hidden_size",
                                              "num_hidden_layers",
                                              "num_attention_heads",
                                              "intermediate_size",
                                              "hidden_act",
                                              "layer_norm_eps",
                                              "max_position_embeddings",
                                              "type_vocab_size",
                                              "position_embedding_type",
                                              "attention_probs_dropout_prob",
                                              "hidden_dropout_prob",
                                              "classifier_dropout",
                                              "add_cross_attention",
                                              "is_decoder"};

inline Model read_bert(Json const& json, std::string const& file) {
  refuse_unknown(json, bert_fields, file);
  must_be_off(json, "is_decoder", file);
  must_be_off(json, "add_cross_attention", file);
  std::string const kind = optional<std::string>(json, "position_embedding_type", file, std::string("absolute"));
  if (kind != "absolute")
    throw io_error(file, ": field 'position_embedding_type' is ", in_quotes(kind), "; known is absolute");
  BertConfig c;
  c.embed_size = required_count(json, "hidden_size", file, widest);
  c.layers = static_cast<i32>(required_count(json, "num_hidden_layers", file, most_layers));
  c.head_count = required_count(json, "num_attention_heads", file, most_heads);
  if (c.embed_size % c.head_count)
    throw io_error(file, ": field 'hidden_size' must be a multiple of num_attention_heads (", c.head_count, "); it is ",
                   c.embed_size);
  c.ffn_size = required_count(json, "intermediate_size", file, widest);
  c.position_count = required_count(json, "max_position_embeddings", file, widest);
  c.type_count = optional<i64>(json, "type_vocab_size", file, i64{2}, FieldRange<i64>{1, widest});
  c.vocab_size = read_vocab_size(json, file);
  c.epsilon = read_epsilon(json, "layer_norm_eps", file);
  c.activation = read_activation(json, "hidden_act", "gelu", file);
  Model m;
  m.layers = c.layers, m.vocab_size = c.vocab_size, m.context_limit = c.position_count, m.embeds = true;
  m.plan = [c](Builder& b, Value ids) { return bert(b, ids, c); };
  m.names = bert_names;
  m.optional_prefix = "bert.";
  m.unread = bert_unread;
  return m;
}

}  // namespace dovetail::model_config
