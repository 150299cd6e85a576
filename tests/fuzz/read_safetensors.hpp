// SPDX-License-Identifier: MIT
// Any bytes as a safetensors file. What begins with '{' is a header without its length: up to the first line end, with
// the data after it; so that drawn inputs get past the length, and a file of known faults can be read by people.
#pragma once
#include <cmath>
#include <cstring>
#include <dovetail/io/finite.hpp>
#include <dovetail/io/safetensors.hpp>

#include "checked.hpp"

namespace fuzz {

using namespace dovetail;

inline std::vector<std::byte> safetensors_bytes(std::string_view input) {
  std::string whole;
  if (!input.empty() && input[0] == '{') {
    std::size_t const end = (std::min)(input.find('\n'), input.size());
    for (std::size_t i = 0; i < 8; ++i) whole += static_cast<char>(end >> 8 * i & 0xff);
    whole += input.substr(0, end);
    input.remove_prefix((std::min)(end + 1, input.size()));
  }
  whole += input;
  auto const bytes = std::as_bytes(std::span(whole));
  return {bytes.begin(), bytes.end()};  // exactly as long as the file: a sanitizer sees what reads beyond
}

/// Every element alone is what it is in the whole, and a box in the middle too.
template <class T>
void check_slices(TensorEntry const& entry) {
  std::vector<T> whole(static_cast<std::size_t>(entry.elements()));
  std::vector<Range> box, middle;
  i64 inside = 1;
  for (i64 extent : entry.shape) {
    box.push_back({0, extent});
    middle.push_back({extent / 3, extent - extent / 3});
    inside *= middle.back().size();
  }
  read_slice(entry, box, whole.data());
  auto const first = std::find_if(whole.begin(), whole.end(), [](T x) { return !std::isfinite(x); });
  auto const found = find_non_finite(std::span<T const>(whole));
  must(found.value_or(entry.elements()) == first - whole.begin(), "the first number that is none is another one");
  std::vector<T> part(static_cast<std::size_t>(inside));
  read_slice(entry, middle, part.data());
  std::size_t next = 0, compared = 0;
  for (i64 flat = 0; flat < entry.elements() && compared < 256; ++flat) {
    i64 rest = flat;
    bool among = true;
    for (std::size_t d = box.size(); d-- > 0; rest /= entry.shape[d]) {
      i64 const at = rest % entry.shape[d];
      box[d] = {at, at + 1};
      among = among && middle[d].contains(at);
    }
    T alone{};
    read_slice(entry, box, &alone);
    auto const same = [&](T other) { return std::memcmp(&alone, &other, sizeof alone) == 0; };
    must(same(whole[static_cast<std::size_t>(flat)]), "an element alone is not what it is in the whole");
    if (among) must(same(part[next++]), "a box holds another element than the whole");
    ++compared;
  }
}

inline std::string refusal_of_safetensors(std::string_view input) {
  auto const bytes = safetensors_bytes(input);
  try {
    auto const file = SafetensorsFile::from_memory(bytes, "f");
    std::size_t sum = 0;
    for (auto const& tensor : file.tensors()) {
      auto const* const begin = tensor.bytes.data();
      must(begin >= bytes.data() && begin + tensor.bytes.size() <= bytes.data() + bytes.size(), "bytes outside a file");
      must(&file.at(tensor.name) == &tensor, "a tensor is not found by its name");
      sum += tensor.bytes.size();
      try {
        check_slices<double>(tensor);
        if (tensor.element != Element::f64) check_slices<float>(tensor);
      } catch (IoError const& e) {
        must(checked_message(e.what()).find("without loss") != std::string::npos, "a slice cannot be read");
        must(tensor.element != Element::f32 && tensor.element != Element::f16 && tensor.element != Element::bf16 &&
                 tensor.element != Element::f64,
             "a type that converts is refused");
      }
    }
    must(sum <= bytes.size() - 8, "tensors hold more than the file");
    try {
      file.at("no such tensor");
    } catch (IoError const& e) {
      checked_message(e.what());
    }
    return "";
  } catch (IoError const& e) {
    return checked_message(e.what());
  }
}

}  // namespace fuzz
