// SPDX-License-Identifier: Apache-2.0
// Runs execution traces of all ranks on a cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units/ticks.h"
#include "sim/chakra/trace.h"
#include "sim/engine/cluster.h"
#include "sim/engine/conditions.h"
#include "sim/engine/scenario.h"

namespace orrery {

// Where one rank's step went. compute + exposed + idle is the step.
struct RankReplay {
  Ticks end;            // of its last node
  Ticks compute;        // its compute stream is busy
  Ticks communication;  // bytes move from it or to it
  Ticks exposed;        // of that, with nothing on the compute stream
  Ticks idle;           // it waits: for other ranks, for its host, for the step's end
};

struct ReplayResult {
  Ticks step;
  std::int64_t slowest = 0;  // the rank that computes for longest
  std::vector<RankReplay> ranks;
  std::int64_t nodes = 0, collectives = 0, messages = 0;  // of all ranks; a collective counts once
  std::int64_t modelled = 0;  // compute nodes without a duration, timed by their work
};

// On which network, and what differs from a healthy, empty cluster: the ideal network knows slow
// devices alone.
struct ReplayOptions {
  NetworkMode network = NetworkMode::ideal;
  Conditions conditions = {};
};

// Each rank has one stream for kernels and one for each group that it communicates in, as PyTorch
// gives every communicator its own; host nodes (is_cpu_op) take their time beside them. A node
// starts when all that it depends on has ended and its stream is free; kernels that are ready go in
// the order of the trace. The n-th collective of a group is that of all its ranks, and starts when
// the last of them is there. Messages wait for no receiver. On the ideal network none disturbs
// another, on the flow network all share links (transfers.h).
// Error: dependencies in a circle or on no node, collectives that differ between ranks, a send
// without its receive, ranks that wait for each other, what the cluster cannot do.
ReplayResult replay(const Traces& traces, const Cluster& cluster,
                    const ReplayOptions& options = {});

}  // namespace orrery
