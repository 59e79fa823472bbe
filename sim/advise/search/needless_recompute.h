// SPDX-License-Identifier: Apache-2.0
// Knows which layouts run again what they need not, so that a search need not look at them.
#pragma once

#include "sim/advise/search/expand.h"

namespace orrery {

// Whether one choice runs all of another's again, and more of the same kind.
bool repeats_more(const RecomputeOption& more, const RecomputeOption& less);
// Whether what else a step takes is alike: recompute may change how kernels are launched, and what
// hides the exchange of tokens.
bool runs_alike(const Stack& stack, const Layout& a, const Layout& b);

// Whether another choice of the family's, earlier in the grid, runs less again and fits in memory
// with every sharding and bucket with which layouts at this point fit: these are no faster then,
// and of the same shape. The point says all but ZeRO stage, bucket and offload, which are its
// first.
bool recomputes_needlessly(const SearchGround& ground, const Place& place);

}  // namespace orrery
