// SPDX-License-Identifier: Apache-2.0
// Splits the rent of GPUs over kinds of tokens, and adds up the energy of their steps.
#include "sim/outcome/serving/service_cost.h"

#include <algorithm>

#include "hw_models/power.h"

namespace orrery {
namespace {

double seconds_of(__int128 picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }

// The prompt of a mean request: what was cached of it, and what was computed.
struct MeanPrompt {
  std::int64_t cached = 0, computed = 1;
};

MeanPrompt mean_prompt(const ServiceSummary& s) {
  const std::int64_t requests = std::max<std::int64_t>(1, s.requests);
  return {.cached = s.cached_tokens / requests,
          .computed = std::max<std::int64_t>(1, (s.prompt_tokens - s.cached_tokens) / requests)};
}

StepShape step_of(std::int64_t start, std::int64_t tokens) {
  StepShape shape;
  shape.chunks.push_back({start, tokens});
  shape.sampled = 1;
  return shape;
}

double prompts_share(const ServicePrediction& p, const ServiceCase& asked) {
  if (asked.decode)
    return static_cast<double>(asked.engines.gpus()) / static_cast<double>(asked.gpus());
  const ServiceTotals& t = p.timeline.totals;
  const double busy = seconds_of(t.busy), mixed = seconds_of(t.mixed_time);
  if (busy <= 0) return 0;
  const double decodes = static_cast<double>(t.mixed_steps) * p.step.total().si();
  const double prompts = busy - seconds_of(t.decode_time) - mixed + std::max(0.0, mixed - decodes);
  return prompts / busy;
}

void add_money(ServicePrediction& p, const ServiceCase& asked, const EnginePrices& prompts) {
  const ServiceSummary& s = p.summary;
  if (p.rental.si() <= 0 || s.output_tokens == 0) return;
  const double dollars = p.rental.si() * static_cast<double>(asked.gpus()) * s.span.si();
  const double share = prompts_share(p, asked);
  if (!asked.target.bounds.empty() && p.target.tokens > 0)
    p.cost.promised = 1e6 * dollars / static_cast<double>(p.target.tokens);
  p.cost.output = 1e6 * dollars * (1 - share) / static_cast<double>(s.output_tokens);
  const MeanPrompt mean = mean_prompt(s);
  const double alone = to_seconds(prompts.step(step_of(0, mean.computed))).si();
  const double behind = to_seconds(prompts.step(step_of(mean.cached, mean.computed))).si();
  const double reading = behind > 0 ? std::max(0.0, 1 - alone / behind) : 0;
  const std::int64_t computed = s.prompt_tokens - s.cached_tokens;
  if (computed > 0)
    p.cost.input = 1e6 * dollars * share * (1 - reading) / static_cast<double>(computed);
  if (s.cached_tokens > 0)
    p.cost.cached = 1e6 * dollars * share * reading / static_cast<double>(s.cached_tokens);
}

// GPUs that a step of a batch keeps busy, one stage of a pipeline after the other.
double gpus_of_step(const EngineGroup& group) {
  return static_cast<double>(group.layout.tp * group.layout.attention_dp);
}

void add_power(ServicePrediction& p, const ServiceCase& asked, const EnginePrices& prompts) {
  const ResolvedDevice device = asked.cluster.device.resolved();
  const ServiceTotals& t = p.timeline.totals;
  const std::int64_t tokens =
      std::min(mean_prompt(p.summary).computed, asked.stack.serving.policy.token_budget);
  const StepParts prompt = prompts.parts(step_of(0, tokens));
  p.cost.prompts = mean_power(prompt.energy, prompt.total(), device);
  p.cost.decodes = mean_power(p.step.energy, p.step.total(), device);
  const double time = to_seconds(p.timeline.end).si();
  if (time <= 0) return;
  // A rank computes its prompts; all ranks of an engine decode together.
  const double of_prompts = static_cast<double>(t.prefilled) / static_cast<double>(tokens) *
                            prompt.energy.si() * static_cast<double>(asked.engines.layout.tp);
  const double of_decodes = static_cast<double>(t.decode_steps + t.mixed_steps) *
                            p.step.energy.si() *
                            gpus_of_step(asked.decode ? *asked.decode : asked.engines);
  const double gpus = static_cast<double>(asked.gpus());
  p.cost.mean = mean_power(Joules((of_prompts + of_decodes) / gpus), Seconds(time), device);
  if (p.summary.output_rate > 0)
    p.cost.per_output = Joules(p.cost.mean.si() * gpus / p.summary.output_rate);
}

}  // namespace

void add_cost(ServicePrediction& p, const ServiceCase& asked, const EnginePrices& prompts) {
  if (p.summary.requests == 0) return;
  add_money(p, asked, prompts);
  add_power(p, asked, prompts);
}

}  // namespace orrery
