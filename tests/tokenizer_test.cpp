// SPDX-License-Identifier: MIT
// Text and ids of the real tokenizer against the golden prompts, pieces of streamed text, and a helper process that is
// missing, dies, stays silent or talks nonsense. Needs build/venv and the model of scripts/fetch_weights;
// DOVETAIL_PYTHON and DOVETAIL_MODEL_DIR name others. Where they are absent the tests fail and say so.
#include <dovetail/io/stream_decoder.hpp>
#include <dovetail/io/tokenizer.hpp>

#include <cstdlib>

#include "catch.hpp"
#include "scratch.hpp"

using namespace dovetail;
using test::Scratch;

namespace {

std::string setting(char const* name, std::string otherwise) {
  char const* value = std::getenv(name);
  return value && *value ? value : otherwise;
}
std::string const root = DOVETAIL_TESTS_DIR "/..";
std::string const model = setting("DOVETAIL_MODEL_DIR", DOVETAIL_MODELS_DIR "/smollm2-135m");
std::string const python = setting("DOVETAIL_PYTHON", root + "/build/venv/bin/python");
std::string const script = root + "/scripts/tokenizer_server.py";

/// One process for all tests that only ask.
Tokenizer& tokenizer() {
  static Tokenizer one(model, python, script);
  return one;
}

template <class Action>
std::string error_of(Action action) {
  return test::refusal<IoError>(action);
}
bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

HelperProcess shell(std::string const& program, std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  return HelperProcess({"/bin/sh", "-c", program}, patience);
}

/// Decodes ids that are bytes, as byte-level tokenizers do: each maximal part that is no character gives one U+FFFD.
std::string decode_bytes(std::span<i32 const> ids) {
  std::string bytes, text;
  for (i32 id : ids) bytes += static_cast<char>(id);
  for (std::string_view rest = bytes; !rest.empty();) {
    std::size_t size = utf8_character(rest);
    if (size) {
      text += rest.substr(0, size);
    } else {
      text += replacement_character;
      for (size = 1; size < rest.size(); ++size) {  // the longest beginning of some character
        bool begins = false;
        for (std::string_view end : {"\x80", "\xbf", "\x80\x80", "\xbf\xbf"})
          begins = begins || utf8_character(std::string(rest.substr(0, size + 1)) + std::string(end)) > size + 1;
        if (!begins) break;
      }
    }
    rest.remove_prefix(size);
  }
  return text;
}

}  // namespace

TEST_CASE("UTF-8 is told from what is not") {
  auto const valid = [](std::string_view text) { return utf8_valid_prefix(text) == text.size(); };
  CHECK(valid(""));
  CHECK(valid("plain, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80, \xef\xbf\xbd, \xf4\x8f\xbf\xbf, \x7f"));
  CHECK(valid(std::string_view("a\0b", 3)));
  for (std::string_view wrong :
       {"\x80", "\xff", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe2\x82", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98", "\xe2x\xac"}) {
    std::string const text = "ab" + std::string(wrong);
    CHECK(utf8_valid_prefix(text) == 2);
  }
}

TEST_CASE("golden prompts: ids, text and the chat template") {
  Json const golden = load_json(DOVETAIL_TESTS_DIR "/fixtures/smollm2-135m-greedy.json");
  auto& t = tokenizer();
  CHECK(t.vocabulary() == 49152);
  REQUIRE(golden["prompts"].size() == 6);
  for (auto const& prompt : golden["prompts"]) {
    INFO(prompt["name"]);
    auto const text = prompt["text"].get<std::string>();
    CHECK(t.encode(text) == prompt["prompt_ids"].get<std::vector<i32>>());
    CHECK(t.encode(text, false) == t.encode(text));  // this model wants nothing around a text
    auto const answer = prompt["greedy_ids"].get<std::vector<i32>>();
    auto const expected = prompt["greedy_text"].get<std::string>();
    CHECK(t.decode(answer) == expected);

    StreamDecoder stream([&](std::span<i32 const> ids) { return t.decode(ids); });
    std::string joined;
    for (i32 id : answer) {
      std::string const piece = stream.push(id);
      CHECK(utf8_valid_prefix(piece) == piece.size());
      joined += piece;
    }
    joined += stream.finish();
    CHECK(joined == expected);
    if (prompt["name"] == "chat") {
      CHECK(t.apply_chat("Explain in one sentence why the sky is blue.") == text);
      std::vector<ChatTurn> const turns = {{"system", "S"}, {"user", "U"}, {"assistant", "A"}, {"user", "V"}};
      CHECK(t.apply_chat(turns) ==
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
            "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n");
    }
  }
}

