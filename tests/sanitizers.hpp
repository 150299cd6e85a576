// SPDX-License-Identifier: MIT
// Whether this program was built with a sanitizer: some tests give slow programs more time, or leave allocation to it.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DOVETAIL_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define DOVETAIL_TEST_SANITIZED 1
#endif
#endif

namespace test {

#ifdef DOVETAIL_TEST_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace test
