// SPDX-License-Identifier: Apache-2.0
// Knows how long a collective takes alone on a fabric, and which algorithm and protocol it runs.
#pragma once

#include <optional>

#include "sim/base/names.h"
#include "sim/base/token_exchange.h"
#include "sim/base/units/units.h"
#include "sim/engine/collective_costs.h"
#include "sim/engine/placement.h"
#include "topologies/fabric.h"

namespace orrery {

// `bytes` is the size as NCCL counts it: all_reduce, broadcast, send: the buffer; all_gather: the
// gathered result; reduce_scatter: the input; all_to_all: what one rank sends in all (its own part
// included).
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupShape group;
  Bytes bytes;
  CollectiveLibrary library = CollectiveLibrary::nccl;
  TokenExchange exchange;  // all_to_all of a library that knows tokens
  double skew = 1;         // all_to_all: bytes that the busiest rank receives over the mean
  bool operator==(const Collective&) const = default;
};

struct CollectiveTime {
  Seconds time;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  Bytes scale_up_bytes, scale_out_bytes;  // sent by one rank over each
  // The part of `time` in which bytes move, at the rates that library and NICs reach alone; the
  // rest is latency. What shares or breaks the network stretches it (flow_network).
  Seconds transfer;
  // SMs that its kernel keeps from others all the while; 0: not known. No price has it: what hidden
  // traffic costs the compute beside it, SMs with the rest, is the stack's overlap_cost.
  double sms = 0;
};

// The least of the alpha-beta costs over algorithms and protocols that fabric, library and group
// allow (NCCL's choice). A group with q ranks in a domain has q NICs; `sharing` groups divide them.
// Monotone in bandwidth and latency with the choice held fixed (law 7). A group of one takes no
// time. Error when the group leaves its domain and the fabric has no scale-out network.
CollectiveTime collective_time(const Collective& collective, const Fabric& fabric,
                               const CollectiveCosts& costs);

// The same with the choice made by the caller; nullopt where library, fabric or group rule it out
// (nvls without in-network reduction, tree inside one domain). Protocol limits are not applied.
std::optional<CollectiveTime> collective_time_with(const Collective& collective,
                                                   const Fabric& fabric,
                                                   const CollectiveCosts& costs,
                                                   CollectiveAlgorithm algorithm,
                                                   CollectiveProtocol protocol);

}  // namespace orrery
