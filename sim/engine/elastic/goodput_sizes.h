// SPDX-License-Identifier: Apache-2.0
// Knows what each size is worth to a job and to the others: the objective of goodput.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/elastic/round_policy.h"
#include "sim/engine/elastic/size_choice.h"

namespace orrery {

// Sizes that a job may get in a round; the first one is none.
struct GoodputSizes {
  std::vector<SizeOption> options;  // accelerators that are set aside, and the cost
  std::vector<std::int32_t> gpus;   // that the job holds of them
};

// Accelerators that are set aside for so many: whole hosts, and for the rest the next power of two
// that divides a host, or a host. Such pieces fit on hosts in any number whose sum is at most what
// there is: each divides the next larger one. `apart`: a rest beyond a whole host takes a host too.
std::int32_t set_aside(std::int32_t gpus, std::int32_t gpus_per_host, bool apart);

// Pollux (Qiao et al., OSDI 2021, 4.2): the mean of power -1 of all jobs' speedups is the largest
// where the sum of 1 / speedup is the least. A speedup is goodput over that of an equal share of
// the cluster, divided by the GPUs of a host, and less where the job would restart: by the part of
// its age that restarts take (one of age 0 gains nothing, and waits). Costs are 1 / (speedup +
// 0.001), in whole parts of 10^-9. What is expected of a job: one that never ran speeds up in
// proportion; several hosts are no slower than one until it ran on several, and an equal share is
// always taken on one; it gets at most twice the GPUs on which it ever ran. These rules and 0.001
// are those of the published simulator (petuum/adaptdl, osdi21-artifact, simulator/pollux.py and
// simulator.py).
GoodputSizes goodput_sizes(const RoundView& view, const RoundJob& job);

// Accelerators of each job of the view so that the sum of costs is the least.
std::vector<std::int32_t> choose_goodput_sizes(const RoundView& view);

}  // namespace orrery
