// SPDX-License-Identifier: Apache-2.0
// Draws what happens on a cluster for Perfetto, while it happens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/outcome/trace_events.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

// Rows of a process of the trace: what is drawn at one time stands in rows of its own, the first
// that is free.
class TraceLanes {
 public:
  std::int64_t take();
  void give(std::int64_t lane) { free_.insert(lane); }

 private:
  std::set<std::int64_t> free_;
  std::int64_t all_ = 0;
};

// A process for each leaf group, whose rows hold the jobs on its hosts; one for jobs that wait,
// with an arrow from a job's submission to its start; one for hosts under repair; one with curves
// of accelerators, jobs that wait and megawatts. Of a window of time, and at most so many slices
// and points of curves: then it ends early.
class FleetTrace {
 public:
  FleetTrace(FleetTime from, FleetTime to, std::size_t most) : from_(from), to_(to), most_(most) {}
  void begin(const Scheduled& asked);
  void take(const FleetEvent& event);
  std::string text();  // once all is over
  std::optional<FleetTime> ended_early() const { return ended_early_; }

 private:
  struct Part {
    std::int64_t group = 0, lane = 0, milli = 0;  // thousandths of accelerators
  };
  struct Running {
    FleetTime since;
    std::vector<Part> parts;
    std::int64_t milli = 0;
    std::string hosts;
  };
  struct Alone {  // what waits, or is repaired
    FleetTime since;
    std::int64_t lane = 0;
    std::string why;
  };
  struct Levels {
    std::int64_t held = 0, out = 0, waiting = 0, milliwatts = 0;  // held: thousandths
    bool operator==(const Levels&) const = default;
  };
  std::vector<Part> parts_of(const FleetEvent& event);
  void wait(const FleetEvent& event);
  void start_of(const FleetEvent& event);
  void leave(const FleetEvent& event);
  void hosts_changed(const FleetEvent& event);
  void close(std::uint32_t job, Running& running, FleetTime at, const std::string& why);
  std::pair<FleetTime, FleetTime> shown(FleetTime from, FleetTime to) const;
  void slice(const std::string& name, const std::string& category, std::int64_t process,
             std::int64_t lane, FleetTime from, FleetTime to, const Json& details);
  void write_levels();
  void end_all();

  FleetTime from_, to_;
  std::size_t most_;
  const Scheduled* asked_ = nullptr;
  SlotShape shape_;
  TraceEvents events_;
  std::size_t written_ = 0;
  FleetTime now_;
  std::int64_t arrows_ = 0;
  TraceLanes waiting_lanes_, repair_lanes_;
  std::vector<TraceLanes> lanes_;  // by group
  std::map<std::uint32_t, Running> running_;
  std::map<std::uint32_t, Alone> waiting_;
  std::map<std::int32_t, Alone> repaired_;
  Levels levels_, written_levels_;
  std::optional<FleetTime> ended_early_;
};

}  // namespace orrery
