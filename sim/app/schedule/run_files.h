// SPDX-License-Identifier: Apache-2.0
// Knows the flags that write what happens in a run: --events-out, and --trace-out of a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/app/line/command.h"
#include "sim/app/schedule/event_rows.h"
#include "sim/app/schedule/fleet_trace.h"

namespace orrery {

std::vector<Flag> run_file_flags();

class RunFiles final : public ScheduleListener {
 public:
  // Error, or MachineFailed, where what was asked for could not be written; for a time of a trace
  // that is none.
  explicit RunFiles(const Given& given);
  bool any() const { return rows_ != nullptr || trace_ != nullptr; }
  // Error beside what has several runs.
  static void refuse_beside_lines(const Given& given);
  void begin(const Scheduled& asked) override;
  void take(const FleetEvent& event) override;
  // Gives the files their names; says on stderr where a trace is too large.
  void finish(bool quiet);

 private:
  std::string flag_, trace_file_;
  std::unique_ptr<EventRows> rows_;
  std::unique_ptr<FleetTrace> trace_;
};

}  // namespace orrery
