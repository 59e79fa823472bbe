// SPDX-License-Identifier: Apache-2.0
// Keeps hosts in sets by the number of their free accelerators.
#include "sim/engine/elastic/host_room.h"

#include <algorithm>

namespace orrery {

HostRoom::HostRoom(std::int32_t hosts, std::int32_t gpus_per_host)
    : free_(static_cast<std::size_t>(hosts), gpus_per_host),
      with_(static_cast<std::size_t>(gpus_per_host) + 1),
      all_free_(static_cast<std::int64_t>(hosts) * gpus_per_host) {
  for (std::int32_t h = 0; h < hosts; ++h) with_.back().insert(with_.back().end(), h);
}

void HostRoom::change(std::int32_t host, std::int32_t by) {
  std::int32_t& free = free_[static_cast<std::size_t>(host)];
  with_[static_cast<std::size_t>(free)].erase(host);
  free += by;
  all_free_ += by;
  with_[static_cast<std::size_t>(free)].insert(host);
}

void HostRoom::take(const Grants& place) {
  for (const HostGrant& grant : place)
    for (std::int32_t h = 0; h < grant.hosts; ++h) change(grant.host + h, -grant.gpus);
}

std::int32_t HostRoom::lowest_with(std::int32_t free) const {
  const std::set<std::int32_t>& hosts = with_[static_cast<std::size_t>(free)];
  return hosts.empty() ? -1 : *hosts.begin();
}

std::int32_t HostRoom::tightest(std::int32_t gpus) const {
  for (auto free = static_cast<std::size_t>(gpus); free < with_.size(); ++free)
    if (!with_[free].empty()) return *with_[free].begin();
  return -1;
}

Grants HostRoom::take_emptiest(std::int32_t gpus) {
  Grants out;
  while (gpus > 0) {
    auto most = static_cast<std::int32_t>(with_.size()) - 1;
    while (most > 0 && with_[static_cast<std::size_t>(most)].empty()) --most;
    if (most == 0) break;
    const std::int32_t host = lowest_with(most), taken = std::min(gpus, most);
    out.push_back({host, 1, taken});
    change(host, -taken);
    gpus -= taken;
  }
  std::sort(out.begin(), out.end(),
            [](const HostGrant& a, const HostGrant& b) { return a.host < b.host; });
  return out;
}

bool on_several_hosts(const Grants& place) {
  return place.size() > 1 || (!place.empty() && place.front().hosts > 1);
}

}  // namespace orrery