TEST_CASE("texts of all kinds survive encoding and decoding, and stream in whole characters") {
  auto& t = tokenizer();
  std::string every;
  for (char c = ' '; c < 0x7f; ++c) every += c;  // the model knows no token for some control characters
  std::string long_text;
  for (int i = 0; i < 20000; ++i) long_text += "word" + std::to_string(i) + (i % 7 ? " " : "\n");
  for (std::string const& text :
       {std::string(), std::string("a"), every, std::string("12345 678, 9.0"), std::string("  \t\n\r\n  x  "),
        std::string("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \xe4\xbd\xa0\xe5\xa5\xbd "
                    "\xd8\xb3\xd9\x84\xd8\xa7\xd9\x85 \xef\xbf\xbd!"),
        std::string("<|im_start|>user\n<|im_end|>"), std::string("\"quoted\" \\ {json}\n[1]"), long_text}) {
    auto const ids = t.encode(text);
    CHECK(t.decode(ids) == text);
    if (ids.size() > 1000) continue;  // streaming asks once or twice an id
    StreamDecoder stream([&](std::span<i32 const> some) { return t.decode(some); });
    std::string joined;
    for (i32 id : ids) {
      std::string const piece = stream.push(id);
      CHECK(utf8_valid_prefix(piece) == piece.size());
      joined += piece;
    }
    CHECK(joined + stream.finish() == text);
  }
  CHECK(t.encode("12") == std::vector<i32>{t.encode("1")[0], t.encode("2")[0]});  // digits one by one
}

TEST_CASE("what cannot be asked is refused, and the next question is answered") {
  auto& t = tokenizer();
  CHECK(error_of([&] { t.encode("ab\xff"); }) == "text is not valid UTF-8: byte 0xff at offset 2; give text in UTF-8");
  CHECK(error_of([&] { t.apply_chat("\xc3"); }) != "");
  std::vector<i32> const outside = {1, 49152}, negative = {-1};
  CHECK(error_of([&] { t.decode(outside); }) == "tokenizer: token id 49152 is outside the vocabulary of 49152");
  CHECK(contains(error_of([&] { t.decode(negative); }), "token id -1"));
  CHECK(contains(error_of([&] { t.apply_chat(std::span<ChatTurn const>()); }), "one or more"));
  CHECK(t.decode(t.encode("still here")) == "still here");

  std::string const mark(replacement_character);
  std::vector<i32> mixed = t.encode("still");
  std::size_t const words = mixed.size();
  mixed.insert(mixed.begin(), -1), mixed.push_back(49152), mixed.push_back(2147483647);
  for (i32 id : t.encode(" here")) mixed.push_back(id);
  CHECK(words > 0);
  CHECK(t.decode_any(mixed) == mark + "still" + mark + mark + " here");
  CHECK(t.decode_any(std::vector<i32>()) == "");
  CHECK(t.knows(49151));
  CHECK_FALSE(t.knows(49152));
}

TEST_CASE("a tokenizer that cannot start says what to run") {
  Scratch const scratch;
  auto const error = [&](std::string const& m, std::string const& p, std::string const& s) {
    return error_of([&] { Tokenizer const made(m, p, s); });
  };
  CHECK(contains(error(scratch.path().string(), python, script), "holds no tokenizer.json"));
  CHECK(
      contains(error(model, (scratch / "python").string(), script), "python: no such file; run scripts/fetch_weights"));
  CHECK(contains(error(model, "no-such-python-interpreter", script), "cannot be started"));
  CHECK(contains(error(model, python, (scratch / "none.py").string()), "none.py: no such file"));
  scratch.write("tokenizer.json", "{\"version\": ");
  CHECK(contains(error(scratch.path().string(), python, script), "tokenizer: " + scratch.path().string()));
  // An interpreter without the packages: -S leaves out where they are installed.
  auto const bare = scratch.write("bare", "#!/bin/sh\nexec '" + python + "' -S \"$@\"\n");
  std::filesystem::permissions(bare, std::filesystem::perms::owner_all);
  std::string const missing = error(model, bare.string(), script);
  CHECK(contains(missing, "Python package missing"));
  CHECK(contains(missing, "run scripts/fetch_weights"));
}

TEST_CASE("a chat without a template is refused by name") {
  Scratch const scratch;
  std::filesystem::copy_file(model + "/tokenizer.json", scratch / "tokenizer.json");
  Tokenizer t(scratch.path(), python, script);
  CHECK(contains(error_of([&] { t.apply_chat("x"); }), "has no chat template"));
  scratch.write("tokenizer_config.json", R"({"chat_template": "{{ raise_exception('no user') }}"})");
  Tokenizer raising(scratch.path(), python, script);
  CHECK(contains(error_of([&] { raising.apply_chat("x"); }), "refuses these turns: no user"));
  scratch.write("tokenizer_config.json", R"({"chat_template": "{% for %}"})");
  Tokenizer broken(scratch.path(), python, script);
  CHECK(contains(error_of([&] { broken.apply_chat("x"); }), "chat template of"));
  scratch.write("tokenizer_config.json", R"({"chat_template": "{{ ''.__class__.__mro__[1].__subclasses__() }}"})");
  Tokenizer prying(scratch.path(), python, script);
  CHECK(contains(error_of([&] { prying.apply_chat("x"); }), "unsafe"));
  CHECK(prying.decode(prying.encode("fine")) == "fine");
}

