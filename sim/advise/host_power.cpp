// Takes a host's rated power at the load that bills use.
#include "sim/advise/host_power.h"

#include "hw_models/economics.h"

namespace orrery {

Watts host_power_per_accelerator(const Cluster& cluster) {
  static const double load = load_economics("standard").host_load.get();
  if (!cluster.host.power.known()) return Watts(0);
  return cluster.host.power.get() * (load / static_cast<double>(cluster.gpus_per_host));
}

}  // namespace orrery
