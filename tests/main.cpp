// SPDX-License-Identifier: MIT
// The main function of every test program: Catch2's own, compiled once for all of them.
#define CATCH_CONFIG_MAIN
#include "catch.hpp"
