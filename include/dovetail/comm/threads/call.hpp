// SPDX-License-Identifier: MIT
// What a rank asked for, as its peers see it. Members of a group compare their calls before any of them reads another's
// buffer, so a call that differs is an error which quotes both, never a read beyond an end.
#pragma once
#include <dovetail/comm/communicator.hpp>

namespace dovetail::threads {

enum class Verb : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  send,
  receive,
  barrier,
};

constexpr char const* name_of(Verb v) {
  constexpr char const* names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                   "broadcast",  "send",           "receive",    "barrier"};
  return names[static_cast<int>(v)];
}

struct Call {
  Verb verb = Verb::barrier;
  Element element = Element::u8;
  Reduction reduction = Reduction::sum;
  int peer = 0;  ///< root of a broadcast (its place in the group), other end of a send or receive (world rank)
  int tag = 0;
  i64 n = 0;  ///< elements, where one number says it
  friend bool operator==(Call const&, Call const&) = default;
};

inline bool same_counts(i64 const* a, i64 const* b, int size) {
  for (int i = 0; i < size; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

inline std::string text_of(auto const* numbers, int size) {
  std::string text = "[";
  for (int i = 0; i < size; ++i) text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

/// The call as a user would write it: `all_gather(f32, counts [4, 5])`.
inline std::string text_of(Call const& call, i64 const* counts, i64 const* receive_counts, int size) {
  std::string text = name_of(call.verb);
  if (call.verb == Verb::barrier) return text + "()";
  text += std::string("(") + name_of(call.element) + ", ";
  switch (call.verb) {
    case Verb::all_reduce: return text + std::to_string(call.n) + ", " + name_of(call.reduction) + ")";
    case Verb::reduce_scatter: return text + "counts " + text_of(counts, size) + ", " + name_of(call.reduction) + ")";
    case Verb::all_gather: return text + "counts " + text_of(counts, size) + ")";
    case Verb::all_to_all:
      return text + "send counts " + text_of(counts, size) + ", receive counts " + text_of(receive_counts, size) + ")";
    case Verb::broadcast: return text + std::to_string(call.n) + ", root " + std::to_string(call.peer) + ")";
    default: break;
  }
  return text + std::to_string(call.n) + ", tag " + std::to_string(call.tag) + ")" +
         (call.verb == Verb::send ? " to rank " : " from rank ") + std::to_string(call.peer);
}

}  // namespace dovetail::threads
