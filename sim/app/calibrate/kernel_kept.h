// SPDX-License-Identifier: Apache-2.0
// Knows how an answer of `calibrate kernel` that was kept is judged again, on a machine without a
// GPU.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/kernel/judgement.h"

namespace orrery {

// Its times and failures, in place of a run. Quartiles stand for the runs of a shape.
struct KeptKernels {
  KernelSpec spec;
  bool host = false;
  std::string ran_on, device;  // by the driver's name, and of the catalogue; may be empty
  std::vector<PresentTimes> present;
  struct Candidate {
    std::string file;
    BuiltKernel built;
    KernelTrial trial;
  };
  std::vector<Candidate> candidates;
};
// Error at what is no such answer.
KeptKernels read_kept_kernels(const std::string& file);

}  // namespace orrery
