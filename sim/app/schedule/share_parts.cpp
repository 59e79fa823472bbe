// SPDX-License-Identifier: Apache-2.0
// Lists the parts of a cluster's time.
#include "sim/app/schedule/share_parts.h"

namespace orrery {

const std::vector<SharePart>& share_parts() {
  static const std::vector<SharePart> all = {
      {"useful", "useful", "steps that count, as fast as alone and well placed",
       &FleetShares::useful},
      {"standby", "standby", "replicas of served models beyond those that the load needs",
       &FleetShares::standby},
      {"in_vain", "in vain", "the same of jobs that are recorded as failed or cancelled",
       &FleetShares::in_vain},
      {"slowed", "slowed", "what steps took longer: where they were placed, slow hosts, data",
       &FleetShares::slowed},
      {"capped", "capped", "what they took longer by caps of power", &FleetShares::capped},
      {"checkpoint", "checkpoint", "stopped by saves", &FleetShares::saving},
      {"restart", "restart", "until the first step, after stops as well", &FleetShares::starting},
      {"lost", "lost", "steps that were computed again", &FleetShares::lost},
      {"preemption", "preempted", "the same of jobs that others stopped", &FleetShares::preempted},
      {"unshared", "unshared", "of GPUs that jobs hold by parts, what nobody asked for",
       &FleetShares::unshared, true},
      {"short", "short", "free, too few for the next job", &FleetShares::short_of},
      {"scattered", "scattered",
       "free, enough for it, but not on the hosts that it needs, or before the next round",
       &FleetShares::scattered},
      {"spare", "spare", "hosts that stand by", &FleetShares::spare},
      {"repair", "repair", "hosts under repair", &FleetShares::repair},
      {"idle", "idle", "nobody waits", &FleetShares::idle}};
  return all;
}

}  // namespace orrery
