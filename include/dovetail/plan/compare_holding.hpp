// SPDX-License-Identifier: MIT
// What part of which layer a device holds, read off the placements of a plan's parameters: as shares, for pictures, and
// in words. Parts of a model are its numbered layers, with what stands before them (an embedding) and after them (a
// head).
#pragma once
#include <algorithm>
#include <dovetail/plan/memory.hpp>
#include <dovetail/plan/sentence.hpp>
#include <numeric>
#include <vector>

namespace dovetail {

/// A part of a model that holds parameters.
struct ModelPart {
  enum class Kind { before, layer, after } kind = Kind::layer;
  i64 layer = -1;  ///< number of the layer
  friend constexpr bool operator==(ModelPart const&, ModelPart const&) = default;
};

/// How much of a split dim a device holds.
struct DimShare {
  DimInfo const* dim = nullptr;
  Range range{};  ///< of `of`
  i64 of = 0;
  friend constexpr bool operator==(DimShare const&, DimShare const&) = default;
};

/// What a device holds of one part.
struct Holding {
  i64 held = 0, whole = 0;         ///< elements of its parameters
  std::vector<DimShare> shares{};  ///< of the dims that are split, in the order of its parameters

  bool none() const { return held == 0; }
  bool complete() const { return held > 0 && held == whole; }
  /// Is it the same share of a part, whatever the part's size?
  bool alike(Holding const& o) const { return none() == o.none() && complete() == o.complete() && shares == o.shares; }
};

namespace holding {

/// Numbers of the layers that a parameter stands for, one for each iteration of the loops around it.
inline std::vector<i64> layers_of(Plan const& plan, Parameter const& p) {
  std::vector<i64> all{p.layer.first};
  for (auto const& term : p.layer.terms) {
    std::vector<i64> next;
    for (i64 from : all)
      for (i32 i = 0; i < plan.loops[term.loop].count; ++i) next.push_back(from + term.stride * i);
    all = std::move(next);
  }
  return all;
}

/// First step that uses a parameter of a numbered layer; all of them where none does.
inline i32 first_layer_step(Plan const& plan) {
  for (i32 i = 0; i < plan.steps.size(); ++i)
    for (auto const& use : plan.steps[i].parameters)
      if (plan.parameters[use.parameter].layer.first >= 0) return i;
  return plan.steps.size();
}

/// Is the parameter used in this part?
inline bool is_in(Plan const& plan, i32 parameter, ModelPart const& part) {
  Parameter const& p = plan.parameters[parameter];
  if (part.kind == ModelPart::Kind::layer) {
    if (p.layer.first < 0) return false;
    auto const layers = layers_of(plan, p);
    return std::find(layers.begin(), layers.end(), part.layer) != layers.end();
  }
  if (p.layer.first >= 0) return false;
  i32 const first = first_layer_step(plan);
  bool const before = part.kind == ModelPart::Kind::before;
  for (i32 i = before ? 0 : first; i < (before ? first : plan.steps.size()); ++i)
    for (auto const& use : plan.steps[i].parameters)
      if (use.parameter == parameter) return true;
  return false;
}

}  // namespace holding

/// Parts of the model in order, over all stages.
inline std::vector<ModelPart> parts_of(Plan const& plan) {
  std::vector<i64> layers;
  for (auto const& p : plan.parameters)
    if (p.layer.first >= 0)
      for (i64 n : holding::layers_of(plan, p)) layers.push_back(n);
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  std::vector<ModelPart> parts;
  auto const add = [&](ModelPart const& part) {
    bool used = false;
    for (i32 i = 0; i < plan.parameters.size(); ++i) used = used || holding::is_in(plan, i, part);
    if (used) parts.push_back(part);
  };
  add({ModelPart::Kind::before, -1});
  for (i64 n : layers) parts.push_back({ModelPart::Kind::layer, n});
  add({ModelPart::Kind::after, -1});
  return parts;
}

/// What `rank` holds of a part; nothing where its stage does not run it.
inline Holding holding_of(Plan const& plan, ModelPart const& part, i64 rank) {
  RankPlace const place = plan.place_of(rank);
  Mesh const& mesh = plan.mesh(place.stage);
  Holding h;
  for (i32 i = 0; i < plan.parameters.size(); ++i) {
    if (plan.parameters[i].stage != place.stage || !holding::is_in(plan, i, part)) continue;
    Tensor const& t = plan.values[plan.parameters[i].value];
    h.whole += whole_elements(t.dims, RunShape{}), h.held += held_elements(plan, plan.parameters[i], place.at);
    for (i32 a = 0; a < mesh.size(); ++a) {
      DimInfo const* const dim = t.places[a].dim;
      Extent const* const e = t.places[a].cut() ? find(t.dims, dim) : nullptr;
      bool known = !e;
      for (auto const& s : h.shares) known = known || s.dim == dim;
      if (!known) h.shares.push_back({dim, leading_range(*e, e->lead, t.places, mesh, place.at), e->lead});
    }
  }
  return h;
}

/// "half", "a third", "5/9", "37 %": how much `part` is of `of`. A block of many that do not divide evenly counts as
/// even: 16752 of 50257 is a third. @pre of > 0
inline std::string share_words(i64 part, i64 of) {
  i64 const common = (std::max)(i64{1}, std::gcd(part, of));
  i64 p = part / common, q = of / common;
  for (i64 n = 2; n <= 128 && q > 128; ++n)
    if (part == of / n || part == of / n + 1) p = 1, q = n;
  if (p == 0) return "none";
  if (p == q) return "all";
  if (p == 1 && q == 2) return "half";
  if (p == 1 && q == 3) return "a third";
  if (p == 1 && q == 4) return "a quarter";
  return q <= 128 ? words(p, '/', q) : words((100 * p + q / 2) / q, " %");
}

namespace holding {

/// "a, b and c".
inline std::string listed(std::vector<std::string> const& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  return text;
}

/// "a third of heads and ffn"; empty where all of the part is held.
inline std::string split_words(Holding const& h) {
  bool some = h.shares.empty();
  for (auto const& s : h.shares) some = some || s.range.size();
  if (!some) return "only what is not split";
  std::vector<std::pair<std::string, std::vector<std::string>>> by_share;
  for (auto const& s : h.shares) {
    if (s.range.size() == s.of) continue;
    std::string const share = share_words(s.range.size(), s.of);
    auto const at = std::find_if(by_share.begin(), by_share.end(), [&](auto const& b) { return b.first == share; });
    if (at == by_share.end()) by_share.emplace_back(share, std::vector<std::string>{s.dim->name});
    else at->second.emplace_back(s.dim->name);
  }
  std::vector<std::string> all;
  for (auto const& [share, dims] : by_share) all.push_back(share + " of " + listed(dims));
  return listed(all);
}

}  // namespace holding

/// "embedding", "head", "layers 3-7": parts from the first to the last of a run.
inline std::string part_words(ModelPart const& first, ModelPart const& last) {
  if (first.kind == ModelPart::Kind::before) return "embedding";
  if (first.kind == ModelPart::Kind::after) return "head";
  return first == last ? words("layer ", first.layer) : words("layers ", first.layer, '-', last.layer);
}

/// "embedding and layers 0-9", "a third of heads and ffn in layers 0-29, a third of vocab in embedding and head".
inline std::string holding_words(std::vector<ModelPart> const& parts, std::vector<Holding> const& holds) {
  bool everything = true;
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // what is held, of which parts
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i + 1;
    while (end < parts.size() && parts[end].kind == parts[i].kind && holds[end].alike(holds[i])) ++end;
    everything = everything && holds[i].complete();
    if (!holds[i].none()) {
      std::string const split = holding::split_words(holds[i]);
      auto const at = std::find_if(groups.begin(), groups.end(), [&](auto const& g) { return g.first == split; });
      std::string const part = part_words(parts[i], parts[end - 1]);
      if (at == groups.end()) groups.push_back({split, {part}});
      else at->second.push_back(part);
    }
    i = end;
  }
  if (groups.empty()) return "no parameters";
  if (everything) return "the whole model";
  std::string text;
  for (auto const& [split, held] : groups)
    text += (text.empty() ? "" : "; ") + (split.empty() ? split : split + " in ") + holding::listed(held);
  return text;
}

}  // namespace dovetail
