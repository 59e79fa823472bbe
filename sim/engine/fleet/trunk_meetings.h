// SPDX-License-Identifier: Apache-2.0
// Slows the jobs of a shared cluster that meet on the links above leaf groups and pods.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

class TrunkMeetings {
 public:
  // Both must outlive it.
  TrunkMeetings(FleetState& state, const FleetQuestion& question)
      : state_(state), question_(question) {}
  // Looks at who came and left, and changes the speeds of those who share links with them; whether
  // one changed.
  bool settle(FleetTime now);

 private:
  // The links above a group of a level.
  struct Trunk {
    std::size_t level = 0;
    std::int32_t group = 0;
    auto operator<=>(const Trunk&) const = default;
  };
  struct Part {  // a job on a trunk
    std::uint32_t job = 0;
    LinkUser user;
  };
  void come(std::uint32_t job);
  void go(std::uint32_t job);
  void look_again(const Trunk& trunk);
  std::vector<double> losses_of(const std::vector<LinkUser>& users);

  FleetState& state_;
  const FleetQuestion& question_;
  std::map<Trunk, std::vector<Part>> on_trunk_;  // jobs in order of their numbers
  std::map<std::uint32_t, std::vector<Trunk>> trunks_of_;
  std::map<std::uint32_t, std::map<Trunk, double>> losses_;  // above 0
  std::map<std::vector<LinkUser>, std::vector<double>> known_;
  std::set<Trunk> changed_;
};

}  // namespace orrery
