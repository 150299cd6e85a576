// SPDX-License-Identifier: MIT
// What both translation units of the two_units test say about the same types: the address that is a type's identity in
// a plan must be one address in a whole program, else plans made in two files would not know each other's names.
#pragma once
#include "every_header.hpp"  // made by tests/CMakeLists.txt

struct Tp : dovetail::Axis<"tp", 3> {};

struct Identities {
  dovetail::DimInfo const* dim;
  dovetail::AxisInfo const* axis;
  friend bool operator==(Identities const&, Identities const&) = default;
};

Identities identities_in_a();
Identities identities_in_b();
