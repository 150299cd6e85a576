// SPDX-License-Identifier: MIT
// Layouts as text, for files and command lines: "dp2 pp2 tp3", "pp2[tp3|tp1]", "tp2=2:1", "pp3=12,10,8",
// "a2(heads,ffn) b2(heads)", "tp4 tp(sequence)@mlp_norm". The text becomes the same policies that types make, planned
// by the same functions and refused with the same sentences. docs/layouts.md is the grammar.
#pragma once
#include <deque>
#include <dovetail/plan/sentence.hpp>
#include <dovetail/policy/pipelined.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail {

/// A layout text that cannot be read: names the place, what stands there and what may.
class LayoutTextError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A layout read from text. Copies share the axes, whose addresses plans keep.
struct Layout {
  struct Axes {
    std::deque<std::string> names{};
    std::deque<std::vector<i64>> shares{};
    std::deque<AxisInfo> axes{};
  };
  std::string text{};
  std::shared_ptr<Axes> axes = std::make_shared<Axes>();
  std::vector<Policy> outer{};                ///< outside the pipeline, or all there are
  AxisInfo const* pipeline = nullptr;
  std::vector<i32> cuts{};                    ///< layers a stage; empty: dealt evenly
  std::vector<std::vector<Policy>> stages{};  ///< policies of each stage; empty: `inner` for all
  std::vector<Policy> inner{};                ///< inside the pipeline, the same for all stages
  std::vector<RolePolicy> roles{};            ///< around layers of one role, of all stages or of one
};

namespace layout_text {

/// Dims that a text may name. A user's own dims are added to a copy of this list.
inline std::vector<DimInfo const*> known_dims() {
  return {dim_of<batch>, dim_of<sequence>, dim_of<heads>, dim_of<ffn>, dim_of<vocab>, dim_of<embed>, dim_of<experts>};
}

class Reader {
 public:
  Reader(std::string_view text, std::vector<DimInfo const*> dims) : text_(text), dims_(std::move(dims)) {
    layout_.text = std::string(text);
  }

  Layout read() {
    skip();
    if (rest() == "single") return layout_;
    if (at_ == text_.size()) fail("is empty: write \"single\" for one rank, or axes such as \"tp2\"");
    while (at_ < text_.size()) {
      std::string const word = name();
      if (word == "pp" && peek() != '(') pipeline();
      else item(word, layout_.pipeline ? layout_.inner : layout_.outer);
      skip();
    }
    if (!layout_.stages.empty() && !layout_.inner.empty())
      fail("states policies of each stage in [ ] and others after it: put those into the brackets too");
    return layout_;
  }

 private:
  std::string_view text_;
  std::vector<DimInfo const*> dims_;
  std::size_t at_ = 0;
  bool in_stage_ = false;
  Layout layout_{};

