// SPDX-License-Identifier: Apache-2.0
// Takes a host's rated power at the load that bills use.
#include "sim/outcome/host_power.h"

#include <cmath>

namespace orrery {

Watts host_power_per_accelerator(const Cluster& cluster) {
  if (!host_power_known(cluster)) return Watts(0);
  const double load = cluster.host_load.get() / static_cast<double>(cluster.gpus_per_host);
  return cluster.host.power.get() * load;
}

std::int64_t milliwatts_with_host(Watts accelerator, const Cluster& cluster) {
  return std::llround(1e3 * (accelerator + host_power_per_accelerator(cluster)).si());
}

bool host_power_known(const Cluster& cluster) {
  return cluster.host.power.known() && cluster.host_load.known();
}

}  // namespace orrery
