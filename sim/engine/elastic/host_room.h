// SPDX-License-Identifier: Apache-2.0
// Counts free accelerators of hosts, and finds hosts by how many they have.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "topologies/slots.h"

namespace orrery {

class HostRoom {
 public:
  HostRoom(std::int32_t hosts, std::int32_t gpus_per_host);
  std::int32_t free_of(std::int32_t host) const { return free_[static_cast<std::size_t>(host)]; }
  std::int64_t free() const { return all_free_; }
  void change(std::int32_t host, std::int32_t by);
  void take(const Grants& place);
  // The lowest host with exactly so many free; -1: there is none.
  std::int32_t lowest_with(std::int32_t free) const;
  // The lowest host with the fewest free of those with at least `gpus`; -1: there is none.
  std::int32_t tightest(std::int32_t gpus) const;
  // Takes `gpus` from the emptiest host, the lowest of equals, then from the next, and so on: what
  // it took, by host. At most as many as are free.
  Grants take_emptiest(std::int32_t gpus);

 private:
  std::vector<std::int32_t> free_;
  std::vector<std::set<std::int32_t>> with_;  // hosts by free accelerators
  std::int64_t all_free_ = 0;
};

bool on_several_hosts(const Grants& place);

}  // namespace orrery
