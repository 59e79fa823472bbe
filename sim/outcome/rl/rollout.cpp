// SPDX-License-Identifier: Apache-2.0
// Serves a closed batch: every request is there at time 0.
#include "sim/outcome/rl/rollout.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/check.h"
#include "sim/outcome/serving/service.h"

namespace orrery {
namespace {

std::shared_ptr<const RequestList> requests_of(const RlJob& job,
                                               const std::vector<std::int64_t>& responses,
                                               std::int64_t steps) {
  auto list = std::make_shared<RequestList>();
  for (std::int64_t step = 0; step < steps; ++step)
    for (const std::int64_t tokens : responses)
      list->requests.push_back({.arrival = {},
                                .prompt = static_cast<std::int32_t>(job.lengths.prompt_tokens()),
                                .output = static_cast<std::int32_t>(tokens)});
  return list;
}

// When half of the tokens were there, each response's as evenly as it got them.
Seconds half_time(const ServicePrediction& served) {
  std::vector<std::pair<Ticks, std::int64_t>> ends;
  std::int64_t all = 0, sum = 0;
  for (std::size_t i = 0; i < served.timeline.requests.size(); ++i) {
    const std::int64_t tokens = served.requests.requests[i].output;
    ends.emplace_back(served.timeline.requests[i].last, tokens);
    all += tokens;
  }
  std::sort(ends.begin(), ends.end());
  for (const auto& [end, tokens] : ends)
    if ((sum += tokens) * 2 >= all) return to_seconds(end);
  return to_seconds(served.timeline.end);
}

}  // namespace

Rollout predict_rollout(const RlJob& job, const std::vector<std::int64_t>& responses, int threads) {
  const std::int64_t steps = std::max<std::int64_t>(1, job.steps_off);
  ServiceCase asked;
  asked.cluster = with_count(job.cluster, job.generation_gpus());
  asked.model = job.model;
  asked.stack = job.generation.stack;
  ServingHost& host = asked.stack.serving.host;
  host.step.value = host.step.get() + job.program.engine_step.get();
  host.ranks.value = host.ranks.get() + job.program.engine_ranks.get();
  if (!job.program.ranks_ahead && job.generation.layout.gpus() > 1) host.schedules_ahead = false;
  asked.stack.serving.memory.share = job.generation.memory_share;
  asked.engines = {.layout = job.generation.layout,
                   .replicas = job.generation_gpus() / job.generation.layout.gpus()};
  asked.traffic.arrivals = TraceArrivals{};
  asked.traffic.requests = 0;
  asked.traffic.trace = requests_of(job, responses, steps);
  asked.seed = job.seed;
  const ServicePrediction served = predict_service(asked, {.threads = threads});
  if (!served.refusal.empty())
    throw CannotExist(
        {.file = "generation", .found = served.refusal, .expected = "engines that fit"});
  Ticks last;
  for (const RequestRecord& r : served.timeline.requests) last = max(last, r.last);
  return {.time = to_seconds(last) / static_cast<double>(steps),
          .half = half_time(served) / static_cast<double>(steps),
          .batch = served.batch,
          .weights = served.memory.weights,
          .engines = asked.engines.replicas};
}

Seconds predict_validation(const RlJob& job, int threads) {
  const std::int64_t batches = job.validation.batches();
  if (batches == 0) return {};
  RlJob alone = job;
  alone.steps_off = 0;
  const Rollout batch = predict_rollout(
      alone, draw_responses(job.lengths, job.validation.together, job.seed), threads);
  return static_cast<double>(batches) * batch.time / static_cast<double>(job.validation.period);
}

}  // namespace orrery
