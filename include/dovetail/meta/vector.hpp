// SPDX-License-Identifier: MIT
// Vectors usable in constant expressions: `Vec` holds at most Cap elements inside itself (dims, operands: small
// by nature), `List` grows on the heap (steps, values: as many as the model needs). Neither needs <vector>, whose
// constexpr form not every compiler of the plan-time headers has.
#pragma once
#include <cstddef>
#include <dovetail/meta/integer.hpp>
#include <exception>

namespace dovetail {

/// A fixed room is full, or a question has no answer; what() says what to do.
class CapacityError : public std::exception {
 public:
  explicit CapacityError(char const* advice) : advice_(advice) {}
  char const* what() const noexcept override { return advice_; }

 private:
  char const* advice_;
};

/// Reaching this in a constant expression prints `advice` in the compiler's note; at run time it throws.
constexpr void capacity_exceeded(char const* advice) {
  if (advice) throw CapacityError(advice);
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

/// Growing vector in blocks: a copy is a copy of blocks, which constant evaluation does at once, and elements never
/// move. In a constant expression its storage must be gone before the expression ends.
template <class T>
class List {
  static constexpr i32 block_size = 32, first_room = 8;
  struct Block {
    T items[block_size]{};
  };
  Block** blocks_ = nullptr;
  i32 count_ = 0, used_ = 0, room_ = 0;  // elements, blocks, room for blocks

  constexpr void add_block(Block* block) {
    if (used_ == room_) {
      i32 const room = room_ ? 2 * room_ : first_room;
      Block** const more = new Block* [static_cast<std::size_t>(room)] {};
      for (i32 i = 0; i < used_; ++i) more[i] = blocks_[i];
      delete[] blocks_;
      blocks_ = more, room_ = room;
    }
    blocks_[used_++] = block;
  }

 public:
  constexpr List() = default;
  constexpr List(List const& o) : count_(o.count_) {
    for (i32 b = 0; b * block_size < o.count_; ++b) add_block(new Block(*o.blocks_[b]));
  }
  constexpr List(List&& o) noexcept : blocks_(o.blocks_), count_(o.count_), used_(o.used_), room_(o.room_) {
    o.blocks_ = nullptr;
    o.count_ = o.used_ = o.room_ = 0;
  }
  constexpr List& operator=(List o) noexcept {
    swap(o);
    return *this;
  }
  constexpr ~List() {
    for (i32 i = 0; i < used_; ++i) delete blocks_[i];
    delete[] blocks_;
  }
  constexpr void swap(List& o) noexcept {
    Block** const blocks = blocks_;
    i32 const count = count_, used = used_, room = room_;
    blocks_ = o.blocks_, count_ = o.count_, used_ = o.used_, room_ = o.room_;
    o.blocks_ = blocks, o.count_ = count, o.used_ = used, o.room_ = room;
  }

  constexpr void push(T const& x) {
    if (count_ == used_ * block_size) add_block(new Block{});
    (*this)[count_++] = x;
  }
  constexpr void pop() { --count_; }
  constexpr void cut(i32 n) { count_ = n; }  ///< keep the first n
  constexpr i32 size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr T& operator[](i64 i) { return blocks_[i / block_size]->items[i % block_size]; }
  constexpr T const& operator[](i64 i) const { return blocks_[i / block_size]->items[i % block_size]; }
  constexpr T& back() { return (*this)[count_ - 1]; }
  constexpr T const& back() const { return (*this)[count_ - 1]; }

  /// A place in the list, by index: it stays good while the list grows.
  template <class Owner>
  struct Iterator {
    Owner* list = nullptr;
    i32 at = 0;
    constexpr auto& operator*() const { return (*list)[at]; }
    constexpr Iterator& operator++() { return ++at, *this; }
    constexpr bool operator==(Iterator const& o) const { return at == o.at; }
  };
  constexpr Iterator<List> begin() { return {this, 0}; }
  constexpr Iterator<List> end() { return {this, count_}; }
  constexpr Iterator<List const> begin() const { return {this, 0}; }
  constexpr Iterator<List const> end() const { return {this, count_}; }
};

/// Owned array of a size that is known once: what a finished plan keeps its parts in.
template <class T>
class Array {
  T* items_ = nullptr;
  i32 count_ = 0;

 public:
  constexpr Array() = default;
  constexpr explicit Array(List<T> const& from) : count_(from.size()) {
    if (count_) items_ = new T[static_cast<std::size_t>(count_)]{};
    for (i32 i = 0; i < count_; ++i) items_[i] = from[i];
  }
  constexpr Array(Array&& o) noexcept : items_(o.items_), count_(o.count_) {
    o.items_ = nullptr;
    o.count_ = 0;
  }
  constexpr Array& operator=(Array&& o) noexcept {
    T* const items = items_;
    i32 const count = count_;
    items_ = o.items_, count_ = o.count_;
    o.items_ = items, o.count_ = count;
    return *this;
  }
  constexpr ~Array() { delete[] items_; }
  constexpr i32 size() const { return count_; }
  constexpr T const& operator[](i64 i) const { return items_[i]; }
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
