// SPDX-License-Identifier: MIT
// Reads layout texts: "dp2 pp2 tp3", "pp2[tp3|tp1]", "tp2=2:1", "pp3=12,10,8", "a2(heads,ffn) b2(heads)",
// "tp4 tp(sequence)@mlp_norm". What comes out are the policies that types make too; policy/layout_text.hpp plans them.
// docs/layouts.md is the grammar. Any text ends in a layout or in an error that names place and remedy.
#pragma once
#include <algorithm>
#include <deque>
#include <dovetail/meta/excerpt.hpp>
#include <dovetail/plan/sentence.hpp>
#include <dovetail/policy/pipelined.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail {

inline constexpr std::size_t max_policies = 64;  ///< around one stage of a layout text

/// A layout text that cannot be read: names the place, with what stands around it, and what may stand there.
class LayoutTextError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A layout read from text. Copies share the axes, whose addresses plans keep.
struct Layout {
  /// What plans point to: addresses in here stay.
  struct Axes {
    std::deque<std::string> names{};
    std::deque<std::vector<i64>> shares{};
    std::deque<AxisInfo> axes{};
  };
  std::string text{};
  std::shared_ptr<Axes> axes = std::make_shared<Axes>();
  std::vector<Policy> outer{};  ///< outside the pipeline, or all there are
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
    if (at_ == text_.size()) fail("is empty: write \"single\" for one rank, or axes such as \"tp2\"");
    for (bool alone = true; at_ < text_.size(); alone = false) {
      std::string const word = name();
      if (word == "single") single(alone && only_spaces_follow());
      else if (word == "pp") pipeline();
      else item(word, layout_.pipeline ? layout_.inner : layout_.outer);
      skip();
    }
    if (!layout_.stages.empty() && !layout_.inner.empty())
      fail("states policies of each stage in [ ] and others after them: put those into the brackets too");
    return layout_;
  }

 private:
  std::string_view text_;
  std::vector<DimInfo const*> dims_;
  std::size_t at_ = 0, word_ = 0;  ///< what is read next; where the last name begins
  bool in_stage_ = false;
  Layout layout_{};

  [[noreturn]] void fail_at(std::size_t at, std::string const& what) const {
    throw LayoutTextError(
        words("layout \"", excerpt(text_, at), "\" (at character ", at + 1, ") ", what, "; see docs/layouts.md"));
  }
  [[noreturn]] void fail(std::string const& what) const { fail_at(at_, what); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  /// The next character as a message shows it.
  std::string shown() const {
    char const c = peek();
    return c > ' ' && c <= '~' ? words("'", c, "'") : std::string("a character that layouts have no use for");
  }
  bool take(char c) { return peek() == c && ++at_; }
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  void skip() {
    while (is_space(peek())) ++at_;
  }
  bool only_spaces_follow() {
    skip();
    return at_ == text_.size();
  }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string name(char const* expected = "an axis name such as tp") {
    word_ = at_;
    while (is_letter(peek())) ++at_;
    if (word_ == at_) {
      if (at_ == text_.size()) fail("ends where " + std::string(expected) + " is expected");
      char const* const rule = std::string_view("(=@[").find(peek()) != std::string_view::npos
                                   ? ": it follows what it belongs to without a space"
                               : peek() == '|' || peek() == ']'
                                   ? ": it belongs into the brackets of pp, as in pp2[tp2|tp1]"
                                   : "";
      fail(words("has ", shown(), " where ", expected, " is expected", rule));
    }
    if (std::size_t const size = at_ - word_; size >= sizeof(Name::chars))
      fail_at(word_, words("has a name of ", size, " characters: ", sizeof(Name::chars) - 1, " are the most"));
    return std::string(text_.substr(word_, at_ - word_));
  }
  i32 number(char const* of, i32 least) {
    std::size_t const from = at_;
    i64 n = 0;
    while (is_digit(peek())) {
      n = n * 10 + (peek() - '0');
      if (n > 1000000) fail_at(from, words("states a ", of, " above 1,000,000, the most that there may be"));
      ++at_;
    }
    if (from == at_) fail(words("lacks a number: a ", of, " is expected here"));
    if (n < least) fail_at(from, words("states a ", of, " of ", n, ": at least ", least, " is expected"));
    return static_cast<i32>(n);
  }
  void end_of_item() const {
    if (at_ == text_.size() || is_space(peek()) || peek() == '|' || peek() == ']') return;
    fail(words("has ", shown(), " where an axis ends: separate axes with spaces"));
  }
  void single(bool alone) const {
    if (!alone) fail_at(word_, "has 'single' beside something else: it stands alone, for no axes at all");
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
    skip();
    if (take(')')) return mapped;
    do {
      skip();
      std::string const word = name("a dim such as heads");
      DimInfo const* found = nullptr;
      for (auto const* d : dims_)
        if (word == d->name) found = d;
      if (word == "kv_heads") fail_at(word_, "maps kv_heads, which follow heads: name heads");
      if (!found) {
        std::string all;
        for (auto const* d : dims_) all += (all.empty() ? "" : ", ") + std::string(d->name);
        fail_at(word_, words("maps an unknown dim '", word, "': known are ", all));
      }
      if (mapped.size() == max_mapped) fail_at(word_, words("maps more than ", max_mapped, " dims to one axis"));
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
      fail_at(word_, words("names an axis '", word,
                           "' without its dims: dp, tp, sp and pp have usual ones, any other "
                           "states them, as in ",
                           word, "2(heads,ffn)"));
    return d;
  }

  /// Bounds what a plan would meet as a broken invariant: axes and ranks of one stage, and the depth of nesting.
  void check_room(std::size_t from, std::vector<Policy> const& to) const {
    std::size_t policies = layout_.roles.size() + layout_.outer.size() + layout_.inner.size();
    for (auto const& stage : layout_.stages) policies += in_stage_ && &stage == &to ? stage.size() : 0;
    if (policies > max_policies)
      fail_at(from, words("states more than ", max_policies, " policies, the most that a stage may have"));
    std::vector<AxisInfo const*> axes;
    for (auto const* list : {&layout_.outer, &layout_.inner, &to})
      for (auto const& p : *list)
        if (std::find(axes.begin(), axes.end(), p.axis) == axes.end()) axes.push_back(p.axis);
    if (axes.size() > static_cast<std::size_t>(max_axes))
      fail_at(from, words("states more than ", max_axes, " axes, the most that a stage may have"));
    i64 ranks = 1;
    for (auto const* axis : axes) {
      ranks *= axis->size;
      if (ranks > max_ranks) fail_at(from, "states more than 1,000,000 ranks of one stage, the most that there may be");
    }
  }

  /// `axis [size [=shares]] [(dims)] [@roles]`; an axis without a size is one that stands before.
  void item(std::string const& word, std::vector<Policy>& to) {
    std::size_t const from = word_;
    AxisInfo const* axis = nullptr;
    if (is_digit(peek())) {
      i32 const size = number("number of ranks", 1);
      std::vector<i64> shares;
      if (take('=')) {
        i64 total = 0;
        do total += shares.emplace_back(number("share", 0));
        while (take(':'));
        if (static_cast<i32>(shares.size()) != size)
          fail_at(from, words("states ", counted(static_cast<i64>(shares.size()), "share"), " for the ",
                              counted(size, "rank"), " of ", word, ": one each is expected"));
        if (!total) fail_at(from, "states shares that are all zero: one rank at least must hold something");
      }
      axis = make_axis(word, size, std::move(shares));
    } else {
      axis = standing(word, to);
      if (!axis) fail_at(from, words("names axis '", word, "' without a size: write ", word, "2, or state it earlier"));
      if (peek() != '(')
        fail_at(from,
                words("names axis '", word, "' again without dims: write ", word, "(sequence), say, or another name"));
    }
    for (auto const& p : to)
      if (word == p.axis->name && p.axis != axis)
        fail_at(from, words("states axis ", word, " twice with other sizes or shares: give one of them another name"));
    MappedDims const mapped = take('(') ? stated_dims() : usual_dims(word);
    i32 const stage = in_stage_ ? static_cast<i32>(layout_.stages.size()) - 1 : -1;
    if (take('@')) {
      do {
        std::size_t const begin = at_;
        while (is_letter(peek()) || is_digit(peek())) ++at_;
        if (begin == at_) fail("lacks the role of a layer, such as mlp_norm, after @ or a comma");
        if (at_ - begin >= sizeof(Name::chars))
          fail_at(begin, words("names a role of more than ", sizeof(Name::chars) - 1, " characters"));
        std::string const role(text_.substr(begin, at_ - begin));
        layout_.roles.push_back({dovetail::name(role.c_str()), {axis, mapped}, stage});
      } while (take(','));
      if (peek() == '.') fail_at(from, "names a path where the role of a layer is expected: write its last word alone");
      if (!standing(word, to)) to.push_back({axis, {}});  // the axis is there, and off but for those layers
    } else {
      to.push_back({axis, mapped});
    }
    check_room(from, to);
    end_of_item();
  }

  void pipeline() {
    std::size_t const from = word_;
    if (layout_.pipeline) fail_at(from, "has a second pipeline: pp stands once");
    i32 const size = number("number of stages", 1);
    layout_.pipeline = make_axis("pp", size, {});
    if (take('=')) {
      do layout_.cuts.push_back(number("number of layers", 0));
      while (take(','));
      if (static_cast<i32>(layout_.cuts.size()) != size)
        fail_at(from, words("states the layers of ", counted(static_cast<i64>(layout_.cuts.size()), "stage"), " of ",
                            size, ": one number each is expected"));
    }
    if (peek() == '(' || peek() == '@') fail(words("has ", shown(), " after pp, which deals layers and maps no dims"));
    if (!take('[')) return end_of_item();
    in_stage_ = true;
    do stage(layout_.stages.emplace_back());
    while (take('|'));
    if (!take(']')) fail("lacks the ] after the policies of the stages");
    in_stage_ = false;
    if (static_cast<i32>(layout_.stages.size()) != size)
      fail_at(from, words("states the policies of ", counted(static_cast<i64>(layout_.stages.size()), "stage"), " of ",
                          size, ": separate stages with |, and leave one empty that has none"));
    end_of_item();
  }
  /// The policies of one stage, up to the | or ] after it.
  void stage(std::vector<Policy>& to) {
    skip();
    for (bool alone = true; at_ < text_.size() && peek() != '|' && peek() != ']'; alone = false) {
      std::string const word = name();
      if (word == "pp") fail_at(word_, "has a pipeline inside a stage: pp stands once");
      if (word != "single") item(word, to);
      skip();
      if (word == "single") single(alone && (at_ == text_.size() || peek() == '|' || peek() == ']'));
    }
  }
};

}  // namespace layout_text

/// Reads a layout. @throws LayoutTextError
inline Layout read_layout(std::string_view text, std::vector<DimInfo const*> dims = layout_text::known_dims()) {
  return layout_text::Reader(text, std::move(dims)).read();
}

}  // namespace dovetail