TEST_CASE("a helper that dies, is silent or talks nonsense ends in an error, without signal or zombie") {
  std::chrono::milliseconds const short_time(250);
  CHECK(shell("while read line; do echo \"got $line\"; done").ask("x") == "got x");
  CHECK(contains(error_of([] { shell("exit 3").ask("x"); }), "has ended with status 3"));
  CHECK(error_of([] { shell("exit 3").ask(std::string(10'000'000, 'x')); }) != "");
  CHECK(contains(error_of([] { shell("kill -9 $$").ask("x"); }), "was ended by signal 9"));
  CHECK(contains(error_of([] { shell("read line; exit 0").ask("x"); }), "has ended with status 0"));
  CHECK(contains(error_of([&] { shell("exec sleep 30", short_time).ask("x"); }), "has not answered for 0.25 s"));
  CHECK(contains(error_of([&] { shell("exec sleep 30", short_time).ask(std::string(10'000'000, 'x')); }),
                 "has not answered"));
  CHECK(contains(error_of([] { shell("exec 0<&- 1>&-; exec sleep 30").ask("x"); }), "has closed its connection"));
  CHECK(contains(error_of([] {
                   auto helper = shell("printf 'a\\nb\\n'; read x");
                   helper.receive();
                   helper.ask("x");
                 }),
                 "speaks without being asked"));
  CHECK(contains(error_of([] { HelperProcess({"/bin/sh/none"}); }), "cannot be started"));
  CHECK(contains(error_of([] { HelperProcess({"/dev/null"}); }), "cannot be started"));
  CHECK(contains(error_of([] {
                   auto helper = shell("read line");
                   error_of([&] { helper.ask("x"); });
                   helper.ask("y");
                 }),
                 "cannot be asked again after it failed"));
  CHECK(contains(error_of([] {
                   HelperProcess helper({"/bin/sh", "-c", "tr '\\0' x < /dev/zero 2>&-"}, std::chrono::minutes(1));
                   helper.receive();
                 }),
                 "answers with more than"));
}

TEST_CASE("no helper is left behind, not even one that wants to stay") {
  Scratch const scratch;
  auto const pid_file = scratch / "pid";
  {
    auto stubborn = shell("trap '' TERM HUP INT; echo $$ > '" + pid_file.string() + "'; echo ready; exec sleep 30");
    CHECK(stubborn.receive() == "ready");
  }
  { Tokenizer const one(model, python, script), two(model, python, script); }
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  REQUIRE(pid > 0);
  CHECK(::kill(pid, 0) == -1);
  siginfo_t seen{};  // of a child that has ended and was not waited for
  int const waited = ::waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT);
  CHECK((waited < 0 || seen.si_pid == 0));
}

TEST_CASE("streamed pieces are whole characters and join to the text, for all bytes in any order") {
  std::mt19937 random(7);
  std::vector<std::vector<i32>> sequences = {{0xe2, 0x82, 0xac},
                                             {0xf0, 0x9f, 0x98, 0x80, 'a'},
                                             {0xf0, 0x9f, 0x98, 'a'},
                                             {0xe2, 0x82},
                                             {0xef, 0xbf, 0xbd, 'x', 0xef, 0xbf, 0xbd},
                                             {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                             {0x80, 0xe2, 0x82, 0xe2, 0x82, 0xac, 0xf4, 0x90},
                                             {}};
  std::vector<i32> const likely = {'a', 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xef, 0xbf, 0xbd, 0xff};
  for (int i = 0; i < 2000; ++i) {
    sequences.emplace_back(1 + random() % 20);
    for (i32& id : sequences.back()) id = likely[random() % likely.size()];
  }
  StreamDecoder stream(decode_bytes);  // used again for each text
  i64 wrong = 0;
  for (auto const& ids : sequences) {
    std::string joined;
    for (i32 id : ids) {
      std::string const piece = stream.push(id);
      wrong += utf8_valid_prefix(piece) != piece.size();
      joined += piece;
    }
    joined += stream.finish();
    wrong += joined != decode_bytes(ids);
  }
  CHECK(wrong == 0);
  CHECK(stream.push('a') == "a");
  CHECK(stream.push(0xc3) == "");
  CHECK(stream.push(0xa9) == "\xc3\xa9");
  CHECK(stream.push(0xe2) == "");
  CHECK(stream.finish() == replacement_character);
}

TEST_CASE("streaming keeps the space of words where the first word of a text loses it") {
  std::vector<std::string> const words = {" Once", " upon", "", " a", " time"};
  auto const decode = [&](std::span<i32 const> ids) {
    std::string text;
    for (i32 id : ids) text += words[static_cast<std::size_t>(id)];
    return text.starts_with(' ') ? text.substr(1) : text;
  };
  StreamDecoder stream(decode);
  std::string joined;
  for (i32 id : {0, 1, 2, 3, 4}) joined += stream.push(id) + "|";
  CHECK(joined + stream.finish() == "Once| upon|| a| time|");
}
