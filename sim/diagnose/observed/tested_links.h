// SPDX-License-Identifier: Apache-2.0
// Knows how fast links were in nccl-tests, against what is predicted of the same groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diagnose/state/symptoms.h"
#include "sim/engine/scenario.h"
#include "sim/observe/collective/nccl_tests.h"

namespace orrery {

// One table of a test.
struct TestedLinks {
  std::string test;  // "all_reduce_perf"
  int gpus = 0, hosts = 0;
  bool leaves_domain = false;  // else its links are those inside a scale-up domain
  double ratio = 1;            // time of large messages over the predicted: of the middle one
  // Of the largest message.
  Bytes message;
  BytesPerSecond measured_bus, predicted_bus;
};

// Tables that tell their collective and their GPUs, no more than the run has, and messages that are
// not latency alone. A sentence in `notes` for each other one.
std::vector<TestedLinks> tested_links(const std::vector<observe::CollectiveTests>& tests,
                                      const Scenario& scenario, std::vector<std::string>& notes);
// Readings of link and network, where `readings` have none: tests find links without the run's own
// waits, but not at its time.
void read_tested_links(const std::vector<TestedLinks>& tests, Readings& readings);

}  // namespace orrery
