// SPDX-License-Identifier: Apache-2.0
// Lets accelerators of a shared cluster break, and be repaired: who is stopped, who stands in.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/jobs/breakdowns.h"

namespace orrery {

class BreakdownPass {
 public:
  // Sets the spare hosts aside: those of the highest numbers.
  BreakdownPass(FleetState& state, const FleetQuestion& question);
  FleetTime next_repair() const { return shop_.next(); }
  FleetTime next_breakdown() const { return breakdowns_.next().at; }
  // Brings back what is repaired by now, and breaks what breaks by now; whether anything changed.
  bool repair_until(FleetTime now);
  bool break_until(FleetTime now);
  std::int64_t spare_gpus() const { return spare_gpus_; }
  std::int64_t most_gpus() const { return most_gpus_; }  // that a job may ask for
  const std::vector<BreakdownCount>& counts() const { return counts_; }

 private:
  bool strike(const Breakdown& one);
  void lose(const BreakdownKind& kind, const Breakdown& one, HostSpan hosts,
            const std::vector<std::uint32_t>& jobs);
  std::uint32_t job_at(std::int32_t host, std::int64_t gpu) const;
  void stand_in(FleetTime now);
  void tell_hosts(FleetEventKind kind, FleetTime at, std::span<const std::int32_t> hosts,
                  std::string_view cause = {});

  FleetState& state_;
  const BreakdownPlan& plan_;
  const std::function<void(const FleetEvent&)>& tell_;
  Breakdowns breakdowns_;
  RepairShop shop_;
  std::set<std::int32_t> spares_;  // hosts that stand by
  std::int64_t spare_gpus_ = 0, most_gpus_ = 0;
  std::int64_t lacking_ = 0;  // hosts under repair in whose place nobody stands
  std::vector<BreakdownCount> counts_;
};

}  // namespace orrery
