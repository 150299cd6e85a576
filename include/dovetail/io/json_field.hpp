// SPDX-License-Identifier: MIT
// Typed values out of JSON objects: `required<i64>(config, "hidden_size", file)`. Nothing is converted silently: 1.0
// or "1" is not a whole number, 1 is not a truth value, a number beyond the type or the stated range is refused; null
// counts as absent. Every error names file, field, what is expected and what was found. Model configurations are read
// with these.
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
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
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

/// Numbers that a field may have, both ends among them.
template <class T>
struct FieldRange {
  T least, most;

  std::string words() const {
    std::ostringstream text;
    text << (std::integral<T> ? "" : "a number of ") << "at least " << least << " and at most " << most
         << (std::integral<T> ? ", and whole" : "");
    return text.str();
  }
};

/// `value` as a number of type T; nothing where it is none, or beyond the type.
template <class T>
std::optional<T> json_number(Json const& value) {
  if constexpr (std::integral<T>) {
    bool const fits = value.is_number_unsigned()  ? std::in_range<T>(value.get<std::uint64_t>())
                      : value.is_number_integer() ? std::in_range<T>(value.get<std::int64_t>())
                                                  : false;
    if (!fits) return std::nullopt;
  } else {
    using Limits = std::numeric_limits<T>;
    double const wide = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (!(wide >= double{Limits::lowest()} && wide <= double{(Limits::max)()})) return std::nullopt;
  }
  return value.get<T>();
}

/// `value` as a number of the range. @param field, file  for the error's text
template <class T>
T json_value(Json const& value, std::string const& field, std::string const& file, FieldRange<T> const& range) {
  auto const number = json_number<T>(value);
  if (!number || !(*number >= range.least && *number <= range.most))
    throw io_error(file, ": field ", in_quotes(field), " must be ", range.words(), "; it is ", json_kind(value));
  return *number;
}

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
    auto const number = json_number<T>(value);
    if (!number)
      throw refuse("a whole number from " + std::to_string((Limits::min)()) + " to " + std::to_string((Limits::max)()));
    return *number;
  } else if constexpr (std::floating_point<T>) {
    if (!value.is_number()) throw refuse("a number");
    auto const number = json_number<T>(value);
    if (!number) throw refuse("a number within the range of its type");
    return *number;
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

/// The field `key` of `object`; nullptr where it is absent or null. @throws IoError where `object` is none
inline Json const* present(Json const& object, std::string const& key, std::string const& file) {
  if (!object.is_object()) throw io_error(file, ": an object is expected; it is ", json_kind(object));
  auto const at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

/// The field `key` of `object` as T, or nothing where it is absent or null.
/// @param range  where given, one FieldRange: what the numbers may be
template <class T, class... Range>
std::optional<T> optional(Json const& object, std::string const& key, std::string const& file,
                          FieldRange<Range> const&... range) {
  Json const* const value = present(object, key, file);
  if (!value) return std::nullopt;
  return json_value<T>(*value, key, file, range...);
}

/// The field `key` of `object`, or `fallback` where it is absent or null.
template <class T, class... Range>
T optional(Json const& object, std::string const& key, std::string const& file, T fallback,
           FieldRange<Range> const&... range) {
  auto found = optional<T>(object, key, file, range...);
  return found ? *std::move(found) : std::move(fallback);
}

/// The field `key` of `object`. @throws IoError where it is absent or null, not a T, or outside the range
template <class T, class... Range>
T required(Json const& object, std::string const& key, std::string const& file, FieldRange<Range> const&... range) {
  auto found = optional<T>(object, key, file, range...);
  if (!found) throw io_error(file, ": field ", in_quotes(key), " is missing");
  return *std::move(found);
}

/// A size or a count. @throws IoError as `required` does, or where it is not from 1 to `most`
inline i64 required_count(Json const& object, std::string const& key, std::string const& file,
                          i64 most = i64{1} << 40) {
  return required<i64>(object, key, file, FieldRange<i64>{1, most});
}

/// An object in a field; nullptr where it is absent or null.
inline Json const* optional_object(Json const& object, std::string const& key, std::string const& file) {
  Json const* const value = present(object, key, file);
  if (value && !value->is_object())
    throw io_error(file, ": field ", in_quotes(key), " must be an object, or null; it is ", json_kind(*value));
  return value;
}

/// A field that holds one T or a list of T (end tokens); empty where it is absent or null.
template <class T, class... Range>
std::vector<T> one_or_more(Json const& object, std::string const& key, std::string const& file,
                           FieldRange<Range> const&... range) {
  std::vector<T> all;
  Json const* const value = present(object, key, file);
  if (value && value->is_array())
    for (std::size_t i = 0; i < value->size(); ++i)
      all.push_back(json_value<T>((*value)[i], key + "[" + std::to_string(i) + "]", file, range...));
  else if (value) all.push_back(json_value<T>(*value, key, file, range...));
  return all;
}

}  // namespace dovetail
