// SPDX-License-Identifier: Apache-2.0
// Says how much communication shows where it runs beside compute (docs/physics/exposed.md).
#pragma once

#include "sim/base/units/units.h"

namespace orrery {

// Traffic of buckets under the pass that completes or awaits them (gradients under the last
// backward, parameters under the first forward):
//
//   S = max(T - w * H, T / n)
//   exposed = S + c * (T - S)
//
//   T  traffic: all buckets one after the other, each alone on the network
//   H  hidden: the pass beside it
//   w  window: share of that pass under which traffic hides, 0 to 1
//   n  buckets, at least 1 and not always whole: one of them has no pass left to hide under
//   c  cost: what hidden traffic costs the kernels beside it, over its own time, 0 to 1
//
// Never below T / n, never above T. Rises with T and c, falls with H, w and n.
// Buckets: ZeRO (arXiv 1910.02054) and Megatron-Core's DistributedDataParallel. No paper gives w
// and c; they are measured on whole steps.
Seconds exposed(Seconds traffic, Seconds hidden, double window, double buckets, double cost);

// A pass whose kernels have traffic on a side stream, all of it hidden where it fits (ZeRO-3's
// gathers and reductions, arXiv 1910.02054):
//
//   joined = max(K, D) + c * min(K, D)
//
//   K  compute: the compute stream, with the collectives that it waits for
//   D  side: traffic of the pass beside it
//   c  cost, as above
//
// Never below either, never above their sum. Rises with each argument.
Seconds joined(Seconds compute, Seconds side, double cost);

// What a ring of context parallelism adds to a pass: keys and values of the next block move beside
// the attention of the blocks already there (Ring Attention, arXiv 2310.01889):
//
//   added = max(0, t - (A + E)) + c * min(t, A)
//
//   t  traffic of the pass beside attention
//   A  attention
//   E  shown: context-parallel time that the compute stream waits for already
//   c  cost, as above
//
// Never below 0, never above t. Rises with t and c, falls with E.
Seconds beside_attention(Seconds traffic, Seconds attention, Seconds shown, double cost);

// What traffic that nobody waits for adds to the pass beside it (messages between stages):
//
//   added = c * min(t, P)
//
//   t  traffic beside the pass
//   P  the pass
//   c  cost, as above
//
// Never below 0, never above t or P. Rises with each argument.
Seconds beside_pass(Seconds traffic, Seconds pass, double cost);

}  // namespace orrery
