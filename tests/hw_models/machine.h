// SPDX-License-Identifier: Apache-2.0
// A device with its calibration, as kernels are timed on it.
#pragma once

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"

namespace orrery {

struct Machine {
  explicit Machine(const std::string& name)
      : catalogued(load_device(name)),
        device(catalogued.resolved()),
        calibration(load_calibration(catalogued)) {}
  KernelTime time(const Kernel& kernel) const { return kernel_time(kernel, device, calibration); }
  double seconds(const Kernel& kernel) const { return time(kernel).time.si(); }
  double tflops(const Kernel& kernel) const {
    return tensor_flop(kernel.work) / time(kernel).time.si() / 1e12;
  }
  Device catalogued;
  ResolvedDevice device;
  Calibration calibration;
};

}  // namespace orrery
