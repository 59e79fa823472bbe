// SPDX-License-Identifier: Apache-2.0
// Tells by how much what the usual tasks cannot use grows on hosts of which accelerators alone are
// asked for, so that it is known for all of them ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/packing/shared_state.h"

namespace orrery {

// What jobs ask of single hosts: a gang of several asks each for all of its accelerators, and one
// more for the rest. `share`: parts are parts; else they have an accelerator of their own.
std::vector<UsualTask> usual_pieces(const std::vector<ClusterJob>& jobs, std::int32_t gpus_per_host,
                                    bool share);

// By fragments() (shared_state.h). Where processors and memory do not count, those of a host are
// the sum of what its free accelerators are by their number, and what each accelerator in use is by
// its room: what a task takes of one of them changes nothing about the others.
class FragmentTable {
 public:
  FragmentTable(const std::vector<UsualTask>& usual, std::int32_t gpus_per_host);
  // Free accelerators of the hosts that have so many, those first on which fragments grow least as
  // they are taken; of equals the fewest. `gpus`: at least 1.
  const std::vector<std::int32_t>& hosts_for(std::int32_t gpus) const {
    return hosts_for_[static_cast<std::size_t>(gpus - 1)];
  }
  // The growth, in thousandths of an accelerator, as a part goes to one in use that has so much
  // room; to one that is free, on a host that has so many.
  double joins(std::int32_t room, std::int32_t milli) const {
    return in_use_[static_cast<std::size_t>(room - milli)] -
           in_use_[static_cast<std::size_t>(room)];
  }
  double opens(std::int32_t free, std::int32_t milli) const {
    return takes(free, 1) + in_use_[static_cast<std::size_t>(whole_gpu - milli)];
  }

 private:
  double takes(std::int32_t free, std::int32_t gpus) const {
    return free_[static_cast<std::size_t>(free - gpus)] - free_[static_cast<std::size_t>(free)];
  }
  std::vector<double> free_;    // fragments of hosts by their free accelerators
  std::vector<double> in_use_;  // of an accelerator in use by its room
  std::vector<std::vector<std::int32_t>> hosts_for_;
};

// Growths that differ by less are equal: they are sums of shares.
inline constexpr double least_growth = 1e-6;

}  // namespace orrery
