// SPDX-License-Identifier: MIT
// The header of a safetensors file, believed only after every part of it is checked: length, JSON without duplicates,
// types, shapes without overflow, and ranges that cover the data once without overlap or hole.
// Any bytes at all give either a list of tensors whose ranges lie inside the file, or an IoError; SafetensorsFile asks.
#pragma once
#include <algorithm>
#include <dovetail/io/json_field.hpp>
#include <dovetail/io/tensor_entry.hpp>
#include <map>

namespace dovetail {

/// Longest header that the format allows, in bytes.
inline constexpr i64 safetensors_header_limit = 100'000'000;

/// Most dims of a stored tensor.
inline constexpr std::size_t safetensors_dims_limit = 64;

/// Key of the header that holds strings about the file and names no tensor.
inline constexpr char const* safetensors_metadata_key = "__metadata__";

/// What a header says.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< by name
  std::map<std::string, std::string> metadata;
};

namespace safetensors {

/// A whole number that is not negative. @param field  such as "shape[1]", for the error
inline i64 whole_number(Json const& value, std::string const& field, std::string const& file) {
  i64 const number = json_value<i64>(value, field, file);
  if (number < 0) throw io_error(file, ": field ", in_quotes(field), " is negative: ", number);
  return number;
}

inline StoredType const& type_named(std::string const& name, std::string const& tensor, std::string const& file) {
  for (auto const& type : stored_types)
    if (type.name == name) return type;
  std::string known;
  for (auto const& type : stored_types) known += (known.empty() ? "" : ", ") + std::string(type.name);
  throw io_error(file, ": tensor ", in_quotes(tensor), " has the unknown dtype ", in_quotes(name), "; known: ", known);
}

/// Bytes of a tensor of this shape. @throws IoError where they are more than 2^63 - 1, or not whole.
inline i64 bytes_of_shape(std::vector<i64> const& shape, StoredType const& type, std::string const& tensor,
                          std::string const& file) {
  i64 const most = (std::numeric_limits<i64>::max)();
  i64 bits = type.bits;
  for (i64 extent : shape) {
    if (extent > 0 && bits > most / extent)
      throw io_error(file, ": tensor ", in_quotes(tensor), " has a shape ", shape_text(type.name, shape),
                     " whose size is beyond 64 bits");
    bits *= extent;
  }
  if (bits % 8)
    throw io_error(file, ": tensor ", in_quotes(tensor), ", ", shape_text(type.name, shape),
                   ", does not fill whole bytes");
  return bits / 8;
}

/// One tensor of the header; its range lies inside `data` and has the size that type and shape ask for.
inline TensorEntry read_entry(std::string const& name, Json const& fields, std::span<std::byte const> data,
                              std::string const& file) {
  std::string const where = file + ": tensor " + in_quotes(name);  // stands for the file in errors about a field
  if (!fields.is_object()) throw io_error(where, " must be an object; it is ", json_kind(fields));
  auto const& type = type_named(required<std::string>(fields, "dtype", where), name, file);
  auto const list = [&](char const* key) {
    auto const at = fields.find(key);
    if (at == fields.end()) throw io_error(where, ": field ", in_quotes(key), " is missing");
    if (!at->is_array()) throw io_error(where, ": field ", in_quotes(key), " must be a list; it is ", json_kind(*at));
    if (at->size() > safetensors_dims_limit)
      throw io_error(where, ": field ", in_quotes(key), " has ", at->size(), " numbers; at most ",
                     safetensors_dims_limit, " are read");
    std::vector<i64> numbers;
    for (std::size_t i = 0; i < at->size(); ++i)
      numbers.push_back(whole_number((*at)[i], std::string(key) + "[" + std::to_string(i) + "]", where));
    return numbers;
  };
  std::vector<i64> shape = list("shape");
  std::vector<i64> const range = list("data_offsets");
  if (range.size() != 2)
    throw io_error(where, ": field 'data_offsets' must be two numbers, begin and end; it has ", range.size());
  i64 const begin = range[0], end = range[1], available = static_cast<i64>(data.size());
  if (begin > end) throw io_error(where, " begins at byte ", begin, ", after its end at ", end);
  if (end > available)
    throw io_error(where, " ends at byte ", end, " of the data, but the file holds ", available,
                   ": it is cut short or damaged; get it again");
  i64 const expected = bytes_of_shape(shape, type, name, file);
  if (end - begin != expected)
    throw io_error(where, " has ", end - begin, " bytes, but ", shape_text(type.name, shape), " takes ", expected);
  auto const bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(expected));
  return {name, type.element, std::move(shape), bytes, type.name, file};
}

