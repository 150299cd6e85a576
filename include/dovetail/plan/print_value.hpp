// SPDX-License-Identifier: MIT
// Values in the one notation of tables, JSON, DOT and tests: `f32[batch,sequence,heads/tp,64]` is split by heads
// over tp, `f32[batch,sequence,embed]` is whole, and `+tp` at the end is a partial sum over tp, `^tp` a partial
// maximum. `kv_heads~tp` is Shared: split over tp, and the value is the sum over the ranks that hold an element.
// Several axes on one dim stand outermost first: `heads/node/tp`.
#pragma once
#include <dovetail/plan/plan.hpp>
#include <dovetail/plan/storage_bytes.hpp>
#include <dovetail/plan/wording.hpp>

namespace dovetail {

/// Element type of a storage class where one element takes so many bytes. A plan knows sizes only, so two bytes are
/// `half`: f16 or bf16.
inline std::string element_word(Storage storage, StorageBytes const& bytes) {
  if (storage == Storage::choice) return "choice";
  i64 const n = bytes[storage];
  bool const integers = storage == Storage::token || storage == Storage::count;
  return n == 2 && !integers ? "half" : words(integers ? 'i' : 'f', 8 * n);
}

/// `[batch,heads/tp]+dp`: dims and placements of a tensor on a mesh.
inline std::string placed_dims(Dims const& dims, Places const& places, Mesh const& mesh) {
  std::string text = "[";
  for (i32 k = 0; k < dims.size(); ++k) {
    bool const number = dims[k].dim->shown_by_size && dims[k].symbol == Symbol::fixed;
    text += number ? words(k ? "," : "", dims[k].size) : words(k ? "," : "", dims[k].dim->name);
    for (i32 a = 0; a < mesh.size(); ++a)
      if (places[a].cut() && dims[k].dim->follows_or_is(places[a].dim))
        text += words(places[a].kind == Kind::shared ? '~' : '/', mesh[a]->name);
  }
  text += "]";
  for (i32 a = 0; a < mesh.size(); ++a)
    if (places[a].partial()) text += words(places[a].kind == Kind::partial_max ? '^' : '+', mesh[a]->name);
  return text;
}

/// A value of a plan in the notation above. @pre 0 <= value < plan.values.size()
inline std::string describe(Plan const& plan, i32 value, StorageBytes const& bytes = f32_storage) {
  Tensor const& t = plan.values[value];
  return element_word(t.storage, bytes) + placed_dims(t.dims, t.places, plan.mesh(t.stage));
}

/// A placement on one axis in words: "whole", "split by heads", "shared by heads", "a partial sum".
inline std::string place_words(Place const& p) {
  switch (p.kind) {
    case Kind::whole: return "whole";
    case Kind::split: return words("split by ", p.dim->name);
    case Kind::shared: return words("shared by ", p.dim->name);
    case Kind::partial_sum: return "a partial sum";
    case Kind::partial_max: return "a partial maximum";
  }
  return "";
}

}  // namespace dovetail
