// SPDX-License-Identifier: Apache-2.0
// Slows the jobs of a shared cluster that meet on the links above leaf groups and pods, and says
// how much they would lose to each other if one of them stood elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

class TrunkMeetings final : public PlaceJudge {
 public:
  // Both must outlive it.
  TrunkMeetings(FleetState& state, const FleetQuestion& question);
  TrunkMeetings(const TrunkMeetings&) = delete;
  TrunkMeetings& operator=(const TrunkMeetings&) = delete;
  // Looks at who came and left, and changes the speeds of those who share links with them; whether
  // one changed.
  bool settle(FleetTime now);
  // As if the job ran nowhere yet, beside all that have begun and not left so far.
  bool meets(std::uint32_t job, const Grants& place) override;
  double lost(std::uint32_t job, const Grants& place) override;
  double used(std::size_t level, std::int32_t group) override;

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
  using PartsByTrunk = std::vector<std::pair<Trunk, LinkUser>>;
  bool refresh();
  void come(std::uint32_t job);
  void go(std::uint32_t job);
  PartsByTrunk parts_on(const PlacePrice& price, const Grants& place, std::int64_t capped_ps) const;
  static void sort(std::vector<Part>& parts);
  void look_again(const Trunk& trunk);
  double loss_of(std::uint32_t job) const;
  double lost_by_others(const std::map<std::uint32_t, std::map<Trunk, double>>& met) const;
  std::vector<double> losses_of(const std::vector<Part>& parts);

  FleetState& state_;
  const FleetQuestion& question_;
  std::map<Trunk, std::vector<Part>> on_trunk_;  // jobs in order of their numbers
  std::map<std::uint32_t, std::vector<Trunk>> trunks_of_;
  std::map<std::uint32_t, std::map<Trunk, double>> losses_;  // above 0
  std::map<std::vector<LinkUser>, std::vector<double>> known_;
  std::set<Trunk> changed_;
  std::set<std::uint32_t> touched_;  // jobs that began, or whose trunks changed, since settle()
};

}  // namespace orrery
