// SPDX-License-Identifier: Apache-2.0
// Says how fast processes run that share one device.
#pragma once

#include <span>
#include <vector>

#include "sim/base/units/units.h"

namespace orrery {

// How a device is shared, by the words of NVIDIA's device plugin for Kubernetes.
enum class DeviceShare {
  time_slices,  // processes take turns: what a GPU does without more
  mps,          // kernels of all go into one queue (CUDA's Multi-Process Service)
  mps_limits,   // likewise, each on its part of the processors at most
};

// A process as it runs alone on the device.
struct DeviceUse {
  double busy = 1;  // share of its time in which a kernel runs (nvidia-smi's utilization), above 0
  Seconds kernel{1};  // mean length of its kernels: only the ratio to that of others counts
  double part = 1;    // of the processors, with limits; parts add up to 1 at most
};

// Speed of each process over its speed alone on a whole device. Device time is handed out max-min
// fairly: each gets what it asks for or its share of the rest. A share is a turn under time
// slices, which lose a constant of the time to switches as soon as there are two, and a kernel
// under MPS: whoever has longer kernels gets more. Nothing is won by kernels that need different
// parts of a device: a kernel waits until the one before it has no block left to start.
// (docs/physics/colocation.md)
std::vector<double> shared_speeds(DeviceShare how, std::span<const DeviceUse> uses);

}  // namespace orrery
