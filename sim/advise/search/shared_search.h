// SPDX-License-Identifier: Apache-2.0
// Knows how processes share one search.
#pragma once

#include "sim/advise/search/search.h"

namespace orrery {

// The families of the grid are cut into at most 256 slices by a hash, whatever the number of
// processes; each slice is a task. All begin with the same first attempts at all families, so that
// a slice without good layouts is ruled out as in one search. No layout of a slice is better than
// the last that its search kept, and so none of the grid is better than the last of the joined
// result: its layouts and their order are those of search(). The counts of layouts that were run
// and ruled out differ from one search, since slices do not know what others found meanwhile; they
// are the same for any number of processes. Slices that others search leave no trace.
SearchResult shared_search(const SearchGround& ground, const SearchOptions& options);

}  // namespace orrery
