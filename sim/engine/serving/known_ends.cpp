// SPDX-License-Identifier: Apache-2.0
// Lets requests end one by one and counts what is free.
#include "sim/engine/serving/known_ends.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

bool sooner(const KnownEnds::Running& a, const KnownEnds::Running& b) { return a.left < b.left; }

}  // namespace

KnownEnds::KnownEnds(std::vector<Running> running) : running_(std::move(running)) {
  std::sort(running_.begin(), running_.end(), sooner);
}

void KnownEnds::add(Running one) {
  running_.insert(std::upper_bound(running_.begin(), running_.end(), one, sooner), one);
}

// What those that ended have emitted was taken and given back.
bool KnownEnds::fit(std::int64_t free) const {
  auto alive = static_cast<std::int64_t>(running_.size());
  for (const Running& r : running_) {
    if (free - r.left * alive <= alive) return false;
    free += r.held;
    --alive;
  }
  return true;
}

}  // namespace orrery
