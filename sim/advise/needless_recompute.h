// Knows which layouts run again what they need not, so that a search need not look at them.
#pragma once

#include "sim/advise/expand.h"

namespace orrery {

// Whether another choice of the family's, earlier in the grid, runs less again and fits in memory
// with every sharding and bucket with which layouts at this point fit: these are no faster then,
// and of the same shape. The point says all but ZeRO stage, bucket and offload, which are its
// first.
bool recomputes_needlessly(const SearchGround& ground, const Place& place);

}  // namespace orrery
