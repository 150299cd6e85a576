// SPDX-License-Identifier: MIT
// The harness notices that one mistake is reported twice.
// verdict: 2 lines with `error:`
// expect: heads
#ifdef FAIL
static_assert(9 % 4 == 0, "heads");
static_assert(9 % 2 == 0, "heads");
#endif
