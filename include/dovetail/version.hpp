// SPDX-License-Identifier: MIT
// The version of these headers, as text and as a number for `#if`. This is its one home: the build reads it from here,
// so a package and the headers inside it cannot disagree.
#pragma once

#define DOVETAIL_VERSION "0.1.0"
/// 10000 major + 100 minor + patch.
#define DOVETAIL_VERSION_NUMBER 100
