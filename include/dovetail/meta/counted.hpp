// SPDX-License-Identifier: MIT
// Numbers with their noun, for errors and reports of every layer: "3 ranks", "1 rank".
#pragma once
#include <dovetail/meta/integer.hpp>
#include <string>

namespace dovetail {

/// "3 ranks", "1 rank".
inline std::string counted(i64 n, char const* noun) { return std::to_string(n) + ' ' + noun + (n == 1 ? "" : "s"); }

}  // namespace dovetail
