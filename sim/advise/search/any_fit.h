// SPDX-License-Identifier: Apache-2.0
// Knows whether a grid holds a layout that fits, whatever its speed: nothing is priced.
#pragma once

#include "sim/advise/search/expand.h"

namespace orrery {

// Exact: whether search() would find a layout. No where Ctrl-C ended it.
bool any_fit(const SearchGround& ground, int threads);

}  // namespace orrery
