// SPDX-License-Identifier: MIT
// Figures of layouts in words, as tables and pictures show them: devices, requests, costs, who waits for whom. Numbers
// look as they do in plan/explain.hpp.
#pragma once
#include <dovetail/plan/compare_figures.hpp>

namespace dovetail {

namespace comparing {

/// "0-2, 5": runs of a sorted or unsorted list.
inline std::string runs_words(std::vector<i64> list) {
  std::sort(list.begin(), list.end());
  std::string text;
  for (std::size_t i = 0; i < list.size();) {
    std::size_t end = i + 1;
    while (end < list.size() && list[end] == list[end - 1] + 1) ++end;
    text += words(text.empty() ? "" : ", ", list[i]);
    if (end - i > 1) text += words(end - i > 2 ? "-" : ", ", list[end - 1]);
    i = end;
  }
  return text;
}

/// "device 3", "devices 0-2".
inline std::string devices_words(std::vector<i64> const& list) {
  return words(list.size() == 1 ? "device " : "devices ", runs_words(list));
}

inline std::string requests_words(Range r) {
  if (!r.size()) return "none of the requests";
  return r.size() == 1 ? words("request ", r.lo) : words("requests ", r.lo, '-', r.hi - 1);
}

inline std::string cost_words(Cost c) { return counted(c.messages, "message") + ", " + readable_bytes(c.bytes); }

/// "124 messages, 281.0 kB over tp; 1 message, 6.9 kB from another stage".
inline std::string axes_words(TrafficReport const& r) {
  std::string text;
  auto const add = [&](Cost c, std::string const& whence) {
    if (c.messages) text += (text.empty() ? "" : "; ") + cost_words(c) + whence;
  };
  for (auto const& a : r.by_axis) add(a.cost, words(" over ", a.axis));
  add(r.of(StepKind::send), " from another stage");
  return text.empty() ? "nothing" : text;
}
/// "124 messages, 281.0 kB of all_reduce".
inline std::string kinds_words(TrafficReport const& r) {
  std::string text;
  for (int k = 0; k < step_kinds; ++k)
    if (r.by_kind[k].messages)
      text += (text.empty() ? "" : "; ") + cost_words(r.by_kind[k]) + " of " + name_of(static_cast<StepKind>(k));
  return text.empty() ? "nothing" : text;
}

/// 1234567 -> "1.2 M".
inline std::string readable_count(i64 n) {
  if (n < 1000'000) return std::to_string(n);
  if (n < 1000'000'000) return wording::tenths(n, 1000'000) + " M";
  return wording::tenths(n, 1000'000'000) + " G";
}

/// Devices that choose the next token, where this one begins a step and they end it.
inline std::vector<i64> token_from(LayoutFigures const& f, DeviceFigures const& d) {
  std::vector<i64> all;
  if (!f.decodes || d.stage == f.result_stage || !d.senders.empty()) return all;
  for (auto const& other : f.devices)
    if (other.pipeline == d.pipeline && other.stage == f.result_stage) all.push_back(other.rank);
  return all;
}

/// What a device waits for in a pass: "for what device 0 sends; for devices 1, 2, 62 times".
inline std::string waits_words(LayoutFigures const& f, DeviceFigures const& d) {
  std::string text;
  auto const add = [&](std::string const& what) { text += (text.empty() ? "" : "; ") + what; };
  if (!d.senders.empty()) add("for what " + devices_words(d.senders) + (d.senders.size() == 1 ? " sends" : " send"));
  if (auto const last = token_from(f, d); !last.empty()) add("for the token that " + devices_words(last) + " chose");
  for (auto const& e : f.exchanges) {
    std::vector<i64> others;
    for (i64 rank : e.devices)
      if (rank != d.rank) others.push_back(rank);
    if (others.size() == e.devices.size()) continue;
    add(words("for ", devices_words(others), ", ", e.times, e.times == 1 ? " time" : " times"));
  }
  return text.empty() ? "for nobody" : text;
}

/// Is there a decode step to tell of? A model without a cache has none.
inline bool any_decodes(std::vector<LayoutFigures> const& layouts) {
  for (auto const& f : layouts)
    if (f.ok() && !f.decodes) return false;
  return true;
}

inline std::string workload_words(Workload const& w, bool decodes) {
  std::string const requests = counted(w.sequences, "request") + (w.sequences > 1 ? " together" : "");
  if (!decodes) return words(requests, "; a prefill computes ", counted(w.tokens, "token"), " of each");
  return words(requests, "; caches for ", counted(w.context, "token"),
               " each; a decode step computes one more token of each, a prefill ", w.tokens);
}

/// "12 devices: 2 replicas, 2 stages, split layers".
inline std::string heading_words(LayoutFigures const& f) {
  std::string text = counted(static_cast<i64>(f.devices.size()), "device"), what;
  auto const add = [&](std::string const& part) { what += (what.empty() ? ": " : ", ") + part; };
  if (f.replicas > 1) add(words(f.replicas, " replicas"));
  if (f.stages > 1) add(words(f.stages, " stages"));
  bool split = false;
  for (auto const& d : f.devices)
    for (std::size_t i = 0; i < f.parts.size(); ++i)
      split = split || (f.parts[i].kind == ModelPart::Kind::layer && !d.holds[i].none() && !d.holds[i].complete());
  if (split) add("split layers");
  return text + what;
}

/// Characters that a terminal shows: bytes but for those that continue a character of UTF-8.
inline std::size_t shown_width(std::string const& text) {
  std::size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return n;
}

/// Words of a text, a number together with its unit.
inline std::vector<std::string> words_of(std::string const& text) {
  std::vector<std::string> all;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t const end = (std::min)(text.find(' ', from), text.size());
    std::string const word = text.substr(from, end - from), bare = word.substr(0, word.find_first_of(",;"));
    bool const number = !all.empty() && !all.back().empty() && all.back().back() >= '0' && all.back().back() <= '9';
    bool const unit = bare == "B" || bare == "kB" || bare == "MB" || bare == "GB" || bare == "M" || bare == "G";
    if (number && unit) all.back() += ' ' + word;
    else all.push_back(word);
    from = end + 1;
  }
  return all;
}
/// Bytes of the first characters of a word, `width` at most.
inline std::size_t bytes_of_width(std::string const& word, std::size_t width) {
  std::size_t n = 0;
  for (std::size_t shown = 0; n < word.size(); ++n) {
    shown += (static_cast<unsigned char>(word[n]) & 0xc0) != 0x80;
    if (shown > width) break;
  }
  return n;
}
/// `text` in lines of at most `width` characters; a longer word is cut. @pre width > 0
inline std::vector<std::string> wrapped(std::string const& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (auto word : words_of(text)) {
    if (!lines.back().empty() && shown_width(lines.back()) + 1 + shown_width(word) > width) lines.emplace_back();
    for (; shown_width(word) > width; lines.emplace_back()) {
      std::size_t const cut = bytes_of_width(word, width);
      lines.back() = word.substr(0, cut), word.erase(0, cut);
    }
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace comparing

}  // namespace dovetail