/// The format asks that the tensors cover the data once, without hole or overlap.
inline void check_coverage(std::vector<TensorEntry> const& tensors, std::span<std::byte const> data,
                           std::string const& file) {
  std::vector<TensorEntry const*> order;
  for (auto const& tensor : tensors) order.push_back(&tensor);
  auto const begin_of = [&](TensorEntry const* t) { return t->bytes.data() - data.data(); };
  auto const end_of = [&](TensorEntry const* t) { return begin_of(t) + static_cast<std::ptrdiff_t>(t->bytes.size()); };
  std::sort(order.begin(), order.end(), [&](auto const* a, auto const* b) {
    return std::pair(begin_of(a), end_of(a)) < std::pair(begin_of(b), end_of(b));
  });
  std::ptrdiff_t covered = 0;
  std::string last = "the start of the data";
  for (auto const* tensor : order) {
    std::string const name = "tensor " + in_quotes(tensor->name);
    if (begin_of(tensor) < covered)
      throw io_error(file, ": ", name, " begins at byte ", begin_of(tensor), " and overlaps ", last, ", which ends at ",
                     covered);
    if (begin_of(tensor) > covered)
      throw io_error(file, ": bytes ", covered, " to ", begin_of(tensor), " between ", last, " and ", name,
                     " belong to no tensor");
    covered = end_of(tensor);
    last = name;
  }
  if (auto const size = static_cast<std::ptrdiff_t>(data.size()); covered != size)
    throw io_error(file, ": bytes ", covered, " to ", size, " after ", last, " belong to no tensor");
}

}  // namespace safetensors

/// Reads and checks the header of a file whose bytes these are. @param file  outlives the entries, which refer to it
/// @throws IoError naming file, tensor and numbers
inline SafetensorsHeader read_safetensors_header(std::span<std::byte const> bytes, std::string const& file) {
  if (bytes.size() < 8)
    throw io_error(file, ": has ", bytes.size(), " bytes; a safetensors file begins with 8 bytes of header length");
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  if (length > static_cast<std::uint64_t>(safetensors_header_limit))
    throw io_error(file, ": states a header of ", length, " bytes; at most ", safetensors_header_limit,
                   " are allowed: not a safetensors file, or damaged");
  if (length > bytes.size() - 8)
    throw io_error(file, ": states a header of ", length, " bytes, but only ", bytes.size() - 8,
                   " follow: the file is cut short; get it again");
  auto const header = bytes.subspan(8, static_cast<std::size_t>(length)), data = bytes.subspan(8 + header.size());
  std::string_view const text(reinterpret_cast<char const*>(header.data()), header.size());
  if (text.empty() || text[0] != '{') throw io_error(file, ": its header does not begin with '{'");
  Json const json = parse_json(text, file);  // an object, or the parser has refused it

  SafetensorsHeader read;
  for (auto const& [name, fields] : json.items()) {  // in the order of names
    if (name != safetensors_metadata_key) {
      read.tensors.push_back(safetensors::read_entry(name, fields, data, file));
      continue;
    }
    if (!fields.is_object()) throw io_error(file, ": ", name, " must be an object; it is ", json_kind(fields));
    for (auto const& [key, value] : fields.items())
      read.metadata[key] = json_value<std::string>(value, std::string(name) + "." + key, file);
  }
  safetensors::check_coverage(read.tensors, data, file);
  return read;
}

}  // namespace dovetail
