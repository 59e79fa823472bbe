// SPDX-License-Identifier: Apache-2.0
// Fills a cluster of shared accelerators with tasks that do not end, until more is asked for than
// there is: how much of it a rule hands out.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/cluster_job/shared_task.h"

namespace orrery {

// Each task goes to the host that has room and the best score; of equals to the first in an order
// of hosts that is drawn once a run. Scores are whole numbers from 0 to 100, as Kubernetes has
// them, and those of Weng et al., Beware of Fragmentation, ATC 2023, as their simulator scores.
//   random: any. best-fit: least processors and accelerators left, equally weighed.
//   dot-product: the least product of what is free and what is asked (Tetris).
//   packing: accelerators that are in use, then hosts, then empty ones.
//   clustering: hosts that run tasks of the same number of accelerators.
//   fragmentation: the least growth of what the usual tasks could not use of the free accelerators.
enum class FillRule : std::uint8_t {
  random,
  best_fit,
  dot_product,
  packing,
  clustering,
  fragmentation,
};
inline constexpr auto fill_rule_text = enum_names<FillRule>(
    {"random", "best-fit", "dot-product", "packing", "clustering", "fragmentation"});

struct FillQuestion {
  FillRule rule = FillRule::best_fit;
  std::uint64_t seed = 0;
  double demand = 1.3;         // asked for in all, over the accelerators that there are
  std::vector<double> marks;   // demands at which the share handed out is told, rising
  std::function<bool()> stop;  // asked at every task; true ends the run
};

struct FillRecord {
  std::vector<double> allocated;  // share of all accelerators at each mark, and at the end
  std::int64_t placed = 0, refused = 0;
  bool stopped = false;
};

// The tasks in a random order, then more that are drawn from them, until `demand` is asked for.
FillRecord fill_cluster(const SharedHosts& cluster, const std::vector<SharedTask>& tasks,
                        const FillQuestion& question);

}  // namespace orrery
