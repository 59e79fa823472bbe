// SPDX-License-Identifier: Apache-2.0
// Writes what happens on a cluster as rows, while it happens.
#pragma once

#include <optional>
#include <string>

#include "sim/base/json/tree.h"
#include "sim/base/output_file.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

// Accelerators by their thousandths: 8, or 0.25.
std::string gpus_text(std::int64_t milli);
Json gpus_json(std::int64_t milli);

// "0-3:8 9:2": hosts 0 to 3 with 8 accelerators each and host 9 with 2; "9:0.25" for a part of one.
std::string hosts_text(const FleetEvent& event);
// That the event tells of, in thousandths.
std::int64_t milli_gpus(const FleetEvent& event);

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
