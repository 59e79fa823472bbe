// SPDX-License-Identifier: Apache-2.0
// Makes clusters that many jobs share, with switches that small jobs can cross.
#pragma once

#include "sim/engine/placement_class.h"
#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

namespace orrery::test {

// A cluster of the catalogue with small switch groups, so that a small job can cross all of them:
// `leaf` accelerators under a leaf, `leaves` of these in a pod, spines above.
struct SharedCluster {
  Case c;
  SlotShape shape;

  SharedCluster(const char* model, const char* cluster, std::int64_t gpus, std::int64_t leaf,
                std::int64_t leaves, double taper, bool rails = true)
      : c(make_case(model, cluster, gpus, "megatron-core")) {
    c.job.global_batch = 768;
    ScaleOut& out = c.cluster.fabric.scale_out;
    if (!rails) {
      out.kind = ScaleOutKind::fat_tree;
      out.rails = 1;
    }
    out.tiers.resize(3, out.tiers.back());
    for (Tier& tier : out.tiers) {
      tier.radix = 0;
      tier.oversubscription.value = taper;
      tier.uplink_bandwidth = {};
    }
    out.tiers[0].reach = leaf;
    out.tiers[1].reach = leaf * leaves;
    out.tiers[2].reach = 0;
    shape = slot_shape(c.cluster.fabric, gpus, c.cluster.gpus_per_host);
  }
  std::int64_t of_host() const { return shape.gpus_per_host; }
};

inline StepResult run(const Case& c, const Layout& layout, NetworkMode network,
                      const ScatteredRanks* ranks) {
  StepContext context = step_context(c.cluster);
  context.network = network;
  context.ranks = ranks;
  return step(context, c.model, c.job, layout, c.stack);
}
inline std::int64_t step_ps(const Case& c, const Layout& layout, NetworkMode network,
                            const ScatteredRanks& ranks = {}) {
  return run(c, layout, network, &ranks).step.ps;
}

inline constexpr NetworkMode both_networks[] = {NetworkMode::ideal, NetworkMode::flow};

}  // namespace orrery::test
