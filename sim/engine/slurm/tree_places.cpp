// SPDX-License-Identifier: Apache-2.0
// Chooses leaves by how many hosts they have.
#include "sim/engine/slurm/tree_places.h"

#include <algorithm>

namespace orrery {

bool SlurmPlace::has(HostWordsView set) const {
  return (rest_host && has_host(set, *rest_host)) ||
         std::any_of(hosts.begin(), hosts.end(), [&](std::int32_t h) { return has_host(set, h); });
}

// Of the leaves that have enough the one with fewest, else the one with most; in each the hosts of
// lowest number.
void TreePlaces::take_hosts(HostWordsView eligible, std::int32_t count,
                            std::vector<std::int32_t>& taken) {
  counts_.clear();
  for (std::int32_t first = 0; first < hosts_; first += leaf_)
    counts_.push_back(count_hosts(eligible, first, std::min(first + leaf_, hosts_)));
  while (count > 0) {
    auto best = counts_.begin();
    for (auto leaf = counts_.begin(); leaf != counts_.end(); ++leaf)
      if (*leaf >= count ? (*best < count || *leaf < *best) : (*best < count && *best < *leaf))
        best = leaf;
    std::int32_t part = std::min(count, *best);
    count -= part;
    *best = -1;
    for (auto host = static_cast<std::int32_t>(best - counts_.begin()) * leaf_; part > 0; ++host)
      if (has_host(eligible, host)) {
        taken.push_back(host);
        --part;
      }
  }
}

SlurmPlace TreePlaces::take(const SlurmGang& gang, HostWordsView whole, HostWords& part) {
  SlurmPlace place;
  take_hosts(whole, gang.hosts, place.hosts);
  std::sort(place.hosts.begin(), place.hosts.end());
  if (gang.rest == 0) return place;
  for (const std::int32_t host : place.hosts) remove_host(part, host);
  std::vector<std::int32_t> rest;
  take_hosts(part, 1, rest);
  place.rest_host = rest.front();
  return place;
}

}  // namespace orrery
