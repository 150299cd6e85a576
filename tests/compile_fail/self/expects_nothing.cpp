// SPDX-License-Identifier: MIT
// The harness notices a file that says nothing of what the error must tell.
// verdict: states no
#ifdef FAIL
static_assert(9 % 4 == 0, "heads");
#endif
