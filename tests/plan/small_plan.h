// SPDX-License-Identifier: Apache-2.0
// Makes small choices of a plan, with one kind of layout: a test of plans needs no wide grid.
#pragma once

#include "hw_models/catalog.h"
#include "sim/plan/plan.h"
#include "tests/advise/small_question.h"

namespace orrery {

inline constexpr double day = 86400;

inline PlanChoice small_choice(const std::string& cluster, std::int64_t gpus) {
  PlanChoice choice;
  choice.question = small_question(small_dense_model(), 8);
  choice.question.cluster = load_cluster(cluster, std::max<std::int64_t>(1, gpus));
  choice.question.job = small_job(4096, 256);
  choice.question.limits.micro_batch = 1;
  choice.question.limits.recompute = RecomputeChoice{.recompute = Recompute::none};
  choice.question.limits.pp = 1;
  choice.any_count = gpus == 0;
  choice.goal.tokens = 1e12;
  choice.terms.facts = load_bill_facts(choice.question.cluster, {});
  choice.terms.reliability =
      load_reliability(default_reliability(choice.question.cluster.device.name));
  choice.step_key = cluster;
  return choice;
}

}  // namespace orrery
