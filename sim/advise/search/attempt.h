// SPDX-License-Identifier: Apache-2.0
// Knows how to find a good layout of a family quickly, without proof.
#pragma once

#include <optional>

#include "sim/advise/search/expand.h"

namespace orrery {

// The fastest of a few layouts of a family that fit: the fewest and the most chunks, each with the
// first recompute choice that makes it fit. nullopt when none of them does.
std::optional<Found> attempt(const SearchGround& ground, const Place& family);

}  // namespace orrery
