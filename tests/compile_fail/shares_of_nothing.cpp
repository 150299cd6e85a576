// SPDX-License-Identifier: MIT
// Shares that give no rank anything.
// expect: shares are not negative, and not all zero
// expect: Shares
#include <dovetail/mesh/axis.hpp>

#ifdef FAIL
using Uneven = dovetail::Shares<0, 0>;
#else
using Uneven = dovetail::Shares<0, 1>;
#endif

static_assert(sizeof(Uneven::weights) == 2 * sizeof(dovetail::i64));
