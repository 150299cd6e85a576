// SPDX-License-Identifier: MIT
// The harness notices a mistake that the compiler lets pass.
// verdict: it compiles, but must not
// expect: heads
#ifdef FAIL
static_assert(9 % 3 == 0, "heads");
#endif
