// SPDX-License-Identifier: MIT
// A verdict as one sentence that a user can act on: the layer's path, the dim and its extent, the axis and its size,
// what would be legal, and the page that says more. Layouts made at run time throw it; compile errors carry the same
// numbers in their template arguments (plan/refuse.hpp).
#pragma once
#include <dovetail/plan/legal.hpp>
#include <dovetail/plan/wording.hpp>
#include <stdexcept>

namespace dovetail {

/// Page of a rule, such as docs/errors/placement-split.md.
inline std::string page_of(Rule rule) {
  std::string page = words("docs/errors/", id_of(rule), ".md");
  page[page.rfind('/')] = '-';
  return page;
}

namespace wording {

inline std::string split_sentence(Verdict const& v) {
  std::string const dim = v.units == v.extent ? words(v.dim->name, " (", v.units, ")")
                                              : words(v.dim->name, " (", v.extent, " in ", v.units, " units)");
  std::string const axis = v.axis->name;
  std::string text = words(" splits ", dim, " over axis ", axis, " of ", counted(v.axis->size, "rank"));
  if (outer_ranks(v) > 1) text += words(" inside axes that split it over ", outer_ranks(v), " already");
  if (share_too_small(v)) {
    text += ", and a stated share is so small that its rank would hold no unit. Shares of ";
    text += axis + ":";
    for (i32 r = 0; r < v.axis->size; ++r) text += words(r ? ", " : " ", v.axis->share(r));
    return text + "; legal are larger ones, or 0 for a rank that is to hold none.";
  }
  text += words(": at most ", most_ranks(v), ", for every rank must hold a unit. Legal sizes of ", axis, ": 1 to ",
                most_ranks(v), ", even or not.");
  return text + " A pipeline (pp) has no such limit.";
}

inline std::string units_sentence(Verdict const& v) {
  if (!v.axis)
    return words(": ", counted(v.extent, "layer"), " of the model fit none of the ", counted(v.ranks, "stage"),
                 "; the layers of all stages must add up to the model's.");
  std::string const axis = words(": axis ", v.axis->name, " has ", counted(v.ranks, "rank"), ", one a stage, but ");
  if (!v.units)
    return words(axis, "there are ", counted(v.extent, "layer"), " to deal: at most ", v.extent,
                 " stages. Legal sizes of ", v.axis->name, ": 1 to ", v.extent, ".");
  if (v.extent == v.units) return axis + "another number of stages is stated; state one for each rank.";
  return words(": the stages of axis ", v.axis->name, " are stated to run ", counted(v.units, "layer"),
               " in all, but the model has ", v.extent, "; the cuts must add up to it.");
}

inline std::string body(Verdict const& v) {
  auto const extent = [](i64 n) { return n ? std::to_string(n) : std::string("one that a run states"); };
  std::string const dim = v.dim ? v.dim->name : "", op = words("op ", v.op);
  std::string const axis = words("axis ", v.axis ? v.axis->name : "");
  switch (v.rule) {
    case Rule::ok: return ": the layout is legal.";
    case Rule::placement_split: return split_sentence(v);
    case Rule::placement_ambiguous:
      return words(": ", axis, " is mapped to both ", dim, " and ", v.other_dim->name, ", which the parameters of ", op,
                   " have together, and one axis splits one dim. Map them to two axes, or one of them only.");
    case Rule::op_undeclared:
      return words(": ", dim, " arrives split over ", axis, " at ", op,
                   ", which does not say what it does with it. Say ", "maps<", dim,
                   ">() where a part gives that part of the result, contracts<", dim,
                   ">() where parts add up, or needs_whole<", dim, ">() to have it gathered.");
    case Rule::op_roles:
      return words(
          ": ", op, " contradicts itself about ", dim,
          ". A dim stands once in a tensor; a dim of an operand is in the result (mapped) or it is contracted, "
          "needed whole or routed.");
    case Rule::op_extents:
      return words(": ", op, " meets ", dim, " with two extents, ", extent(v.extent), " and ", extent(v.units),
                   ". Give one of them another dim, or make the extents equal.");
    case Rule::loop_dims: {
      auto const words_of = [&](DimInfo const* d, i64 n) { return d ? words(d->name, " of ", extent(n)) : "no dim"; };
      return words(": a repeated layer yields ", words_of(v.other_dim, v.units), " where it takes ",
                   words_of(v.dim, v.extent), ". A layer that repeats must yield the dims that it takes.");
    }
    case Rule::mesh_branches:
      return words(": ", axis, " of ", counted(v.ranks, "rank"), " stands beside axis ", v.other_axis->name,
                   ", so each layer would be computed again by the other's ranks. Use one axis for both, or nest one "
                   "axis around both layers.");
    case Rule::mesh_order:
      return words(": ", axis, " stands in another order here, inside axis ", v.other_axis->name,
                   ", than on another path. Nest the axes of a stage in one order everywhere.");
    case Rule::policy_twice:
      return words(": a policy maps ", axis, " to ", dim,
                   " (and what it maps besides) inside one that does the same. Remove one of the two.");
    case Rule::pipeline_nested:
      return words(": a pipeline", v.axis ? words(" (", axis, ")") : std::string(),
                   " stands inside another one or inside a layer that repeats. A plan has one line of stages: put it "
                   "around the model, once.");
    case Rule::pipeline_units: return units_sentence(v);
    case Rule::parameter_name: return ": two parameters have this name. Give one of their layers another role.";
  }
  return "";
}

}  // namespace wording

/// The verdict as a sentence for people; for a broken rule it ends with the rule's page.
inline std::string sentence(Verdict const& v) {
  std::string const where = v.path.empty() ? "the model" : v.path.chars;
  std::string const text = where + wording::body(v);
  return v.ok() ? text : words(text, " See ", page_of(v.rule), ".");
}

/// A layout that breaks a rule, as what() says in a sentence.
class LayoutError : public std::runtime_error {
 public:
  /// @pre !v.ok()
  explicit LayoutError(Verdict const& v)
      : std::runtime_error(words("dovetail: ", id_of(v.rule), ": ", sentence(v))), rule_(v.rule) {}
  Rule rule() const noexcept { return rule_; }

 private:
  Rule rule_;
};

}  // namespace dovetail
