// SPDX-License-Identifier: Apache-2.0
// Knows one run of the judge over a candidate: what was asked, and what it found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/kernel/build.h"
#include "sim/calibrate/kernel/spec.h"

namespace orrery {

struct KernelCase {
  Sizes shape;
  std::string data, failure;
  double worst = 0;  // error over tolerance
  bool ok = false;
};
struct KernelTiming {
  Sizes shape;
  std::string failure;
  double worst = 0;
  std::vector<double> cold, warm;  // seconds of a launch, one value a run of `launches`
  std::int64_t launches = 0;
  double round_trip = 0;  // of an empty run: taken off
  double mhz = 0;         // of the processors right after a run; 0: not known
  bool ok = false;
};
// What of the sandbox the host's kernel allowed.
struct KernelSandbox {
  bool network = false, files = false, capabilities = false, calls = false;
};
struct KernelDevice {
  std::string name;  // as its driver says it; "host"
  std::int64_t processors = 0;
  double l2_bytes = 0;
};

struct KernelTrial {
  bool no_device = false;  // or no interpreter with torch: nothing ran, and nothing is wrong
  std::string failure;     // why it never ran, or ended early
  std::optional<KernelDevice> device;
  std::optional<KernelSandbox> sandbox;
  std::vector<KernelCase> cases;
  std::vector<KernelTiming> timed;
  bool right() const;  // every case and every timed run, to the end
  double worst() const;
};

struct TrialOptions {
  bool check = true;       // all cases; else timed runs alone, which are checked too
  std::uint64_t seed = 0;  // of drawn shapes
  double seconds = 20;     // that one answer of the worker may take
  double memory = 8e9;     // bytes that the worker may hold
};
// `folder`: the worker's, where it may write. MachineFailed where the judge itself fails.
KernelTrial run_trial(const KernelTools& tools, const JudgePrograms& programs,
                      const BuiltKernel& kernel, const KernelSpec& spec,
                      const std::filesystem::path& folder, const TrialOptions& options);

// The lines that the judge prints, as a trial.
KernelTrial read_trial(const std::string& printed);

}  // namespace orrery
