// SPDX-License-Identifier: Apache-2.0
// Writes what happens on a cluster as rows, while it happens.
#pragma once

#include <optional>
#include <string>

#include "sim/base/output_file.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

// "0-3:8 9:2": hosts 0 to 3 with 8 accelerators each and host 9 with 2.
std::string hosts_text(const Grants& place);

// time_s, event, job, cause, gpus, hosts: a CSV that grows as the run goes on, in order of time.
class EventRows {
 public:
  explicit EventRows(const std::string& file) : file_(file) {}
  void begin(const Scheduled& asked);
  void take(const FleetEvent& event);
  void finish();  // gives the file its name

 private:
  GrowingFile file_;
  std::string rows_;  // that wait to be written
  const ClusterJobs* jobs_ = nullptr;
};

}  // namespace orrery
