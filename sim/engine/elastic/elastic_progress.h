// SPDX-License-Identifier: Apache-2.0
// Follows one elastic job over its places, in whole steps and a remainder.
#pragma once

#include <cstdint>

#include "sim/engine/elastic/elastic_record.h"
#include "sim/engine/elastic/host_room.h"
#include "sim/engine/elastic/pace_table.h"

namespace orrery {

class ElasticProgress {
 public:
  const Grants& place() const { return place_; }
  std::int32_t gpus() const { return gpus_; }
  bool is_over() const { return over_; }
  bool has_started() const { return started_; }
  std::int64_t left() const { return left_; }  // of elastic_work
  // The most GPUs on which it computed, and whether it ever did on several hosts.
  std::int32_t most_run() const { return most_run_; }
  bool ran_across() const { return ran_across_; }

  // Another place, with its pace; an empty one: it waits. The step that was begun is lost.
  void move(Grants place, const JobPace& pace, FleetTime now, FleetTime restart,
            ElasticJobRecord& record, ElasticGpuTime& time);
  // Goes on for `span` at its speed less `slower_ppm` millionths; adds where its time goes. It may
  // end, then `record` says when.
  void advance(FleetTime now, FleetTime span, std::int64_t slower_ppm, ElasticJobRecord& record,
               ElasticGpuTime& time);

 private:
  Grants place_;
  std::int32_t gpus_ = 0, most_run_ = 0;
  bool started_ = false, over_ = false, ran_across_ = false;
  JobPace pace_;
  std::int64_t left_ = elastic_work;
  std::int64_t in_step_ps_ = 0;  // computed of the step that runs
  FleetTime to_restart_;         // until its first step on this place
};

}  // namespace orrery