  [[noreturn]] void fail(std::string const& what) const {
    throw LayoutTextError("layout \"" + std::string(text_) + "\" (at character " + std::to_string(at_ + 1) + ") " + what +
                          "; see docs/layouts.md");
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::string_view rest() const { return text_.substr(at_, text_.find_last_not_of(" \t") + 1 - at_); }
  bool take(char c) { return peek() == c && ++at_; }
  void skip() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string name() {
    std::size_t const from = at_;
    while (is_letter(peek())) ++at_;
    if (from == at_) {
      if (!peek()) fail("ends where an axis name such as tp is expected");
      fail(std::string("has '") + peek() + "' where an axis name such as tp is expected");
    }
    return std::string(text_.substr(from, at_ - from));
  }
  i32 number(char const* of, i32 least) {
    std::size_t const from = at_;
    i64 n = 0;
    while (is_digit(peek())) {
      n = n * 10 + (peek() - '0');
      if (n > 1000000) fail(std::string("states a ") + of + " above 1,000,000");
      ++at_;
    }
    if (from == at_) fail(std::string("lacks a number: ") + of + " is expected here");
    if (n < least) fail(std::string("states a ") + of + " of " + std::to_string(n) + ": at least " + std::to_string(least));
    return static_cast<i32>(n);
  }
  void end_of_item() const {
    if (peek() && peek() != ' ' && peek() != '\t' && peek() != '|' && peek() != ']')
      fail(std::string("has an unexpected '") + peek() + "'");
  }

  AxisInfo const* make_axis(std::string const& word, i32 size, std::vector<i64> shares) {
    AxisInfo axis{word.c_str(), size, shares.empty() ? nullptr : shares.data()};
    for (auto const& known : layout_.axes->axes)
      if (same_axis(known, axis)) return &known;
    axis.name = layout_.axes->names.emplace_back(word).c_str();
    if (axis.shares) axis.shares = layout_.axes->shares.emplace_back(std::move(shares)).data();
    return &layout_.axes->axes.emplace_back(axis);
  }

  /// The axis of this name that stands before, around the policies `to` or among them.
  AxisInfo const* standing(std::string const& word, std::vector<Policy> const& to) const {
    AxisInfo const* found = nullptr;
    auto const look = [&](std::vector<Policy> const& list) {
      for (auto const& p : list)
        if (word == p.axis->name) found = p.axis;
    };
    look(layout_.outer), look(layout_.inner), look(to);
    return found;
  }

  MappedDims stated_dims() {
    MappedDims mapped;
    do {
      skip();
      std::string const word = name();
      DimInfo const* found = nullptr;
      for (auto const* d : dims_)
        if (word == d->name) found = d;
      if (word == "kv_heads") fail("maps kv_heads, which follow heads: name heads");
      if (!found) {
        std::string all;
        for (auto const* d : dims_) all += (all.empty() ? "" : ", ") + std::string(d->name);
        fail("maps an unknown dim '" + word + "': known are " + all);
      }
      if (mapped.size() == max_mapped) fail("maps more than " + std::to_string(max_mapped) + " dims to one axis");
      mapped.push(found);
      skip();
    } while (take(','));
    if (!take(')')) fail("lacks the ) after the dims of an axis");
    return mapped;
  }
  MappedDims usual_dims(std::string const& word) const {
    MappedDims d;
    if (word == "dp") d.push(dim_of<batch>);
    else if (word == "sp") d.push(dim_of<sequence>);
    else if (word == "tp") d.push(dim_of<heads>), d.push(dim_of<ffn>), d.push(dim_of<vocab>);
    else
      fail("names an axis '" + word + "' without its dims: dp, tp, sp and pp have usual ones, any other states them, as in " +
           word + "2(heads,ffn)");
    return d;
  }

  /// axis [size [=shares]] [(dims)] [@roles]; an axis without a size is one that stands before.
  void item(std::string const& word, std::vector<Policy>& to) {
    AxisInfo const* axis = nullptr;
    if (is_digit(peek())) {
      i32 const size = number("number of ranks", 1);
      std::vector<i64> shares;
      if (take('=')) {
        i64 total = 0;
        do total += shares.emplace_back(number("share", 0));
        while (take(':'));
        if (static_cast<i32>(shares.size()) != size)
          fail("states " + std::to_string(shares.size()) + " shares for the " + std::to_string(size) + " ranks of " + word);
        if (!total) fail("states shares that are all zero");
      }
      axis = make_axis(word, size, std::move(shares));
    } else {
      axis = standing(word, to);
      if (!axis) fail("names axis '" + word + "' without a size: write " + word + "2, or state it earlier");
      if (peek() != '(') fail("lacks a number after '" + word + "'");
    }
    for (auto const& p : to)
      if (word == p.axis->name && p.axis != axis)
        fail("states axis " + word + " twice with other sizes or shares");
    MappedDims const mapped = take('(') ? stated_dims() : usual_dims(word);
    i32 const stage = in_stage_ ? static_cast<i32>(layout_.stages.size()) - 1 : -1;
    if (take('@')) {
      do {
        std::size_t const from = at_;
        while (is_letter(peek()) || is_digit(peek()) || peek() == '.') ++at_;
        if (from == at_) fail("lacks the role of a layer after @");
        if (at_ - from >= sizeof(Name::chars)) fail("names a role that is too long");
        layout_.roles.push_back({dovetail::name(std::string(text_.substr(from, at_ - from)).c_str()), {axis, mapped}, stage});
      } while (take(','));
      if (!standing(word, to)) to.push_back({axis, {}});  // the axis is there, and off but for those layers
    } else {
      to.push_back({axis, mapped});
    }
    end_of_item();
  }

  void pipeline() {
    if (layout_.pipeline) fail("has a second pipeline: pp stands once");
    i32 const size = number("number of stages", 1);
    layout_.pipeline = make_axis("pp", size, {});
    if (take('=')) {
      do layout_.cuts.push_back(number("number of layers", 0));
      while (take(','));
      if (static_cast<i32>(layout_.cuts.size()) != size)
        fail("states layers for " + std::to_string(layout_.cuts.size()) + " stages of " + std::to_string(size));
    }
    if (!take('[')) return end_of_item();
    in_stage_ = true;
    layout_.stages.emplace_back();
    for (;;) {
      skip();
      if (take(']')) break;
      if (take('|')) {
        layout_.stages.emplace_back();
        continue;
      }
      if (!peek()) fail("lacks the ] after the stages");
      std::string const word = name();
      if (word == "pp") fail("has a pipeline inside a stage: pp stands once");
      if (word == "single") continue;
      item(word, layout_.stages.back());
    }
    in_stage_ = false;
    if (static_cast<i32>(layout_.stages.size()) != size)
      fail("states policies of " + std::to_string(layout_.stages.size()) + " stages, not of " + std::to_string(size));
    end_of_item();
  }
};

}  // namespace layout_text

/// Reads a layout. @throws LayoutTextError
inline Layout read_layout(std::string_view text, std::vector<DimInfo const*> dims = layout_text::known_dims()) {
  return layout_text::Reader(text, std::move(dims)).read();
}

/// A plan made at run time, with the axes that it points to.
struct LayoutPlan {
  Layout layout{};
  OwnedPlan owned{};
  Plan view() const { return owned.view(); }
};

/// Plans `model` under a layout, accepted or not: the verdict is in the plan.
/// @param layers numbered layers of the model, what a pipeline deals
/// @param model function (Builder&, Value ids) -> Value
inline LayoutPlan try_layout(Layout const& layout, i32 layers, auto const& model) {
  auto const nest = [&](auto const& self, Builder& b, Value x, std::vector<Policy> const& policies, std::size_t from,
                        auto const& body) -> Value {
    if (from == policies.size()) return body(b, x);
    return b.under(policies[from], x,
                   [&](Builder& inner, Value v) { return self(self, inner, v, policies, from + 1, body); });
  };
  LayoutPlan made{layout, build([&](Builder& b, Value ids) {
    for (auto const& r : layout.roles) b.add_role_policy(r);
    return nest(nest, b, ids, layout.outer, 0, [&](Builder& inner, Value x) {
      auto const staged = [&](Builder& s, Value v) { return nest(nest, s, v, layout.inner, 0, model); };
      if (!layout.pipeline) return staged(inner, x);
      Cut cut;
      if (layout.cuts.empty()) cut.layers = pipeline::deal_evenly(layers, layout.pipeline->size);
      for (i32 n : layout.cuts) cut.layers.push(n);
      for (auto const& stage : layout.stages) {
        cut.policies.push({});
        for (auto const& p : stage) cut.policies.back().push(p);
      }
      return pipeline::run(inner, x, layout.pipeline, layers, cut, staged);
    });
  })};
  return made;
}

/// The same, refused with an exception. @throws LayoutError with the rule's sentence, LayoutTextError for an unknown role
inline LayoutPlan plan_layout(Layout const& layout, i32 layers, auto const& model) {
  LayoutPlan made = try_layout(layout, layers, model);
  if (!made.owned.verdict.ok()) throw LayoutError(made.owned.verdict);
  for (auto const& r : layout.roles) {
    bool used = false;
    std::string roles;
    for (auto const& s : made.owned.scopes) {
      std::string const path = s.path.chars, last = path.substr(path.rfind('.') + 1);
      used = used || last == r.role.chars;
      if (!last.empty() && last != "*" && roles.find(last) == std::string::npos) roles += (roles.empty() ? "" : ", ") + last;
    }
    if (!used)
      throw LayoutTextError("layout \"" + layout.text + "\": no layer has the role '" + r.role.chars + "'; roles are " + roles);
  }
  return made;
}

}  // namespace dovetail
