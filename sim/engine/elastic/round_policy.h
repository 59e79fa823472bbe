// SPDX-License-Identifier: Apache-2.0
// Knows what a policy sees at the begin of a round, and what it answers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/elastic/elastic_question.h"
#include "sim/engine/elastic/host_room.h"
#include "sim/engine/elastic/pace_table.h"

namespace orrery {

// A job that was submitted and has not ended.
struct RoundJob {
  std::uint32_t number = 0;  // its place in the list
  const ElasticJob* asked = nullptr;
  const Grants* place = nullptr;  // empty: it waits
  FleetTime age;
  std::int32_t restarts = 0;
  FleetTime restart;          // what one takes
  std::int32_t most_run = 0;  // the most GPUs on which it ever ran
  bool ran_across = false;    // on several hosts
  std::int64_t left = 0;      // of elastic_work
};

struct RoundView {
  FleetTime now;
  std::vector<RoundJob> jobs;  // in the order of the list
  const ElasticQuestion& question;
  JobPaces& paces;
  std::int64_t gpus = 0;  // that are shared out
  // On a place that spreads over as few hosts as it can.
  JobPace packed_pace(const RoundJob& job, std::int32_t size) const {
    return paces.pace(*job.asked, size, size > question.gpus_per_host);
  }
};

class RoundPolicy {
 public:
  virtual ~RoundPolicy() = default;
  // Accelerators of all jobs of the view, in its order: together at most what it has. Asked once a
  // round.
  virtual std::vector<std::int32_t> sizes(const RoundView& view) = 0;
  // The places of all jobs of the view, in its order; they come empty. A job whose place is
  // another one than before restarts. Asked once a round, in place of the sizes.
  virtual void decide(const RoundView& view, std::vector<Grants>& places) = 0;
};

std::unique_ptr<RoundPolicy> las_policy();
std::unique_ptr<RoundPolicy> optimus_policy();
std::unique_ptr<RoundPolicy> max_min_policy();
std::unique_ptr<RoundPolicy> finish_fair_policy();
std::unique_ptr<RoundPolicy> goodput_policy();
std::unique_ptr<RoundPolicy> round_policy(RoundRule rule);

// The next size above `gpus` that a job may have; 0: there is none.
std::int32_t next_size(const ElasticJob& job, std::int32_t gpus);

// Gives jobs the sizes of `gpus`: who holds that many keeps its place, the others get the emptiest
// hosts, in `order`. Sizes are at most what there is.
void place_emptiest(const RoundView& view, const std::vector<std::int32_t>& gpus,
                    const std::vector<std::size_t>& order, std::vector<Grants>& places);

// What jobs ask for, to as many as find room: first who comes first in `order`; whoever finds none
// is passed over.
std::vector<std::int32_t> gangs_in_order(const RoundView& view,
                                         const std::vector<std::size_t>& order);

}  // namespace orrery
