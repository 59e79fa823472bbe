// SPDX-License-Identifier: Apache-2.0
// Chooses what a rank's next step computes, as released engines do.
#pragma once

#include <memory>

#include "sim/engine/serving/rank.h"

namespace orrery {

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // The rank's next step, which starts now.
  virtual RankPlan& plan(Rank& rank, Ticks now) const = 0;
  // After so many steps of decodes alone.
  virtual void stepped(Rank&, std::int64_t) const {}
};

std::unique_ptr<Scheduler> make_scheduler(const EnginePolicy& policy);
std::unique_ptr<Scheduler> make_sglang_scheduler();  // the one of kind sglang

}  // namespace orrery
