// SPDX-License-Identifier: MIT
// Second unit: includes the library once more; that the two link at all is half of the test.
#include "two_units/units.hpp"

Identities identities_in_b() { return {dovetail::dim_of<dovetail::heads>, dovetail::axis_of<Tp>}; }
