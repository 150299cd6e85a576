// SPDX-License-Identifier: MIT
// Names of a model family's tensors in its checkpoints. A pattern maps a role path to a stored name; each `*` of the
// stored name takes what the same `*` of the role matched: the layer index first, then the last word of the path.
#pragma once
#include <dovetail/meta/text.hpp>

namespace dovetail {

struct CheckpointName {
  char const* role = "";    ///< such as layers.*.mlp.gate.*
  char const* stored = "";  ///< such as model.layers.*.mlp.gate_proj.*
};

/// Does `text` match `pattern`? A `*` takes one path word; what it takes goes to `taken`, in order.
constexpr bool matches(char const* pattern, char const* text, Vec<Name, 4>& taken) {
  taken.clear();
  while (*pattern) {
    if (*pattern != '*') {
      if (*pattern++ != *text++) return false;
      continue;
    }
    ++pattern;
    Name word;
    i32 n = 0;
    while (*text && *text != '.') word.chars[n++] = *text++;
    if (!n) return false;
    taken.push(word);
  }
  return !*text;
}

/// Stored name of a role path with its layer index in place, such as layers.3.mlp.gate.weight; empty where no pattern
/// knows it.
constexpr Name stored_name(CheckpointName const* names, i32 count, char const* role) {
  for (i32 i = 0; i < count; ++i) {
    Vec<Name, 4> taken;
    if (!matches(names[i].role, role, taken)) continue;
    Name stored;
    i32 next = 0;
    for (char const* c = names[i].stored; *c; ++c) {
      char const one[] = {*c, '\0'};
      stored.append(*c == '*' ? taken[next++].chars : one);
    }
    return stored;
  }
  return {};
}

}  // namespace dovetail
