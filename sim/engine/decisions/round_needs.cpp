// SPDX-License-Identifier: Apache-2.0
// Adds up what gangs draw on the sizes that they get.
#include "sim/engine/decisions/round_needs.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {

PowerUser RoundNeeds::user(std::size_t gang, std::int32_t gpus) const {
  const std::vector<WorkSize>& sizes = users_[gang].sizes;
  const auto size = std::find_if(sizes.begin(), sizes.end(),
                                 [&](const WorkSize& one) { return one.gpus == gpus; });
  CHECK_THAT(size != sizes.end(), "a gang gets one of its sizes");
  return {size->work, users_[gang].priority};
}

bool RoundNeeds::fits(const Slots& slots, const std::vector<SizedGang>& gangs, std::size_t gang) {
  const std::int32_t gpus = gangs[gang].gpus;
  return power_.fits(user(gang, gpus), gpus, no_level, slots);
}

bool RoundNeeds::find(const Slots& slots, Placer& placer, std::vector<SizedGang>& gangs,
                      std::size_t gang) {
  const std::int32_t gpus = gangs[gang].gpus;
  return power_.find(user(gang, gpus), gpus, no_level, slots, placer, gangs[gang].place,
                     gangs[gang].job);
}

void RoundNeeds::change(std::size_t gang, const Grants& place, std::int32_t sign) {
  const std::int32_t gpus = gpus_of_place(place);
  power_.add(user(gang, gpus), gpus, place, sign);
}

bool RoundNeeds::find_smaller(const Slots& slots, Placer& placer, std::vector<SizedGang>& gangs,
                              std::size_t gang) {
  SizedGang& of = gangs[gang];
  const std::vector<WorkSize>& sizes = users_[gang].sizes;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    if (size->gpus >= of.gpus) continue;
    const PowerUser one{size->work, users_[gang].priority};
    const bool has = gpus_of_place(*of.now) == size->gpus;
    if (has && is_free(slots, *of.now) && power_.carries(one, size->gpus, *of.now)) {
      of.place = *of.now;
      return true;
    }
    if (power_.find(one, size->gpus, no_level, slots, placer, of.place, of.job)) return true;
    of.place.clear();
  }
  return false;
}

}  // namespace orrery
