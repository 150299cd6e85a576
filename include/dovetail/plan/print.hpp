// SPDX-License-Identifier: MIT
// Plans as text for people: `explain(plan)`, `describe(plan, value)`, `reason(plan, step)`, `sentence(verdict)`. It
// needs std::string, so the umbrella does not include it.
#pragma once
#include <dovetail/plan/explain.hpp>
