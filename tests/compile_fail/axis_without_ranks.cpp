// SPDX-License-Identifier: MIT
// An axis of size 0.
// expect: an axis needs at least one rank
// expect: axis\.hpp
#include <dovetail/mesh/axis.hpp>

#ifdef FAIL
struct Tp : dovetail::Axis<"tp", 0> {};
#else
struct Tp : dovetail::Axis<"tp", 1> {};
#endif

[[maybe_unused]] constexpr dovetail::AxisInfo const* tp = dovetail::axis_of<Tp>;
