// SPDX-License-Identifier: Apache-2.0
// Joins the reads of a store with the jobs that wait for them.
#include "sim/engine/losses/store_pass.h"

#include <algorithm>

namespace orrery {

void StorePass::pass_to(FleetTime now) {
  for (const SharedReads::Read& read : reads_.pass_to(now)) {
    const FleetTime took = read.end - read.begin;
    ++counts_.count;
    counts_.alone += read.asked.alone;
    counts_.took += took;
    counts_.longest = std::max(counts_.longest, took);
    counts_.waited += static_cast<GpuMicros>(milli_gpus(state_.job(read.job))) *
                      (took - read.asked.alone).us / whole_gpu;
  }
}

bool StorePass::settle(FleetTime now) {
  if (state_.store.asked.empty() && reads_.next() == fleet_never) return false;
  pass_to(now);
  for (const ReadAsked& one : state_.store.asked) {
    if (one.read.alone.us > 0)
      reads_.ask(one.job, one.at, one.read);
    else
      reads_.forget(one.job);
  }
  state_.store.asked.clear();
  pass_to(now);  // some begin at once
  counts_.most = std::max(counts_.most, static_cast<std::int64_t>(reads_.reading()));
  const std::vector<SharedReads::Read> moved = reads_.share();
  for (const SharedReads::Read& read : moved)
    state_.move_begin(read.job, read.end + read.asked.after);
  return !moved.empty();
}

}  // namespace orrery
