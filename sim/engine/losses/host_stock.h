// SPDX-License-Identifier: Apache-2.0
// Keeps which hosts work, stand by and are away, for how many reasons, and who stands in.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// A host that is away for several reasons comes back once all are over. For each one that works and
// goes away a spare one stands in, or it is lacking until some host comes back.
class HostStock {
 public:
  // Sets the spare hosts aside: those of the highest numbers.
  HostStock(FleetState& state, const FleetQuestion& question);
  std::int64_t spare_gpus() const { return spare_gpus_; }
  // Whoever holds accelerators of any of these, ascending, each once.
  std::vector<std::uint32_t> jobs_on(std::span<const std::int32_t> hosts) const;
  std::int64_t most_gpus() const { return most_gpus_; }  // that a job may ask for
  // It is neither away nor stands by.
  bool works(std::int32_t host) const {
    return away_[static_cast<std::size_t>(host)] == 0 && !spares_.contains(host);
  }
  // They go away; jobs on them are the caller's, before `stand_in`. Those that worked.
  std::vector<std::int32_t> leave(std::span<const std::int32_t> hosts);
  // Tells that hosts went out, and lets a spare one stand in for each.
  void stand_in(FleetTime now, std::span<const std::int32_t> hosts, std::string_view cause);
  // A reason is over; whether any host came back.
  bool come_back(FleetTime now, std::span<const std::int32_t> hosts);
  // No job starts on them; those that hold them stay.
  void drain(std::span<const std::int32_t> hosts);
  void end_drain(std::span<const std::int32_t> hosts);

 private:
  void stand_in(FleetTime now);
  void set(std::int32_t host);  // in or out of use, by what is known of it
  void tell(FleetEventKind kind, FleetTime at, std::span<const std::int32_t> hosts,
            std::string_view cause = {}) const;

  FleetState& state_;
  const std::function<void(const FleetEvent&)>& tell_;
  std::set<std::int32_t> spares_;     // hosts that stand by
  std::set<std::int32_t> told_out_;   // that worked before they went away
  std::vector<std::int32_t> away_;    // by host: reasons
  std::vector<std::int32_t> drains_;  // likewise
  std::int64_t spare_gpus_ = 0, most_gpus_ = 0;
  std::int64_t lacking_ = 0;  // hosts that are away and in whose place nobody stands
};

}  // namespace orrery
