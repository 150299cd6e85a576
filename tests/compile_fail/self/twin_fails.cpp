// SPDX-License-Identifier: MIT
// The harness notices a file that fails for a reason other than its one changed line.
// verdict: the twin does not compile
// expect: heads
static_assert(9 % 4 == 0, "heads");
