// SPDX-License-Identifier: MIT
// Two vectors usable in constant expressions: `Vec` holds at most Cap elements inside itself (dims, operands: small
// by nature), `List` grows on the heap (steps, values: as many as the model needs). Neither needs <vector>, whose
// constexpr form not every compiler of the plan-time headers has.
#pragma once
#include <cstddef>
#include <dovetail/meta/integer.hpp>

namespace dovetail {

/// Reaching this in a constant expression prints `advice` in the compiler's note; at run time it throws the text.
constexpr void capacity_exceeded(char const* advice) {
  if (advice) throw advice;
}

/// Bounded vector; a push beyond Cap is an error that says so, never a lost element.
template <class T, int Cap>
struct Vec {
  T items[Cap]{};
  i32 count = 0;

  constexpr void push(T const& x) {
    if (count == Cap) capacity_exceeded("dovetail: a bounded vector is full; raise the max_ constant that sizes it");
    items[count++] = x;
  }
  constexpr void pop() { --count; }
  constexpr void clear() { count = 0; }
  constexpr i32 size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T& operator[](i64 i) { return items[i]; }
  constexpr T const& operator[](i64 i) const { return items[i]; }
  constexpr T const& back() const { return items[count - 1]; }
  constexpr T* begin() { return items; }
  constexpr T* end() { return items + count; }
  constexpr T const* begin() const { return items; }
  constexpr T const* end() const { return items + count; }
  friend constexpr bool operator==(Vec const& a, Vec const& b) {
    if (a.count != b.count) return false;
    for (i32 i = 0; i < a.count; ++i)
      if (!(a.items[i] == b.items[i])) return false;
    return true;
  }
};

/// Growing vector; in a constant expression its storage must be gone before the expression ends.
template <class T>
class List {
  T* items_ = nullptr;
  i32 count_ = 0, room_ = 0;

 public:
  constexpr List() = default;
  constexpr List(List const& o) {
    reserve(o.count_);
    for (i32 i = 0; i < o.count_; ++i) items_[i] = o.items_[i];
    count_ = o.count_;
  }
  constexpr List(List&& o) noexcept : items_(o.items_), count_(o.count_), room_(o.room_) {
    o.items_ = nullptr;
    o.count_ = o.room_ = 0;
  }
  constexpr List& operator=(List o) noexcept {
    T* const items = items_;
    items_ = o.items_, o.items_ = items;
    i32 const count = count_, room = room_;
    count_ = o.count_, room_ = o.room_;
    o.count_ = count, o.room_ = room;
    return *this;
  }
  constexpr ~List() { delete[] items_; }

  constexpr void reserve(i32 n) {
    if (n <= room_) return;
    T* const more = new T[static_cast<std::size_t>(n)]{};
    for (i32 i = 0; i < count_; ++i) more[i] = items_[i];
    delete[] items_;
    items_ = more, room_ = n;
  }
  constexpr void push(T const& x) {
    if (count_ == room_) {
      T const copy = x;  // x may live in the storage that is about to move
      reserve(room_ ? 2 * room_ : 8);
      items_[count_++] = copy;
    } else {
      items_[count_++] = x;
    }
  }
  constexpr void pop() { --count_; }
  constexpr void cut(i32 n) { count_ = n; }  ///< keep the first n
  constexpr i32 size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr T& operator[](i64 i) { return items_[i]; }
  constexpr T const& operator[](i64 i) const { return items_[i]; }
  constexpr T& back() { return items_[count_ - 1]; }
  constexpr T const& back() const { return items_[count_ - 1]; }
  constexpr T* begin() { return items_; }
  constexpr T* end() { return items_ + count_; }
  constexpr T const* begin() const { return items_; }
  constexpr T const* end() const { return items_ + count_; }
};

/// View of constant elements: what a plan hands out, whether they live in a List or in static storage.
template <class T>
struct Span {
  T const* items = nullptr;
  i32 count = 0;

  constexpr i32 size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T const& operator[](i64 i) const { return items[i]; }
  constexpr T const* begin() const { return items; }
  constexpr T const* end() const { return items + count; }
};

}  // namespace dovetail
