// SPDX-License-Identifier: Apache-2.0
// Searches steps, or takes those of a record.
#include "sim/plan/kept_steps.h"

#include "sim/advise/search/records.h"

namespace orrery {

// A step without its stack, which follows from the question and the layout's precision.
struct KeptSteps::Kept {
  PlanStep step;
  friend auto fields(EitherConst<Kept> auto& kept) {
    auto& [fits, runs, why_not, lacks, best, stack, mfu, domain_gpus, batches] = kept.step;
    static_cast<void>(stack);
    return std::tie(fits, runs, why_not, lacks, best, mfu, domain_gpus, batches);
  }
};

KeptSteps::KeptSteps(std::string_view record) : next_(0) {
  for (Kept& kept : from_record_text<std::vector<Kept>>(record))
    steps_.push_back(std::move(kept.step));
}

PlanStep KeptSteps::step(const Question& question, double memory_reserve, const StepSearch& how) {
  if (!next_) {
    steps_.push_back(plan_step(question, memory_reserve, how));
    return steps_.back();
  }
  expect_record(*next_ < steps_.size());
  PlanStep step = steps_[(*next_)++];
  if (step.fits)
    step.stack = catalogue_stack(question.stack_name, question.cluster, question.model,
                                 question.job, step.best.layout.precision);
  return step;
}

std::string KeptSteps::record() const {
  std::vector<Kept> kept;
  for (const PlanStep& step : steps_) kept.push_back({step});
  return record_text(kept);
}

}  // namespace orrery
