// SPDX-License-Identifier: MIT
// Typed values out of JSON objects: `required<i64>(config, "hidden_size", file)`. Nothing is converted silently: 1.0
// or "1" is not a whole number, 1 is not a truth value, a number beyond the type is refused; null counts as absent.
// Every error names file, field, what is expected and what was found. Model configurations are read with these.
#pragma once
#include <concepts>
#include <dovetail/io/json_file.hpp>
#include <dovetail/meta/integer.hpp>
#include <limits>
#include <optional>

namespace dovetail {

/// What a JSON value is, in words, with the value itself where it is short.
inline std::string json_kind(Json const& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  std::string const text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (value.is_string()) return "the string " + in_quotes(text.substr(1, text.size() - 2), 60);
  if (value.is_number_float()) return "the decimal number " + text;
  return text;
}

/// True for the lists that fields can be read as.
template <class T>
struct JsonList : std::false_type {};
template <class Item>
struct JsonList<std::vector<Item>> : std::true_type {
  using item = Item;
};

/// `value` as T: bool, an integer type, a floating type, std::string, or a std::vector of one of them.
/// @param field, file  for the error's text
template <class T>
T json_value(Json const& value, std::string const& field, std::string const& file) {
  auto const refuse = [&](std::string_view expected) -> IoError {
    return io_error(file, ": field ", in_quotes(field), " must be ", expected, "; it is ", json_kind(value));
  };
  if constexpr (std::same_as<T, bool>) {
    if (!value.is_boolean()) throw refuse("true or false");
    return value.get<bool>();
  } else if constexpr (std::integral<T>) {
    using Limits = std::numeric_limits<T>;
    bool const fits = value.is_number_unsigned()  ? std::in_range<T>(value.get<std::uint64_t>())
                      : value.is_number_integer() ? std::in_range<T>(value.get<std::int64_t>())
                                                  : false;
    if (!fits)
      throw refuse("a whole number from " + std::to_string((Limits::min)()) + " to " + std::to_string((Limits::max)()));
    return value.get<T>();
  } else if constexpr (std::floating_point<T>) {
    if (!value.is_number()) throw refuse("a number");
    if (double const wide = value.get<double>();
        !(wide >= double{std::numeric_limits<T>::lowest()} && wide <= double{(std::numeric_limits<T>::max)()}))
      throw refuse("a number within the range of its type");
    return value.get<T>();
  } else if constexpr (JsonList<T>::value) {
    if (!value.is_array()) throw refuse("a list");
    T list;
    for (std::size_t i = 0; i < value.size(); ++i)
      list.push_back(json_value<typename JsonList<T>::item>(value[i], field + "[" + std::to_string(i) + "]", file));
    return list;
  } else {
    static_assert(std::same_as<T, std::string>, "json_value reads bool, numbers, std::string and std::vector of them");
    if (!value.is_string()) throw refuse("a string");
    return value.get<std::string>();
  }
}

/// The field `key` of `object`, or nothing where it is absent or null.
template <class T>
std::optional<T> optional(Json const& object, std::string const& key, std::string const& file) {
  if (!object.is_object()) throw io_error(file, ": an object is expected; it is ", json_kind(object));
  auto const at = object.find(key);
  if (at == object.end() || at->is_null()) return std::nullopt;
  return json_value<T>(*at, key, file);
}

/// The field `key` of `object`, or `fallback` where it is absent or null.
template <class T>
T optional(Json const& object, std::string const& key, std::string const& file, T fallback) {
  auto found = optional<T>(object, key, file);
  return found ? *std::move(found) : fallback;
}

/// The field `key` of `object`. @throws IoError where it is absent or null, or not a T.
template <class T>
T required(Json const& object, std::string const& key, std::string const& file) {
  auto found = optional<T>(object, key, file);
  if (!found) throw io_error(file, ": field ", in_quotes(key), " is missing");
  return *std::move(found);
}

/// A size or a count: a whole number from 1 to 2^40. @throws IoError as `required` does, or where out of that range.
inline i64 required_count(Json const& object, std::string const& key, std::string const& file) {
  i64 const count = required<i64>(object, key, file);
  if (count < 1 || count > i64{1} << 40)
    throw io_error(file, ": field ", in_quotes(key), " must be at least 1 and at most 2^40; it is ", count);
  return count;
}

/// A field that holds one T or a list of T (end tokens); empty where it is absent or null.
template <class T>
std::vector<T> one_or_more(Json const& object, std::string const& key, std::string const& file) {
  if (object.is_object() && object.contains(key) && object[key].is_array())
    return required<std::vector<T>>(object, key, file);
  auto found = optional<T>(object, key, file);
  return found ? std::vector<T>{*std::move(found)} : std::vector<T>{};
}

}  // namespace dovetail
