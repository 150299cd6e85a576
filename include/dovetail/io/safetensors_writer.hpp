// SPDX-License-Identifier: MIT
// Writes tensors to a safetensors file. The file appears whole or not at all: it is written beside its place under
// another name and renamed at the end, and removed where that fails. What is written can be read back by
// SafetensorsFile and by other readers of the format; data begin at a multiple of 8 bytes, wide types first.
#pragma once
#include <bit>
#include <dovetail/io/safetensors_header.hpp>
#include <random>

namespace dovetail {

/// A tensor to be written: bytes little-endian, row-major, kept by the caller until the writer returns.
struct TensorSource {
  std::string name;
  Element element = Element::f32;
  std::vector<i64> shape;
  std::span<std::byte const> bytes;
};

/// A tensor of floats, for `write_safetensors`.
inline TensorSource tensor_source(std::string name, std::vector<i64> shape, std::span<float const> values) {
  static_assert(std::endian::native == std::endian::little, "files are little-endian; give the bytes in that order");
  return {std::move(name), Element::f32, std::move(shape), std::as_bytes(values)};
}

/// Writes `tensors` and `metadata` to `path`, replacing what is there.
/// @throws IoError naming path and tensor: a name twice or reserved, a type the format lacks, bytes that are not the
/// shape's, a disk that is full
inline void write_safetensors(std::filesystem::path const& path, std::span<TensorSource const> tensors,
                              std::map<std::string, std::string> const& metadata = {}) {
  std::string const file = path.string();
  std::vector<TensorSource const*> order;
  for (auto const& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto const* a, auto const* b) {
    return std::pair(-bytes_of(a->element), a->name) < std::pair(-bytes_of(b->element), b->name);
  });

  Json header = Json::object();
  if (!metadata.empty()) header[safetensors_metadata_key] = metadata;
  i64 offset = 0;
  for (auto const* tensor : order) {
    if (tensor->name == safetensors_metadata_key || header.contains(tensor->name))
      throw io_error(file, ": tensor name ", in_quotes(tensor->name), " is reserved or given twice");
    std::string_view const type = stored_name(tensor->element);
    if (type.empty())
      throw io_error(file, ": tensor ", in_quotes(tensor->name), ": the format has no type for ",
                     name_of(tensor->element));
    for (i64 extent : tensor->shape)
      if (extent < 0) throw io_error(file, ": tensor ", in_quotes(tensor->name), " has a negative extent ", extent);
    i64 const expected = safetensors::bytes_of_shape(
        tensor->shape, safetensors::type_named(std::string(type), tensor->name, file), tensor->name, file);
    i64 const size = static_cast<i64>(tensor->bytes.size());
    if (size != expected)
      throw io_error(file, ": tensor ", in_quotes(tensor->name), " has ", size, " bytes, but ",
                     shape_text(type, tensor->shape), " takes ", expected);
    header[tensor->name] = {{"dtype", type}, {"shape", tensor->shape}, {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (Json::exception const&) {
    throw io_error(file, ": a tensor name or a string of the metadata is not valid UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (static_cast<i64>(text.size()) > safetensors_header_limit)
    throw io_error(file, ": the header takes ", text.size(), " bytes; at most ", safetensors_header_limit,
                   " are allowed: write fewer tensors to one file");
  char length[8];
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> 8 * i & 0xff);

  auto partial = path;
  partial += ".partial-" + std::to_string(std::random_device{}());  // two writers of one path do not meet
  errno = 0;
  std::ofstream stream(partial, std::ios::binary | std::ios::trunc);
  stream.write(length, 8);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (auto const* tensor : order)
    stream.write(reinterpret_cast<char const*>(tensor->bytes.data()),
                 static_cast<std::streamsize>(tensor->bytes.size()));
  stream.close();
  std::string failure = stream ? "" : reason(errno);
  std::error_code failed;
  if (failure.empty()) std::filesystem::rename(partial, path, failed);
  if (failed) failure = failed.message();
  if (failure.empty()) return;
  std::filesystem::remove(partial, failed);
  throw io_error(file, ": cannot be written (", failure, ")");
}

}  // namespace dovetail
