// SPDX-License-Identifier: Apache-2.0
// Knows what a calibration becomes for a device that differs from the one that it is of.
#pragma once

#include "hw_models/calibration.h"
#include "hw_models/device.h"

namespace orrery {

// Makes the calibration of `measured` one of `changed`: the same device with other peaks or another
// power limit, as a what-if, an overlay of a cluster or an entry that is based on it has them.
// - Wider units of the same clock: an operation of tensor work costs at full clocks the joules that
//   it cost, whatever the peak. (Twice the units are twice the multipliers, and each multiplies for
//   what it did.) Where the power limit binds they run at a lower clock, where it costs less.
// - Another limit: tensor work runs at the clock that the limit sustains, its energy with the clock
//   squared down to half the power for work (sustained_energy). Kernels that wait for memory keep
//   their speed and draw what they drew, up to the limit.
// All else that differs (bandwidths, capacities, sizes) reaches predictions through the device.
void follow_device(Calibration& calibration, const Device& measured, const Device& changed);

// Tensor work that is `faster` at full clocks, at `share` of its peak: its energy over that of now.
double faster_work_energy(const Device& device, const Calibration& calibration, Format format,
                          double share, double faster);

}  // namespace orrery
