// SPDX-License-Identifier: MIT
// The one place that names the test framework's header, so that another version is a change of this file alone.
// Assertions are made on the main thread only: ranks return results or exceptions, are joined, and are then checked.
#pragma once
#include <catch2/catch.hpp>
