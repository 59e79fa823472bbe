// SPDX-License-Identifier: Apache-2.0
// Knows what a fabric's routing does to traffic: how many bytes meet on which links, and at what
// rate collectives and single flows get through.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/engine/traffic/pattern.h"
#include "topologies/fabric.h"

namespace orrery {

struct TrafficOptions {
  std::int64_t accelerators = 0;  // whole domains of them send
  TrafficPattern pattern = TrafficPattern::crossing_ring;
  std::int64_t group = 0;  // accelerators in an all-to-all; 0: 64, in whole domains, at least two
  Routing routing = Routing::adaptive;
  // ecmp: queue pairs of one flow. A flow has one on every port of its NIC at least; more come in
  // whole sets of ports.
  std::int64_t paths_per_flow = 1;
  std::uint64_t seed = 1;
  // Independent draws: of the hash, and of the shift in all_to_all_all. 0: as many, from 4 to 16,
  // as a few seconds allow (2 where flows are many millions).
  std::int64_t rounds = 0;
  // NICs of one domain stand for those of all, and flows under one leaf are not routed. Off: every
  // flow on every link, for the law that both give the same figures.
  bool folded = true;
};

// A mean over rounds and its standard error; none for one round.
struct SampledShare {
  double value = 0, error = 0;
};

// The links of one layer, in both directions. Loads are what a link would have to carry if every
// NIC sent at its rate after efficiency, over the link's own rate after efficiency: above 1 it
// slows its flows. Links without traffic count.
struct LayerLoad {
  int layer = 0;  // 1 NIC, 2 leaf-spine, 3 spine-core or between groups, 4 between sites
  double links = 0;
  double mean = 0, most = 0;         // of all links; most: mean over rounds of the worst
  std::array<double, 11> deciles{};  // least, 10%, ..., most of all links and rounds
  double idle = 0, overloaded = 0;   // links without traffic, links above 1 (by over 1e-6)
};

// What hashing.h says without simulation, of the worse of leaf-spine and spine-core; shares of the
// NIC's line rate. Low and high bound the mean of flows, max-min fairness lies between: about,
// since the form takes whole flows of a leaf. Low is absent where traffic passes cores, both where
// links up are no whole number of times as fast as NICs or rounds differ in what crosses.
struct ClosedForm {
  double synchronised = 0;
  std::optional<double> mean_low, mean_high;
};

// Shares are of the line rate of an accelerator's NICs.
struct TrafficStudy {
  TrafficOptions options;    // as they were used: group, rounds and paths_per_flow set
  double efficiency = 0;     // the fabric's: packet headers and all that no single flow escapes.
                             // Where nothing is hashed or tapered, all shares are this
  std::int64_t sending = 0;  // accelerators
  double peers = 1;          // of each at once
  std::array<double, 5> crossing{};  // share of flows whose highest layer this is, as LayerLoad's
  SampledShare synchronised;         // the flow with the worst link decides: what a collective gets
  // Over accelerators, if nothing synchronises: max-min fair rates of the hashed parts of flows.
  // All parts have equal bytes, none is faster than keeps its NIC busy. Where flows are too many
  // for one solve, the first `mean_of` accelerators send among themselves; absent where other links
  // would then be passed than all of them pass.
  std::optional<SampledShare> mean;
  std::int64_t mean_of = 0;
  ClosedForm closed;
  std::vector<LayerLoad> layers;
};

// Error when the fabric has no switched scale-out network, fewer than two domains are asked for, or
// the group is not two or more whole domains that fit.
TrafficStudy traffic_study(const Fabric& fabric, const TrafficOptions& options);
// The same for several numbers of queue pairs, ascending: flows are hashed once.
std::vector<TrafficStudy> traffic_studies(const Fabric& fabric, TrafficOptions options,
                                          const std::vector<std::int64_t>& paths_per_flow);

}  // namespace orrery
