// SPDX-License-Identifier: MIT
// Configurations in JSON: places in parse errors, keys given twice, and typed fields that refuse what is not of their
// kind or does not fit, with field, expected kind and what was found in the text.
#include <dovetail/io/json_field.hpp>

#include "catch.hpp"
#include "scratch.hpp"

using namespace dovetail;
using test::Scratch;

namespace {

template <class Action>
std::string error_of(Action action) {
  return test::refusal<IoError>(action);
}
bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("parse errors name file, line and column") {
  auto const error = [](std::string_view text) { return error_of([&] { parse_json(text, "c.json"); }); };
  CHECK(error("{\"a\": [1, 2.5, \"x\", null, true]}") == "");
  CHECK(error("{\n  \"a\": 1,\n  \"b\" 2\n}").starts_with("c.json:3:7: not JSON: "));
  CHECK(error("{\"a\": }").starts_with("c.json:1:7: not JSON: "));
  CHECK(error("").starts_with("c.json:1:1: not JSON: "));
  CHECK(error("{\"a\": 1").starts_with("c.json:1:"));
  CHECK(contains(error("{} {}"), "not JSON"));
  CHECK(contains(error("{\"a\": \"\xc3\"}"), "not JSON"));
  CHECK(contains(error("[1e999]"), "not usable JSON"));
  CHECK(error("{\"a\": \"" + std::string(100000, 'x')).size() < 400);
  CHECK(error("{\"a\": {\"b\": 1}, \"c\": {\"b\": 1}}") == "");
  CHECK(error("{\"a\": {\"b\": 1, \"b\": 1}}") == "c.json: key 'b' is given twice; one must go");
  CHECK(error(std::string(64, '[') + std::string(64, ']')) == "");
  CHECK(error(std::string(65, '[') + std::string(65, ']')) == "c.json: nested deeper than 64 levels");
  CHECK(contains(error(std::string(1000000, '[')), "nested deeper"));
}

TEST_CASE("text cut at any byte is refused") {
  std::string const text = "{\"hidden_size\": 576, \"eos\": [1, 2], \"name\": \"\\u00e9\", \"tie\": true}";
  REQUIRE(error_of([&] { parse_json(text, "f"); }) == "");
  for (std::size_t size = 0; size < text.size(); ++size) {
    INFO(text.substr(0, size));
    CHECK(error_of([&] { parse_json(std::string_view(text).substr(0, size), "f"); }) != "");
  }
}

TEST_CASE("files of JSON") {
  Scratch const scratch;
  CHECK(load_json(scratch.write("a.json", "{\"x\": 3}"))["x"] == 3);
  CHECK(contains(error_of([&] { load_json(scratch / "none.json"); }), "no such file"));
  CHECK(contains(error_of([&] { load_json(scratch.path()); }), "is a directory"));
  CHECK(contains(error_of([&] { load_json(scratch.write("e.json", "")); }), "is empty"));
  CHECK(contains(error_of([&] { load_json(scratch.write("b.json", "[1,")); }), "b.json:1:"));
}

TEST_CASE("fields have the kind that is asked for, or are refused") {
  Json const json = parse_json(
      R"({"size": 576, "negative": -3, "large": 18446744073709551615, "decimal": 1.0, "eps": 1e-5, "text": "1",
          "yes": true, "none": null, "ids": [1, 2], "mixed": [1, "2"], "object": {}, "three": 3000000000})",
      "c.json");
  CHECK(required<i64>(json, "size", "c.json") == 576);
  CHECK(required<i32>(json, "negative", "c.json") == -3);
  CHECK(required<std::uint64_t>(json, "large", "c.json") == ~std::uint64_t{0});
  CHECK(required<double>(json, "eps", "c.json") == 1e-5);
  CHECK(required<double>(json, "size", "c.json") == 576);
  CHECK(required<std::string>(json, "text", "c.json") == "1");
  CHECK(required<bool>(json, "yes", "c.json"));
  CHECK(required<std::vector<i64>>(json, "ids", "c.json") == std::vector<i64>{1, 2});
  CHECK(!optional<i64>(json, "none", "c.json"));
  CHECK(!optional<i64>(json, "absent", "c.json"));
  CHECK(optional<i64>(json, "absent", "c.json", 7) == 7);
  CHECK(optional<i64>(json, "size", "c.json", 7) == 576);
  CHECK(required_count(json, "size", "c.json") == 576);
  CHECK(one_or_more<i64>(json, "ids", "c.json") == std::vector<i64>{1, 2});
  CHECK(one_or_more<i64>(json, "size", "c.json") == std::vector<i64>{576});
  CHECK(one_or_more<i64>(json, "absent", "c.json").empty());

  auto const refused = [&](auto kind, char const* key) {
    return error_of([&] { required<decltype(kind)>(json, key, "c.json"); });
  };
  CHECK(refused(i64{}, "absent") == "c.json: field 'absent' is missing");
  CHECK(refused(i64{}, "none") == "c.json: field 'none' is missing");
  std::string const whole = "a whole number from -9223372036854775808 to 9223372036854775807";
  CHECK(refused(i64{}, "decimal") == "c.json: field 'decimal' must be " + whole + "; it is the decimal number 1.0");
  CHECK(refused(i64{}, "text") == "c.json: field 'text' must be " + whole + "; it is the string '1'");
  CHECK(refused(i64{}, "large") == "c.json: field 'large' must be " + whole + "; it is 18446744073709551615");
  CHECK(contains(refused(i32{}, "three"), "to 2147483647; it is 3000000000"));
  CHECK(contains(refused(i64{}, "yes"), "it is true"));
  CHECK(contains(refused(i64{}, "ids"), "it is a list of 2"));
  CHECK(contains(refused(std::uint64_t{}, "negative"), "it is -3"));
  CHECK(refused(bool{}, "size") == "c.json: field 'size' must be true or false; it is 576");
  CHECK(contains(refused(double{}, "text"), "must be a number; it is the string '1'"));
  CHECK(contains(refused(std::string{}, "object"), "must be a string; it is an object"));
  CHECK(contains(refused(std::vector<i64>{}, "size"), "must be a list; it is 576"));
  CHECK(contains(refused(std::vector<i64>{}, "mixed"), "field 'mixed[1]' must be a whole number"));
  CHECK(contains(error_of([&] { required_count(json, "negative", "c.json"); }), "must be at least 1"));
  CHECK(contains(error_of([&] { required<i64>(json["ids"], "x", "c.json"); }), "an object is expected"));
}
