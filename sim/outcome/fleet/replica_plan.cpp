// SPDX-License-Identifier: Apache-2.0
// Counts replicas at each check, and makes of that when each comes and leaves.
#include "sim/outcome/fleet/replica_plan.h"

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

std::int64_t wanted_at(FleetTime check, FleetTime open, FleetTime close, const LoadCurve& load,
                       const ReplicaRule& rule) {
  double rate = load.peak();
  if (rule.scale == ReplicaScale::expected)
    rate = load.most(check, std::min(close, check + rule.check_every));
  // Nothing was seen before the first check: it knows the load of its instant.
  if (rule.scale == ReplicaScale::observed)
    rate = check == open ? load.most(open, open + FleetTime{1})
                         : load.most(check - rule.check_every, check);
  return std::clamp(replicas_for(rate, rule), rule.least, rule.most);
}

}  // namespace

std::int64_t replicas_for(double rate, const ReplicaRule& rule) {
  // A load that fits exactly, but for what rounding adds to it, needs no replica more.
  const double needed = rate * (1 + rule.headroom) / rule.bears;
  return static_cast<std::int64_t>(std::ceil(needed * (1 - 1e-12)));
}

std::vector<ReplicaLife> replica_lives(const LoadCurve& load, const ReplicaRule& rule,
                                       FleetTime open, FleetTime close) {
  CHECK_THAT(open >= rule.start && rule.least <= rule.most, "replicas start before it opens");
  std::vector<ReplicaLife> lives;
  std::vector<FleetTime> since;  // of each replica that stands: it was asked for
  const auto settle = [&](FleetTime check, std::int64_t wanted) {
    while (static_cast<std::int64_t>(since.size()) > wanted) {
      lives.push_back({static_cast<std::int64_t>(since.size()), since.back(), check});
      since.pop_back();
    }
    const bool late = rule.scale == ReplicaScale::observed && check > open;
    while (static_cast<std::int64_t>(since.size()) < wanted)
      since.push_back(late ? check : check - rule.start);
  };
  const bool changes = rule.scale != ReplicaScale::fixed;
  for (FleetTime check = open; check < close; check += rule.check_every) {
    settle(check, wanted_at(check, open, close, load, rule));
    if (!changes) break;
  }
  settle(close, 0);
  // One that is asked for late may be to leave before it serves.
  std::erase_if(lives,
                [&](const ReplicaLife& life) { return life.submit + rule.start >= life.until; });
  std::sort(lives.begin(), lives.end(), [](const ReplicaLife& a, const ReplicaLife& b) {
    return a.submit != b.submit ? a.submit < b.submit : a.replica < b.replica;
  });
  return lives;
}

}  // namespace orrery
