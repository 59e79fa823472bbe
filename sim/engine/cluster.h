// SPDX-License-Identifier: Apache-2.0
// Knows a cluster: an accelerator, the fabric that joins it, hosts, and how many there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/engine/collective_costs.h"
#include "topologies/fabric.h"

namespace orrery {

// A site's effect on sustained clocks: power cap and cooling (DESIGN 3; effects.md 10).
struct Site {
  Sourced<double> clock_factor;  // sustained clock over the chip's own; unknown sites: a range
  Sourced<double> power_usage_effectiveness;
  Sourced<DollarsPerSecond> electricity_per_watt;  // USD per second and watt: price / 3.6e6 per kWh
};

struct Cluster {
  // Compiled once: it is long, and units all over the program hold one.
  Cluster();
  Cluster(const Cluster&);
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(const Cluster&);
  Cluster& operator=(Cluster&&) noexcept;
  ~Cluster();

  std::string name, title;
  std::vector<std::string> changes = {};  // sentences: how it differs from its entry, if it does
  Device device;
  Calibration calibration;
  CollectiveCosts collective_costs;
  Fabric fabric;
  Host host;
  std::int64_t gpus_per_host = 8;
  std::int64_t gpus = 0;  // accelerators in use
  Site site;
  // Share of the hosts' rated power that they draw while a job runs: that of the economics
  // "standard" as read_cluster leaves it. Predictions of steps do not depend on it.
  Sourced<double> host_load;
};

// `name`: sim/engine/catalog/clusters/<name>.json or a path to such a file. `gpus`: any positive
// count; a last host or domain may be part full. Errors name what is unknown.
// Overrides are merged over the accelerator's, the fabric's and the host's own entries (a sourced
// value replaces the old one whole). A changed accelerator keeps its calibration, moved to the
// clocks that its new peaks and limit sustain; what no answer depends on is refused. File: {"name",
// "title", "accelerator", "fabric", "host", "gpus_per_host", "site": {...},
//        "overrides": {"accelerator": {...}, "fabric": {...}, "host": {...}}}
Cluster load_cluster(const std::string& name, std::int64_t gpus);
// The same cluster with so many accelerators in use, refused where load_cluster would.
Cluster with_count(Cluster cluster, std::int64_t gpus);
Cluster read_cluster(const JsonValue& file, std::int64_t gpus);
std::vector<std::string> cluster_names();

// The wiring alone, by name or path, and the names in topologies/catalog.
Fabric load_fabric(const std::string& name);
std::vector<std::string> fabric_names();

// Calls visit(path, sourced) on every value that the cluster adds to its parts.
template <class SiteRef, class Visit>
void visit_site_values(SiteRef& s, Visit&& visit) {
  visit("site.clock_factor", s.clock_factor);
  visit("site.power_usage_effectiveness", s.power_usage_effectiveness);
  visit("site.electricity_per_watt", s.electricity_per_watt);
}

}  // namespace orrery
