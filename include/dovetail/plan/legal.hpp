// SPDX-License-Identifier: MIT
// What would be legal where placement/split is broken: the numbers that compile errors (plan/refuse.hpp) and sentences
// (plan/sentence.hpp) name, so that both name the same.
#pragma once
#include <dovetail/meta/verdict.hpp>

namespace dovetail {

/// True where there are units enough, but a stated share gives a rank none of them.
constexpr bool share_too_small(Verdict const& v) { return v.ranks <= v.units; }

/// Ranks of the axes outside the refused one that split the same dim; 1 where it alone does.
constexpr i64 outer_ranks(Verdict const& v) { return v.ranks / v.axis->holders(); }

/// Most ranks with a share that the refused axis may have: each must hold a unit of what the axes outside it leave.
/// @pre not share_too_small(v)
constexpr i64 most_ranks(Verdict const& v) { return v.left; }

}  // namespace dovetail
