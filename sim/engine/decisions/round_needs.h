// SPDX-License-Identifier: Apache-2.0
// Lets gangs of a round have places that the limit and all feeds of power carry together.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/power_room.h"
#include "sim/engine/jobs/gang_places.h"

namespace orrery {

// `users`: by gang, on each of its sizes. Where nothing is limited it is GangNeeds.
class RoundNeeds final : public GangNeeds {
 public:
  struct User {
    std::int32_t priority = 0;
    std::vector<WorkSize> sizes;
  };
  RoundNeeds(const FleetState& state, std::vector<User> users)
      : power_(state), users_(std::move(users)) {}
  bool fits(const Slots& slots, const std::vector<SizedGang>& gangs, std::size_t gang) override;
  bool find(const Slots& slots, Placer& placer, std::vector<SizedGang>& gangs,
            std::size_t gang) override;
  void change(std::size_t gang, const Grants& place, std::int32_t sign) override;
  // What it has now is kept, if that is its largest smaller size with power.
  bool find_smaller(const Slots& slots, Placer& placer, std::vector<SizedGang>& gangs,
                    std::size_t gang) override;

 private:
  PowerUser user(std::size_t gang, std::int32_t gpus) const;
  FuturePower power_;
  std::vector<User> users_;
};

}  // namespace orrery
