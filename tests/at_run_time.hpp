// SPDX-License-Identifier: MIT
// Bodies of tests are constexpr functions that run twice: in a static_assert, and in a test case. An argument that
// passes through here keeps a compiler from running the second, larger one too.
#pragma once

namespace test {

template <class T>
T at_run_time(T value) {
  T volatile kept = value;
  return kept;
}

}  // namespace test
