// SPDX-License-Identifier: MIT
// Random layout texts over the whole grammar: axes with usual and stated dims, uneven and zero shares, axes stacked on
// one dim, policies of roles, folds, pipelines cut evenly or as stated, stages with policies of their own. Some are
// illegal on purpose.
#pragma once
#include <algorithm>
#include <dovetail/policy/layout_text.hpp>
#include <set>

#include "random_numbers.hpp"

namespace draw {

using test::i32;
using test::i64;
using test::Random;

inline std::string joined(std::vector<std::string> const& parts, char const* with) {
  std::string text;
  for (auto const& p : parts) text += (text.empty() ? "" : with) + p;
  return text;
}

/// Ranks of a layout.
inline i64 ranks_of(dovetail::Layout const& layout) {
  auto const product = [](std::vector<dovetail::Policy> const& policies) {
    std::vector<dovetail::AxisInfo const*> seen;
    i64 n = 1;
    for (auto const& p : policies)
      if (std::find(seen.begin(), seen.end(), p.axis) == seen.end()) n *= p.axis->size, seen.push_back(p.axis);
    return n;
  };
  i64 stages = 0;
  for (auto const& s : layout.stages) stages += product(s);
  if (layout.stages.empty()) stages = layout.pipeline ? layout.pipeline->size : 1;
  return product(layout.outer) * stages * product(layout.inner);
}

/// Draws texts for a model of `layers` layers; `roles` are names of its layers.
class Drawing {
 public:
  Drawing(Random& random, i32 layers, std::vector<std::string> roles)
      : random_(random), layers_(layers), roles_(std::move(roles)) {}

  std::string text() {
    std::vector<std::string> parts;
    bool const staged = random_.one_in(2);
    append(parts, items(staged ? random_.between(0, 1) : random_.between(1, 3)));
    if (staged) {
      bool const own = random_.one_in(2);
      parts.push_back(pipeline(own));
      if (!own) append(parts, items(random_.between(0, 2)));
    }
    return parts.empty() ? "single" : joined(parts, " ");
  }

 private:
  Random& random_;
  i32 layers_;
  std::vector<std::string> roles_;
  std::vector<std::string> standing_{};  ///< axes so far

  static void append(std::vector<std::string>& to, std::vector<std::string> const& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  std::string size(std::string const& axis) {
    i32 const most = axis == "tp" ? 9 : axis == "dp" ? 3 : 4;
    i32 const n = random_.one_in(2) ? random_.between(1, most) : random_.between(2, most < 4 ? most : 4);
    if (!random_.one_in(5)) return std::to_string(n);
    std::vector<std::string> shares;
    i32 total = 0;
    for (i32 r = 0; r < n; ++r) {
      i32 const share = r + 1 == n && !total ? 1 : random_.between(0, 4);
      total += share;
      shares.push_back(std::to_string(share));
    }
    return std::to_string(n) + "=" + joined(shares, ":");
  }
  std::string stated_dims(bool role) {
    static std::vector<std::vector<std::string>> const sets = {{"heads", "ffn", "vocab"},
                                                               {"heads", "ffn"},
                                                               {"heads"},
                                                               {"ffn"},
                                                               {"vocab"},
                                                               {"ffn", "vocab"},
                                                               {"batch"},
                                                               {"sequence"},
                                                               {"heads"},
                                                               {"embed"},
                                                               {"sequence", "ffn"},
                                                               {"batch", "heads"},
                                                               {"heads", "vocab"},
                                                               {"sequence"},
                                                               {"sequence"},
                                                               {"ffn"},
                                                               {"embed", "ffn"}};
    i32 const last = static_cast<i32>(sets.size()) - 1 - (role || random_.one_in(2));
    return "(" + joined(sets[static_cast<std::size_t>(random_.between(role ? 1 : 0, last))], ",") + ")";
  }
  std::vector<std::string> items(i32 count) {
    static std::vector<std::string> const names = {"tp", "tp", "tp", "dp", "dp", "sp", "a", "b"};
    std::vector<std::string> made;
    std::set<std::string> named;  // in this list: there an axis has one size
    for (i32 i = 0; i < count; ++i) {
      std::string const axis = random_.of(names);
      bool const stands = std::find(standing_.begin(), standing_.end(), axis) != standing_.end();
      bool const here = !named.insert(axis).second;
      if (here || (stands && !random_.one_in(8))) {  // fold it, around all that follows or around some layers
        std::string fold = axis + stated_dims(true);
        if (random_.one_in(2)) fold += at_roles();
        made.push_back(fold);
        continue;
      }
      std::string text = axis + size(axis);
      if (axis == "a" || axis == "b" || random_.one_in(6)) text += stated_dims(false);
      if (random_.one_in(12)) text += at_roles();
      standing_.push_back(axis);
      made.push_back(text);
      if (!random_.one_in(4)) continue;
      std::string around = axis + stated_dims(true);
      around += at_roles();  // draws after stated_dims(), on every compiler
      made.push_back(around);
    }
    return made;
  }
  std::string at_roles() {
    std::vector<std::string> some{random_.of(roles_)};
    while (random_.one_in(3)) some.push_back(random_.of(roles_));
    return "@" + joined(some, ",");
  }
  std::string pipeline(bool own) {
    i32 const stages = random_.one_in(3) ? random_.between(1, 5) : random_.between(2, layers_ < 3 ? 2 : 3);
    std::string text = "pp" + std::to_string(stages);
    if (random_.one_in(3)) {
      std::vector<i32> cut(static_cast<std::size_t>(stages), 0);
      for (i32 n = 0; n < layers_ - random_.one_in(20); ++n)
        ++cut[static_cast<std::size_t>(random_.between(0, stages - 1))];
      std::vector<std::string> words;
      for (i32 n : cut) words.push_back(std::to_string(n));
      text += "=" + joined(words, ",");
    }
    if (!own) return text;
    std::vector<std::string> all;
    auto const before = standing_;
    for (i32 s = 0; s < stages; ++s) {
      standing_ = before;
      auto const here = items(random_.between(0, 2));
      all.push_back(here.empty() ? "single" : joined(here, " "));
    }
    return text + "[" + joined(all, "|") + "]";
  }
};

}  // namespace draw
