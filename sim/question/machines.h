// SPDX-License-Identifier: Apache-2.0
// Advises one job on several clusters: which machine does it best, and which cannot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/device.h"
#include "sim/base/json/json.h"
#include "sim/outcome/prediction.h"
#include "sim/question/ask.h"
#include "workloads/layout/layout.h"

namespace orrery {

// Clusters that "cluster" of the settings names: "all", several with commas or in a list; empty
// where it names one alone.
std::vector<std::string> several_clusters(const JsonValue& settings);

// What one cluster does for the job.
struct AdvisedMachine {
  std::string name, title;
  bool runs = false;
  std::string why;  // it does not
  Device device;
  Layout layout;
  Prediction prediction;                      // of the best layout
  double score = infinite;                    // least is best; what is unknown is last
  std::optional<std::int64_t> stopped_after;  // batches of a search that did not come to its end
};

// In the order of the objective, least first; those on which the job does not run come last.
struct AdvisedMachines {
  std::vector<AdvisedMachine> ranked;
  // Of each cluster that was looked at, in the order of the question:
  // AdvisedMachine::stopped_after.
  std::vector<std::optional<std::int64_t>> stopped_after;
  bool stopped_early = false;
};

// Advises on each of the clusters by itself.
AdvisedMachines advise_on_each(const JsonValue& settings, const std::vector<std::string>& clusters,
                               const AskedWith& with);

// The settings with several clusters as a list, and with what files hold in it.
JsonValue with_clusters_listed(const JsonValue& settings);

}  // namespace orrery
