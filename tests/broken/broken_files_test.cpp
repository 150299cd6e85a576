// SPDX-License-Identifier: MIT
// Broken and hostile inputs of every kind that is read: each file of this folder is refused with one clear message, the
// one that expected.txt states a part of. And what is too long to keep as a file: every cut of a header, nesting by the
// hundred thousand, files beyond the limits.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "catch.hpp"
#include "fuzz/read_config.hpp"
#include "fuzz/read_flags.hpp"
#include "fuzz/read_index.hpp"
#include "fuzz/read_layout_text.hpp"
#include "fuzz/read_safetensors.hpp"

using namespace dovetail;
using Catch::Matchers::Contains;

namespace {

std::filesystem::path const tests = DOVETAIL_TESTS_DIR;

std::map<std::string, std::function<std::string(std::string_view)>> const readers = {
    {"config", fuzz::refusal_of_config},
    {"flags", fuzz::refusal_of_flags},
    {"index", fuzz::refusal_of_index},
    {"layout", fuzz::refusal_of_layout},
    {"safetensors", fuzz::refusal_of_safetensors},
};

std::string text_of(std::filesystem::path const& path) { return std::string(MappedFile(path).text()); }

/// Files below `folder`, as "config/empty", with their text.
std::map<std::string, std::string> files_of(std::filesystem::path const& folder) {
  std::map<std::string, std::string> files;
  for (auto const& [kind, read] : readers)
    for (auto const& entry : std::filesystem::directory_iterator(folder / kind))
      files[kind + "/" + entry.path().filename().string()] = text_of(entry.path());
  return files;
}

std::map<std::string, std::string> expected() {
  std::map<std::string, std::string> parts;
  std::ifstream lines(tests / "broken" / "expected.txt");
  for (std::string line; std::getline(lines, line);)
    if (std::size_t const colon = line.find(": "); line[0] != '#')
      parts[line.substr(0, colon)] = line.substr(colon + 2);
  return parts;
}

std::string read(std::string const& file, std::string const& text) {
  return readers.at(file.substr(0, file.find('/')))(text);
}

}  // namespace

TEST_CASE("every broken file is refused with the message that is expected of it") {
  auto const files = files_of(tests / "broken");
  auto const messages = expected();
  CHECK(files.size() > 100);
  for (auto const& [file, text] : files) {
    INFO(file);
    REQUIRE(messages.count(file) == 1);
    CHECK(!messages.at(file).empty());
    CHECK_THAT(read(file, text), Contains(messages.at(file)));
  }
  for (auto const& [file, message] : messages) {
    INFO(file << " has a message, but is not there");
    CHECK(files.count(file) == 1);
  }
}

TEST_CASE("every good file of the fuzzers' corpus is accepted") {
  for (auto const& [file, text] : files_of(tests / "fuzz/corpus")) {
    INFO(file);
    CHECK(read(file, text) == "");
  }
}

TEST_CASE("JSON cut at any byte is refused, whoever reads it") {
  for (auto const& [file, text] : files_of(tests / "fuzz/corpus")) {
    bool const json = text.starts_with('{');
    if (!json) continue;
    std::size_t const end = text.find_last_of('}', text.find('\n'));
    for (std::size_t size = 0; size < end; ++size) {
      INFO(file << " cut after " << size << " bytes");
      CHECK(read(file, text.substr(0, size)) != "");
    }
  }
}

TEST_CASE("nesting a hundred thousand deep is refused, whoever reads it") {
  for (char const* opening : {"[", "{\"a\":"}) {
    std::string deep = "{\"weight_map\":";
    for (int i = 0; i < 100'000; ++i) deep += opening;
    for (char const* kind : {"config/", "index/", "safetensors/"}) {
      INFO(kind << opening);
      CHECK_THAT(read(kind, deep), Contains("nested deeper than 64 levels"));
      CHECK(read(kind, deep.substr(14)) != "");
    }
  }
  CHECK(read("layout/", std::string(100'000, '[')) != "");
  CHECK(read("layout/", "pp2[" + std::string(100'000, '|')) != "");
  CHECK(read("flags/", "--model\nm\n--prompt-ids\n" + std::string(100'000, '[')) != "");
}

TEST_CASE("JSON of more values or bytes than a limit is refused") {
  std::string many = "[0";
  for (i64 i = 0; i <= json_value_limit; ++i) many += ",0";
  CHECK_THAT(test::refusal<IoError>([&] { parse_json(many + "]", "many"); }),
             Catch::Equals("many: holds more than 4000000 values, the most that are read"));
  test::Scratch const scratch;
  auto const path = scratch.write("config.json", "{}");
  std::filesystem::resize_file(path, json_size_limit + 1);  // takes no space
  CHECK_THAT(test::refusal<IoError>([&] { load_json(path); }),
             Contains("config.json: has 100000001 bytes; of JSON at most 100000000 are read"));
}

TEST_CASE("a good file with a byte changed is accepted or refused") {
  int accepted = 0, refused = 0;
  for (auto const& [file, text] : files_of(tests / "fuzz/corpus")) {
    bool const plans = file.starts_with("config/") || file.starts_with("layout/");  // milliseconds where accepted
    for (std::size_t at = 0; at < text.size(); at += plans ? 7 : 1)
      for (char const byte : {'\0', '\xff', '"', '9'}) {
        std::string changed = text;
        changed[at] = byte;
        INFO(file << " with byte " << static_cast<int>(byte) << " at " << at);
        ++(read(file, changed).empty() ? accepted : refused);  // an invariant that breaks throws
      }
  }
  CHECK(accepted > 100);
  CHECK(refused > 1000);
}
