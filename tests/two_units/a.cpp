// SPDX-License-Identifier: MIT
// First unit: includes the library, and compares its identities with those of the second.
#include "catch.hpp"
#include "two_units/units.hpp"

Identities identities_in_a() { return {dovetail::dim_of<dovetail::heads>, dovetail::axis_of<Tp>}; }

TEST_CASE("a type has one identity in a program of two translation units") {
  CHECK(identities_in_a() == identities_in_b());
  CHECK(identities_in_a().axis->size == 3);
}
