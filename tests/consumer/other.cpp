// SPDX-License-Identifier: MIT
// The consumer's second unit: headers that define anything but inline would not link.
#include "layout.hpp"

decltype(*plan_here()) plan_in_other_unit() { return dovetail::plan_of<Layout>; }
