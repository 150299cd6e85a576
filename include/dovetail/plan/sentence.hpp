// SPDX-License-Identifier: MIT
// A verdict as one sentence that a user can act on: the layer's path, the dim and its extent, the axis and its size,
// what would be legal, and the page that says more. Layouts made at run time throw it; compile errors carry the same
// numbers in their template arguments (plan/refuse.hpp).
#pragma once
#include <dovetail/mesh/axis.hpp>
#include <dovetail/meta/excerpt.hpp>
#include <dovetail/plan/legal.hpp>
#include <dovetail/plan/wording.hpp>
#include <dovetail/tensor/extent.hpp>
#include <stdexcept>

namespace dovetail {

/// Page of a rule, such as docs/errors/placement-split.md.
inline std::string page_of(Rule rule) {
  std::string page = words("docs/errors/", id_of(rule), ".md");
  page[page.rfind('/')] = '-';
  return page;
}

namespace wording {

/// Legal sizes: "1", "1 to 9".
inline std::string up_to(i64 most) { return most == 1 ? "1" : words("1 to ", most); }

inline std::string split_sentence(Verdict const& v) {
  constexpr i32 shown = 16;  // shares
  std::string const dim = v.units == v.extent
                              ? words(v.dim->name, " (", v.units, ")")
                              : words(v.dim->name, " (", v.extent, " in ", counted(v.units, "unit"), ")");
  std::string const axis = v.axis->name;
  std::string text = words(" splits ", dim, " over axis ", axis, " of ", counted(v.axis->size, "rank"));
  if (outer_ranks(v) > 1) text += words(" inside axes that split it over ", outer_ranks(v), " already");
  if (share_too_small(v)) {
    text += ", and a stated share is so small that its rank would hold no unit. Shares of ";
    text += axis + ":";
    for (i32 r = 0; r < v.axis->size && r < shown; ++r) text += words(r ? ", " : " ", v.axis->share(r));
    if (v.axis->size > shown) text += words(" and ", v.axis->size - shown, " more");
    return text + "; legal are larger ones, or 0 for a rank that is to hold none.";
  }
  text += words(": at most ", most_ranks(v), ", for every rank must hold a unit. Legal sizes of ", axis, ": ",
                up_to(most_ranks(v)), most_ranks(v) > 1 ? ", even or not." : ".");
  return text + " A pipeline (pp) has no such limit.";
}

inline std::string units_sentence(Verdict const& v) {
  if (!v.axis && v.extent < 1)
    return words(": the layers of the model end before the last of the ", counted(v.ranks, "stage"),
                 "; every stage must have its own, and all of them must add up to the model's.");
  if (!v.axis)
    return words(": ", counted(v.extent, "layer"), " of the model fit none of the ", counted(v.ranks, "stage"),
                 "; the layers of all stages must add up to the model's.");
  std::string const axis = words(": axis ", v.axis->name, " has ", counted(v.ranks, "rank"), ", one a stage, but ");
  if (!v.units)
    return v.extent < 1
               ? words(axis, "there are no layers to deal. Leave the pipeline out.")
               : words(axis, "there ", v.extent == 1 ? "is " : "are ", counted(v.extent, "layer"), " to deal: at most ",
                       counted(v.extent, "stage"), ". Legal sizes of ", v.axis->name, ": ", up_to(v.extent), ".");
  if (v.units < 0)
    return words(": a stage of axis ", v.axis->name, " is stated to run ", v.units, " layers; legal are 0 and up.");
  if (v.extent == v.units) return axis + "another number of stages is stated; state one for each rank.";
  return words(": the stages of axis ", v.axis->name, " are stated to run ", counted(v.units, "layer"),
               " in all, but the model has ", v.extent, "; the cuts must add up to it.");
}

inline std::string size_sentence(Verdict const& v) {
  if (v.axis && !v.dim) {
    std::string const axis = words("axis ", v.axis->name);
    if (v.axis->size < 1) return words(": ", axis, " has ", counted(v.axis->size, "rank"), ". Legal sizes: 1 and up.");
    if (!v.extent)
      return words(": the shares of ", axis, " of ", counted(v.axis->size, "rank"),
                   " are all 0. One of them at least must be 1 or more.");
    return words(": ", axis, " of ", counted(v.axis->size, "rank"), " has a share of ", v.extent,
                 ". Legal shares: 0 to ", max_share, ", not all of them 0.");
  }
  if (!v.dim) return words(": a layer repeats ", v.extent, " times. Legal counts: 0 and up.");
  std::string const at = words(": ", v.dim->name, " of op ", v.op, " has ");
  if (v.extent < 1) return words(at, "an extent of ", v.extent, ". Legal extents: 1 and up.");
  std::string const extent = words(at, "an extent of ", v.extent);
  if (!v.ranks)
    return words(extent, ", of which ", v.left, " are to be rotated, in pairs. Legal are even numbers up to ", v.extent,
                 ".");
  if (v.units < 1) return words(at, "a unit of ", v.units, ". Legal units: 1 and up.");
  if (v.ranks < v.extent)
    return words(extent,
                 v.dim->leader ? words(", but ", v.dim->leader->name, ", which it follows, has ", v.ranks)
                               : words(", but is to be split as one of ", v.ranks),
                 ". Legal extents: ", v.ranks < 1 ? "1 and up, for both" : up_to(v.ranks), ".");
  return words(extent, ", which makes a tensor of more elements than the ", max_elements, " that it may have.");
}

inline std::string room_sentence(Verdict const& v) {
  std::string const bound = v.op;
  std::string const counted_things = bound == "max_name"      ? "characters in a name"
                                     : bound == "max_mapped"  ? "dims mapped by a policy"
                                     : bound == "max_nesting" ? "loops inside each other"
                                                              : bound.substr(bound.find('_') + 1);
  return words(": there are more than ", v.extent, " ", counted_things, ". Use fewer, or raise ", bound, ".");
}

inline std::string name_sentence(Verdict const& v) {
  std::string const legal = "A name is one or more printable characters of ASCII; rename it.";
  if (v.other_axis)
    return words(": two axes of one stage, of ", counted(v.axis->size, "rank"), " and of ", v.other_axis->size,
                 ", have the name ", v.axis->name, ". Rename one of them.");
  if (v.axis)
    return words(": an axis of ", counted(v.axis->size, "rank"), " has the name \"", excerpt(v.axis->name), "\". ",
                 legal);
  if (v.dim) return words(": a dim of op ", v.op, " has the name \"", excerpt(v.dim->name), "\". ", legal);
  return ": a role in this path has characters that no name has. " + legal;
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
    case Rule::size_range: return size_sentence(v);
    case Rule::layer_apply:
      return ": a type stands here that is no layer: it lacks `static constexpr Value apply(Builder&, Value)`.";
    case Rule::layer_value:
      return words(": ",
                   *v.op ? words(op,
                                 " reads a value or holds a parameter or state that the plan does not have, or says "
                                 "of no result what it yields")
                         : std::string("a layer returns or hands out a value that the plan does not have"),
                   ". Use what the builder gave, and say of every result what the call yields.");
    case Rule::policy_arguments:
      return ": a policy has other arguments than an axis, a layer and dims, in this order. Write "
             "TensorSharded<Tp, Model>, Mapped<Tp, Model, heads> or Pipelined<Pp, Cuts<3, 1>, Model>.";
    case Rule::policy_unused:
      return words(
          ": a policy maps ", axis, " of ", counted(v.axis->size, "rank"), " to ", dim,
          " (and what it maps besides), which no tensor inside has, so all of its ranks would do the same. Put "
          "it around a layer with such a dim, or map one that is there.");
    case Rule::pipeline_empty:
      return words(": stage ", v.extent, " (counted from 0)",
                   v.axis ? words(" of the ", v.axis->size, " of ", axis) : std::string(),
                   " computes nothing. Give it a layer, or take a stage less.");
    case Rule::name_legal: return name_sentence(v);
    case Rule::plan_room: return room_sentence(v);
    case Rule::parameter_name: return ": two parameters have this name. Give one of their layers another role.";
  }
  return "";
}

}  // namespace wording

/// The verdict as a sentence for people; for a broken rule it ends with the rule's page.
inline std::string sentence(Verdict const& v) {
  std::string const where = v.path.empty() ? "the model" : excerpt(v.path.chars, 0, sizeof v.path.chars);
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
