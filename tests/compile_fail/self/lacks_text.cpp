// SPDX-License-Identifier: MIT
// The harness notices an error that says something else than expected.
// verdict: the output lacks: placement/split
// expect: placement/split
// expect: heads
#ifdef FAIL
static_assert(9 % 4 == 0, "heads");
#endif
