// SPDX-License-Identifier: MIT
// An expectation may name the compiler that it holds for; those of others do not count.
// verdict: ok
// expect(another): words that no compiler prints
// expect: heads
#ifdef FAIL
static_assert(9 % 4 == 0, "heads");
#endif
