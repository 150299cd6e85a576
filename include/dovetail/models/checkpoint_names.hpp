// SPDX-License-Identifier: MIT
// Names of a model family's tensors in its checkpoints. A pattern maps a role path to a stored name; each `*` of the
// stored name takes what the same `*` of the role matched: the layer index first, then the last word of the path. A
// parameter may be a slice of a fused tensor, or stored the other way round: the slice says so.
#pragma once
#include <dovetail/meta/text.hpp>
#include <initializer_list>

namespace dovetail {

/// Where the rows of a parameter (its output dims, as one) lie among those of the stored tensor.
struct StoredSlice {
  i64 of = 0;               ///< rows of the stored tensor; 0: those of the parameter
  i64 first = 0;            ///< stored row of the parameter's first
  i64 block = 0;            ///< rows that lie together; 0: all of them
  i64 stride = 0;           ///< stored rows from one block to the next
  bool transposed = false;  ///< the stored matrix is inputs x outputs, so its rows are columns

  constexpr i64 row(i64 r) const { return block ? r / block * stride + first + r % block : first + r; }
};

/// One row of a family's names: role path, stored name, and the slice where it is not all of it.
struct CheckpointName {
  char const* role = "";    ///< such as layers.*.mlp.gate.*
  char const* stored = "";  ///< such as model.layers.*.mlp.gate_proj.*
  StoredSlice slice{};
};

/// A family's names.
using CheckpointNames = Vec<CheckpointName, 24>;

/// A family's names, written as a list.
constexpr CheckpointNames checkpoint_names(std::initializer_list<CheckpointName> all) {
  CheckpointNames names;
  for (CheckpointName const& n : all) names.push(n);
  return names;
}

/// A parameter in a checkpoint; the name is empty where no pattern knows it.
struct StoredPlace {
  Name name{};
  StoredSlice slice{};
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

/// Place of a role path with its layer index in it, such as layers.3.mlp.gate.weight.
constexpr StoredPlace stored_place(CheckpointNames const& names, char const* role) {
  for (CheckpointName const& known : names) {
    Vec<Name, 4> taken;
    if (!matches(known.role, role, taken)) continue;
    Name stored;
    i32 next = 0;
    for (char const* c = known.stored; *c; ++c) {
      char const one[] = {*c, '\0'};
      stored.append(*c == '*' ? taken[next++].chars : one);
    }
    return {stored, known.slice};
  }
  return {};
}

}  // namespace dovetail
