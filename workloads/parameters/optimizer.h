// SPDX-License-Identifier: Apache-2.0
// Knows what optimizers keep and do: bytes of state, traffic and tensor work per parameter.
#pragma once

#include <cstdint>

#include "workloads/layout/layout.h"
#include "workloads/stack/stack.h"

namespace orrery {

struct OptimizerCost {
  double master_bytes = 0;   // fp32 copy of the parameter, or what it adds to a bf16 one
  double state_bytes = 0;    // moments, momenta, preconditioners
  double traffic_bytes = 0;  // read and written by one update, gradient and parameter included
  double flop = 0;           // tensor work of one update
};

// Whether ZeRO-3 shards the fp32 master itself, which gathers cast: no parameter in 16 bits lies
// beside it (FSDP2 mixed precision). Of parameters that are trained whole.
bool shards_master(const Layout& layout, const Stack& stack);

// Per parameter. `hidden`: the short side of the matrices that Muon and Shampoo multiply.
OptimizerCost optimizer_cost(const Layout& layout, const Stack& stack, std::int64_t hidden);

}  // namespace orrery
