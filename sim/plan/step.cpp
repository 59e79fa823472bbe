// SPDX-License-Identifier: Apache-2.0
// Searches the fastest step of a plan's point.
#include <algorithm>
#include <cmath>

#include "sim/base/errors/interrupt.h"
#include "sim/engine/capability.h"
#include "sim/engine/placement.h"
#include "sim/outcome/model_flop.h"
#include "sim/plan/point.h"

namespace orrery {
namespace {

// A rank with fewer tokens has too little attention to hide the exchange of keys and values behind
// (Llama 3 trains 8K with cp 1, 128K with cp 16: arXiv 2407.21783, table 4): a sweep leaves it to
// the search of all layouts.
constexpr std::int64_t sweep_context_tokens = 4096;

// The part of the grid that a sweep looks at.
SearchLimits sweep_limits(const Question& q) {
  const StackDefaults defaults =
      catalogue_stack(q.stack_name, q.cluster, q.model, q.job, q.precisions.front()).defaults;
  SearchLimits narrow = q.limits;
  // A group that is asked for needs a stage that shards, which the usual one need not do.
  if (!narrow.zero_stage && narrow.shard_group.value_or(0) == 0)
    narrow.zero_stage = defaults.zero_stage;
  if (!narrow.offload) narrow.offload = Offload{};
  narrow.least_context_tokens = sweep_context_tokens;
  if (!narrow.rank_order) narrow.rank_order = RankOrder();
  if (!narrow.sequence_parallel) narrow.sequence_parallel = defaults.sequence_parallel;
  return narrow;
}

void tell(const Question& q, const Advice& advice, PlanStep& step) {
  step.fits = true;
  step.best = advice.best.front();
  step.stack = advice.stack;
  step.why_not.clear();
  step.lacks.clear();
  const ResolvedDevice device = q.cluster.device.resolved();
  const auto rate = [&](Format f) { return device.tensor_rate[static_cast<std::size_t>(f)].si(); };
  const double peak = rate(Format::bf16) > 0 ? rate(Format::bf16) : rate(Format::fp16);
  if (peak > 0)
    step.mfu = model_flop_per_token(q.model, q.job) * step.best.tokens_per_second_per_gpu / peak;
  step.domain_gpus = place(step.best.layout, q.cluster.fabric).ranks_per_domain;
}

}  // namespace

PlanStep plan_step(const Question& question, double memory_reserve, const StepSearch& how) {
  PlanStep step;
  AdviseOptions options{
      .top = 1, .threads = how.threads, .memory_reserve = memory_reserve, .brief = true};
  Question q = question;
  const auto search = [&] {
    const Advice advice = advise(q, options);
    if (options.most_batches > 0) step.batches = advice.batches;
    if (interrupted()) {
      step = {.why_not = "stopped before it was searched"};
      return;
    }
    if (advice.best.empty() || advice.stopped_early) {
      step.why_not =
          advice.stopped_early ? "no layout was found within the work of a sweep" : advice.why;
      step.lacks = advice.stopped_early    ? "the work of a search"
                   : advice.considered > 0 ? std::string(lacks_memory)
                                           : "sizes that do not divide";
      return;
    }
    tell(q, advice, step);
  };
  try {
    for (const PrecisionRecipe precision : question.precisions) {
      const Stack stack = catalogue_stack(question.stack_name, question.cluster, question.model,
                                          question.job, precision);
      step.why_not = cannot_run(stack, question.cluster.device, precision);
      step.runs = step.why_not.empty();
      if (!step.runs) return step;
    }
    if (!how.full) {
      q.limits = sweep_limits(question);
      search();
      if (step.fits || interrupted() || how.most_batches <= 0) return step;
    }
    q.limits = question.limits;
    options.most_batches = how.most_batches;
    search();
  } catch (const Error& error) {  // of this machine alone: a format that it lacks, a fabric's end
    step.why_not = error.info().expected.empty()
                       ? error.message()
                       : error.info().found + "; possible: " + error.info().expected;
  }
  return step;
}

}  // namespace orrery
