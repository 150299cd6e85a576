// SPDX-License-Identifier: MIT
// Drawn bytes for read_safetensors.hpp: libFuzzer calls this, built and run by scripts/fuzz. What escapes is a finding.
#include <cstdint>

#include "read_safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  fuzz::refusal_of_safetensors({reinterpret_cast<char const*>(bytes), size});
  return 0;
}
