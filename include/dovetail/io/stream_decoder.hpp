// SPDX-License-Identifier: MIT
// Turns ids that come one by one into pieces of text that can be shown at once: no piece ends inside a character, and
// the pieces joined are the text of all ids. A character that is cut by a token's end decodes to U+FFFD until it is
// whole, so trailing ones are held back. Each id is decoded after the piece before it, since some tokenizers write the
// first word of a text in another way. Programs that stream a model's answer use one for each sequence.
#pragma once
#include <algorithm>
#include <cstddef>
#include <dovetail/meta/integer.hpp>
#include <dovetail/meta/utf8.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dovetail {

/// Text of tokens as they come: what is whole is handed out, and nothing twice.
class StreamDecoder {
 public:
  /// Text of ids, such as Tokenizer::decode: what is no character, or not yet one, as U+FFFD.
  using Decode = std::function<std::string(std::span<i32 const>)>;

  explicit StreamDecoder(Decode decode) : decode_(std::move(decode)) {}

  /// The text that became certain with this id; may be empty.
  std::string push(i32 id) {
    ids_.push_back(id);
    std::string const text = decode_(ids_);
    std::size_t certain = text.size();
    // A character has at most four bytes, so at most three that are not one yet stand at the end.
    for (int i = 0; i < 3 && std::string_view(text).substr(0, certain).ends_with(replacement_character); ++i)
      certain -= replacement_character.size();
    if (certain <= shown_) return {};
    std::string piece = text.substr(shown_, certain - shown_);
    shown_ = certain;
    if (certain == text.size()) {  // the ids before this piece have done their part; its own are the next one's context
      ids_.erase(ids_.begin(), ids_.begin() + context_);
      context_ = static_cast<std::ptrdiff_t>(ids_.size());
      shown_ = decode_(ids_).size();
    }
    return piece;
  }

  /// What was held back; the next push begins a new text.
  std::string finish() {
    std::string const text = ids_.empty() ? "" : decode_(ids_);
    std::string piece = text.substr((std::min)(shown_, text.size()));
    ids_.clear();
    context_ = 0;
    shown_ = 0;
    return piece;
  }

 private:
  Decode decode_;
  std::vector<i32> ids_;        // of the last piece that was shown whole, and after it
  std::ptrdiff_t context_ = 0;  // how many belong to that piece
  std::size_t shown_ = 0;       // bytes of the text of `ids_` that were shown
};

}  // namespace dovetail
