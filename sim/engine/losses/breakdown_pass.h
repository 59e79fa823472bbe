// SPDX-License-Identifier: Apache-2.0
// Lets accelerators of a shared cluster break, and be repaired: who is stopped, who stands in.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/jobs/breakdowns.h"
#include "sim/engine/losses/host_stock.h"

namespace orrery {

class BreakdownPass {
 public:
  BreakdownPass(FleetState& state, HostStock& hosts, const FleetQuestion& question);
  FleetTime next_repair() const { return shop_.next(); }
  FleetTime next_breakdown() const { return breakdowns_.next().at; }
  // Brings back what is repaired by now, and breaks what breaks by now; whether anything changed.
  bool repair_until(FleetTime now);
  bool break_until(FleetTime now);
  const std::vector<BreakdownCount>& counts() const { return counts_; }
  const LemonCount& lemons() const { return lemons_; }

 private:
  bool strike(const Breakdown& one);
  void lose(const BreakdownKind& kind, const Breakdown& one, const std::vector<std::int32_t>& hosts,
            const std::vector<std::uint32_t>& jobs);
  std::int32_t struck_host(const Breakdown& one) const;
  bool is_due(std::int32_t host, FleetTime now);
  std::uint32_t job_at(std::int32_t host, std::int64_t gpu) const;

  FleetState& state_;
  HostStock& hosts_;
  const BreakdownPlan& plan_;
  Breakdowns breakdowns_;
  RepairShop shop_;
  std::vector<BreakdownCount> counts_;
  LemonCount lemons_;
  std::map<std::int32_t, std::vector<FleetTime>> strikes_;  // where hosts are exchanged
  std::set<std::int32_t> exchanged_;
};

}  // namespace orrery
