// SPDX-License-Identifier: MIT
// JSON from files that may be wrong or hostile: errors name the file, line and column; a key given twice is refused
// (parsers keep the last one silently) and so is what has no end: nesting, size, number of values. Configurations, the
// index of a checkpoint and the headers of weight files are read through here; `json_field.hpp` takes typed values out.
#pragma once
#include <algorithm>
#include <dovetail/io/mapped_file.hpp>
#include <dovetail/meta/integer.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail {

/// A JSON value, as nlohmann/json reads it.
using Json = nlohmann::json;

/// Deepest nesting of objects and arrays that is read.
inline constexpr int json_depth_limit = 64;
/// Longest file that `load_json` reads, in bytes: ten times the index of the largest models.
inline constexpr std::size_t json_size_limit = 100'000'000;
/// Most values of one text, objects and lists among them: what a short text can take of memory is bounded by it.
inline constexpr i64 json_value_limit = 4'000'000;

/// "file:line:column" of the character at `offset`.
inline std::string json_position(std::string_view text, std::size_t offset, std::string const& file) {
  std::string_view const before = text.substr(0, (std::min)(offset, text.size()));
  auto const line = 1 + std::count(before.begin(), before.end(), '\n');
  std::size_t const start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return file + ":" + std::to_string(line) + ":" + std::to_string(before.size() - start + 1);
}

/// Parses `text`, which `file` names in errors.
/// @throws IoError where it is not JSON (UTF-8), has a key twice in one object, or is beyond a limit.
inline Json parse_json(std::string_view text, std::string const& file) {
  std::vector<std::set<std::string, std::less<>>> keys;  // of the objects that are open
  i64 values = 0;
  auto const check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    bool const ends = event == Json::parse_event_t::object_end || event == Json::parse_event_t::array_end;
    if (!ends && event != Json::parse_event_t::key && ++values > json_value_limit)
      throw io_error(file, ": holds more than ", json_value_limit, " values, the most that are read");
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= json_depth_limit) throw io_error(file, ": nested deeper than ", json_depth_limit, " levels");
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw io_error(file, ": key ", in_quotes(parsed.get<std::string>()), " is given twice; one must go");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (Json::parse_error const& error) {
    std::string_view what = error.what();  // "[json.exception...] parse error at line 1, column 2: the message"
    std::size_t const colon = what.find(": ");
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
    throw io_error(json_position(text, error.byte ? error.byte - 1 : 0, file), ": not JSON: ", in_quotes(what, 240));
  } catch (Json::exception const& error) {
    throw io_error(file, ": not usable JSON: ", in_quotes(error.what(), 240));
  }
}

/// Reads and parses a JSON file. @throws IoError naming the file, and the place in it.
inline Json load_json(std::filesystem::path const& path) {
  MappedFile const file(path);
  if (file.bytes().empty()) throw io_error(file.path(), ": is empty; JSON is expected");
  if (file.bytes().size() > json_size_limit)
    throw io_error(file.path(), ": has ", file.bytes().size(), " bytes; of JSON at most ", json_size_limit,
                   " are read: is it another file?");
  return parse_json(file.text(), file.path());
}

}  // namespace dovetail
