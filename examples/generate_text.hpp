// SPDX-License-Identifier: MIT
// Text of a running generation: decodes new tokens of every sequence, shows one sequence as it grows, and ends a text
// at a stop string. Ids that the tokenizer lacks are shown as U+FFFD, with one warning. Ranks of several replicas may
// call at once.
#pragma once
#include <cstdio>
#include <dovetail/io/stream_decoder.hpp>
#include <dovetail/io/tokenizer.hpp>
#include <memory>
#include <mutex>
#include <utility>

namespace generate_example {

class Texts {
 public:
  /// @param tokenizer  nullptr: there is no text
  /// @param show       print the text of the only sequence as it grows
  Texts(dovetail::Tokenizer* tokenizer, std::size_t sequences, std::vector<std::string> stop,
        std::vector<dovetail::i32> hidden, bool show)
      : tokenizer_(tokenizer),
        stop_(std::move(stop)),
        hidden_(std::move(hidden)),
        show_(show),
        texts_(sequences),
        shown_(sequences),
        stopped_(sequences) {
    if (!tokenizer_) return;
    for (std::size_t s = 0; s < sequences; ++s)
      decoders_.emplace_back([this](std::span<dovetail::i32 const> ids) { return tokenizer_->decode_any(ids); });
  }

  /// A new token. @return false where the text came to a stop string
  bool push(dovetail::i64 sequence, dovetail::i32 token) {
    if (!tokenizer_) return true;
    for (auto const h : hidden_)
      if (h == token) return true;
    std::scoped_lock const lock(mutex_);
    if (!tokenizer_->knows(token) && !std::exchange(warned_, true))
      std::fprintf(stderr, "generate: token id %d is beyond the tokenizer's %lld: such ids are shown as U+FFFD\n",
                   token, static_cast<long long>(tokenizer_->vocabulary()));
    auto const s = static_cast<std::size_t>(sequence);
    texts_[s] += decoders_[s].push(token);
    std::size_t end = std::string::npos, hold = 0;
    for (auto const& stop : stop_) {
      end = (std::min)(end, texts_[s].find(stop));
      hold = (std::max)(hold, stop.size() - 1);  // its beginning may stand at the end of the text
    }
    if (end != std::string::npos) {
      texts_[s].resize(end);
      stopped_[s] = true;
      show(s, end);
      return false;
    }
    show(s, texts_[s].size() > hold ? texts_[s].size() - hold : 0);
    return true;
  }

  /// The texts, complete. Call once, when all ranks are done.
  std::vector<std::string> const& finish() {
    for (std::size_t s = 0; s < decoders_.size(); ++s) {
      if (!stopped_[s]) texts_[s] += decoders_[s].finish();
      show(s, texts_[s].size());
    }
    return texts_;
  }

 private:
  dovetail::Tokenizer* tokenizer_;
  std::vector<std::string> stop_;
  std::vector<dovetail::i32> hidden_;
  bool show_, warned_ = false;
  std::vector<std::string> texts_;
  std::vector<std::size_t> shown_;
  std::vector<char> stopped_;
  std::vector<dovetail::StreamDecoder> decoders_{};
  std::mutex mutex_{};

  void show(std::size_t s, std::size_t until) {
    if (!show_ || until <= shown_[s]) return;
    std::fwrite(texts_[s].data() + shown_[s], 1, until - shown_[s], stdout);
    std::fflush(stdout);
    shown_[s] = until;
  }
};

}  // namespace generate_example
