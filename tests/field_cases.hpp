// SPDX-License-Identifier: MIT
// What the tests of field cases share: a small model of given sizes, what differs from the unsplit model bit for bit,
// and which part of a parameter each rank holds. tests/field_cases.md says which fault each test is about.
#pragma once
#include "legal_layout.hpp"
#include "split_run.hpp"

namespace field_cases {

using namespace dovetail;
using tiny::Sizes;
using Sized = std::vector<i64>;

inline tiny::Model model_with(Sizes const& s, i32 layers = 2) {
  return tiny::model_of("case", layers, 1, s,
                        [](Builder& b, Value v, Sizes const& z, i32) { return tiny::pre_norm_block(b, v, z); });
}
/// What differs from the unsplit model in each of the layouts; empty where nothing does.
inline std::string differences(tiny::Model const& model, std::vector<std::string> const& layouts,
                               split_run::Script const& script) {
  std::string text;
  auto const whole = split_run::run_whole(model, script);
  for (auto const& layout : layouts) {
    LayoutPlan const planned = plan_layout(read_layout(layout), model.layers, model.apply);
    auto const found = split_run::differences(planned.view(), script, whole);
    if (!found.empty()) text += layout + ": " + found + "\n";
  }
  return text;
}
inline std::string differences(tiny::Model const& model, std::vector<std::string> const& layouts) {
  return differences(model, layouts, split_run::script_of(model, 7));
}

/// The leaf of the first parameter whose name ends so.
inline Tensor const& leaf_of(Plan const& plan, std::string const& ending) {
  for (auto const& p : plan.parameters)
    if (std::string(p.name.chars).ends_with(ending)) return plan.values[p.value];
  throw std::invalid_argument("no parameter " + ending);
}
/// What each rank holds, or owns, of the first dim of a parameter.
inline std::vector<Range> held_by_ranks(Plan const& plan, std::string const& ending, bool own = false) {
  Tensor const& t = leaf_of(plan, ending);
  std::vector<Range> ranges;
  for (i64 r = 0; r < plan.ranks(); ++r) {
    auto const at = plan.place_of(r).at;
    ranges.push_back(own ? owned(t.dims[0], t.places, plan.mesh(0), at) : held(t.dims[0], t.places, plan.mesh(0), at));
  }
  return ranges;
}
inline std::vector<i64> sizes_of(std::vector<Range> const& ranges) {
  std::vector<i64> sizes;
  for (auto const& r : ranges) sizes.push_back(r.size());
  return sizes;
}
/// Owned ranges follow one another from 0 to `size`.
inline bool tile(std::vector<Range> const& ranges, i64 size) {
  i64 at = 0;
  for (auto const& r : ranges) {
    if (r.size() && r.lo != at) return false;
    at += r.size();
  }
  return at == size;
}

}  // namespace field_cases
