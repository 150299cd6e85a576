// SPDX-License-Identifier: MIT
// Text to token ids and back, and chats to prompts, by the `tokenizers` library in a helper process
// (scripts/tokenizer_server.py): the model's own rules, no guess of ours. Calls from several threads take turns; a
// question that is refused leaves the tokenizer usable. Programs that take text from people use it; ranks never do.
#pragma once
#include <algorithm>
#include <dovetail/io/helper_process.hpp>
#include <dovetail/io/json_field.hpp>
#include <dovetail/meta/utf8.hpp>
#include <mutex>
#include <span>

namespace dovetail {

/// One turn of a chat; the role is "system", "user" or "assistant".
struct ChatTurn {
  std::string role, content;
};

/// Text to token ids and back, by the tokenizers library in a process of its own.
class Tokenizer {
 public:
  /// Starts the helper for the model in `model` (a directory with tokenizer.json).
  /// @param python  an interpreter that has the packages of scripts/requirements.txt, such as build/venv/bin/python
  /// @param script  scripts/tokenizer_server.py of the source tree
  /// @throws IoError that says what to run where the interpreter, a package or a file is missing
  Tokenizer(std::filesystem::path const& model, std::filesystem::path const& python,
            std::filesystem::path const& script)
      : helper_(command(model, python, script)) {
    Json const ready = understood([&] { return helper_.receive(); });
    vocabulary_ = required<i64>(ready, "vocabulary", name);
  }

  /// Number of token ids: those below it can be decoded.
  i64 vocabulary() const { return vocabulary_; }

  /// Token ids of a text; special tokens written out in it are recognised. A character for which the model has no token
  /// (SmolLM2 has none for some control characters) is left out, as the library does.
  /// @param add_special  with the tokens that the model wants around every text, if any; not for a chat's prompt
  /// @throws IoError where the text is not UTF-8
  std::vector<i32> encode(std::string_view text, bool add_special = true) {
    check_utf8(text);
    return required<std::vector<i32>>(ask(Json::object({{"encode", text}, {"special", add_special}})), "ids", name);
  }

  /// Text of token ids, special tokens written out; bytes that are no character give U+FFFD.
  /// @throws IoError where an id is outside the vocabulary
  std::string decode(std::span<i32 const> ids) {
    return required<std::string>(ask(Json::object({{"decode", std::vector<i32>(ids.begin(), ids.end())}})), "text",
                                 name);
  }

  /// The same for any ids: each outside the vocabulary gives U+FFFD, for models that have more ids than their
  /// tokenizer.
  std::string decode_any(std::span<i32 const> ids) {
    std::string text;
    for (auto at = ids.begin(); at != ids.end();) {
      auto const end = std::find_if(at, ids.end(), [&](i32 id) { return !knows(id); });
      if (at != end) text += decode({at, end});
      at = end;
      if (at == ids.end()) break;
      text += replacement_character;
      ++at;
    }
    return text;
  }
  bool knows(i32 id) const { return id >= 0 && id < vocabulary_; }

  /// The prompt that the model's chat template makes of these turns, up to where the model is to answer.
  /// @throws IoError where the model has no template, or the template refuses the turns
  std::string apply_chat(std::span<ChatTurn const> turns) {
    Json list = Json::array();
    for (auto const& turn : turns) {
      check_utf8(turn.role);
      check_utf8(turn.content);
      list.push_back(Json::object({{"role", turn.role}, {"content", turn.content}}));
    }
    return required<std::string>(ask(Json::object({{"chat", list}})), "text", name);
  }
  /// The prompt for one message of a user.
  std::string apply_chat(std::string_view text) {
    ChatTurn const turn{"user", std::string(text)};
    return apply_chat(std::span(&turn, 1));
  }

 private:
  static constexpr char const* name = "tokenizer";

  static std::vector<std::string> command(std::filesystem::path const& model, std::filesystem::path const& python,
                                          std::filesystem::path const& script) {
    constexpr char const* advice = "; run scripts/fetch_weights, which makes a virtual environment with what is needed";
    std::error_code ignored;
    if (!std::filesystem::exists(model / "tokenizer.json", ignored))
      throw io_error(model.string(), ": holds no tokenizer.json; text needs one (token ids do not)");
    if (python.has_parent_path() && !std::filesystem::exists(python, ignored))
      throw io_error("Python interpreter ", python.string(), ": no such file", advice);
    if (!std::filesystem::exists(script, ignored))
      throw io_error("tokenizer script ", script.string(),
                     ": no such file; it is scripts/tokenizer_server.py of Dovetail");
    return {python.string(), script.string(), model.string()};
  }

  static void check_utf8(std::string_view text) {
    std::size_t const valid = utf8_valid_prefix(text);
    if (valid == text.size()) return;
    constexpr char const* digits = "0123456789abcdef";
    auto const byte = static_cast<unsigned char>(text[valid]);
    throw io_error("text is not valid UTF-8: byte 0x", digits[byte >> 4], digits[byte & 15], " at offset ", valid,
                   "; give text in UTF-8");
  }

  Json ask(Json const& question) {
    std::lock_guard const turn(one_at_a_time_);
    return understood([&] { return helper_.ask(question.dump(-1, ' ', true)); });
  }

  template <class Answer>
  static Json understood(Answer answer) {
    Json json = parse_json(answer(), name);
    if (auto const error = optional<std::string>(json, "error", name)) throw io_error(name, ": ", *error);
    return json;
  }

  std::mutex one_at_a_time_;
  HelperProcess helper_;
  i64 vocabulary_ = 0;
};

}  // namespace dovetail
