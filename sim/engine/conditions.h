// SPDX-License-Identifier: Apache-2.0
// Knows what differs from a healthy, empty cluster: faults, slow devices, other traffic.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units/units.h"
#include "topologies/routing/routing.h"

namespace orrery {

// An accelerator that runs below its clock.
struct SlowGpu {
  std::int64_t gpu = 0;
  double speed = 1;  // share of its clock that is left, above 0
};

// A scale-up port that lost links.
struct ScaleUpFault {
  std::int64_t gpu = 0;
  double remaining = 1;  // share of its scale-up bandwidth that is left, above 0
};

// What others send over the same fabric all the time: another job's collective that never ends.
// Its accelerators may be the job's own (a checkpoint upload) or beside them.
struct BackgroundTraffic {
  enum class Pattern : std::uint8_t { ring, all_to_all };
  Pattern pattern = Pattern::ring;
  std::int64_t first_gpu = 0, gpus = 0;  // contiguous; whole scale-up domains
  double load = 1;                       // of every NIC's rate that it asks for, above 0 to 1
};

// Everything that a what-if changes about the machine. Only the flow network sees faults and
// traffic; slow devices count on both networks.
struct Conditions {
  std::vector<NetworkFault> faults;
  std::vector<ScaleUpFault> scale_up_faults;
  std::vector<SlowGpu> slow_gpus;
  std::vector<BackgroundTraffic> background;
  std::uint64_t seed = 1;  // of ECMP's hash and of sampled all-to-all rounds
  bool healthy_network() const {
    return faults.empty() && scale_up_faults.empty() && background.empty();
  }
};

}  // namespace orrery
