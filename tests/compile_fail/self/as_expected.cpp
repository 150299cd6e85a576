// SPDX-License-Identifier: MIT
// The harness accepts a file whose error has all the expected words.
// verdict: ok
// expect: heads must be divisible
// expect: [Ll]egal sizes
#ifdef FAIL
static_assert(9 % 4 == 0, "heads must be divisible; legal sizes: 1, 3, 9");
#else
static_assert(9 % 3 == 0, "heads must be divisible; legal sizes: 1, 3, 9");
#endif
