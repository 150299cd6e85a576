// SPDX-License-Identifier: MIT
// Drawn bytes for read_layout_text.hpp: libFuzzer calls this, built and run by scripts/fuzz. What escapes is a finding.
#include <cstdint>

#include "read_layout_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  fuzz::refusal_of_layout({reinterpret_cast<char const*>(bytes), size});
  return 0;
}
