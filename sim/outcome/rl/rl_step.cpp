// SPDX-License-Identifier: Apache-2.0
// Puts the phases of an RL step together.
#include "sim/outcome/rl/rl_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

[[noreturn]] void refuse(std::string found, std::string expected) {
  throw Error({.file = "RL job", .found = std::move(found), .expected = std::move(expected)});
}

// Out and back.
Seconds there_and_back(Bytes bytes, BytesPerSecond rate) { return 2 * (bytes / rate); }

Seconds handover_time(const RlJob& job, const RlStep& step) {
  const ResolvedDevice device = job.cluster.device.resolved();
  const BytesPerSecond link = device.host_bandwidth;
  const BytesPerSecond copy = std::min(job.program.host_copy.get(), link);
  Seconds policy = there_and_back(step.passes.optimizer, copy);
  if (job.training.reference)
    policy += job.program.reference_copies.get() * (step.passes.parameters / copy);
  if (job.split()) return policy;
  // Engines keep their weights in pinned memory while they sleep.
  return policy + there_and_back(step.passes.parameters, copy) +
         there_and_back(step.rollout.weights, link);
}

// The job where ranks stand that nobody placed by scale-up domain: of no two hosts is it known that
// they share one.
RlJob placed(RlJob job) {
  std::int64_t& domain = job.cluster.fabric.scale_up.domain;
  if (!job.program.places_by_domain) domain = std::min(domain, job.cluster.gpus_per_host);
  return job;
}

}  // namespace

void check_rl_job(const RlJob& job) {
  const Layout& layout = job.training.layout;
  const std::int64_t engine = job.generation.layout.gpus();
  if (job.responses < 1 || job.training.update_batch < 1)
    refuse("no responses", "a batch of a step and one of an update");
  if (job.generation.gpus >= job.cluster.gpus)
    refuse(fmt::format("{} of {} GPUs that only generate", job.generation.gpus, job.cluster.gpus),
           "some that train");
  if (job.steps_off > 0 && !job.split())
    refuse(fmt::format("{} steps off on shared GPUs", job.steps_off),
           "GPUs of their own for generation and training");
  if (job.generation_gpus() % engine != 0)
    refuse(fmt::format("{} GPUs that generate", job.generation_gpus()),
           fmt::format("a multiple of the {} of an engine", engine));
  if (layout.gpus() != job.training_gpus())
    refuse(fmt::format("a layout of {} GPUs", layout.gpus()),
           fmt::format("one of the {} that train", job.training_gpus()));
  const Job trained{.task = Task::sft,
                    .sequence = job.lengths.context,
                    .global_batch = layout.dp * layout.micro_batch};
  if (const auto why = invalid_reason(layout, job.model, trained, job.training_gpus()))
    refuse(*why, "a layout that can run");
}

RlStep predict_rl_step(const RlJob& asked, int threads) {
  check_rl_job(asked);
  const RlJob job = placed(asked);
  const std::vector<std::int64_t> responses = draw_responses(job.lengths, job.responses, job.seed);
  RlStep out;
  out.rollout = predict_rollout(job, responses, threads);
  out.passes = predict_passes(job, responses);
  out.sync = predict_weight_sync(job);
  out.handover = handover_time(job, out);
  out.host = static_cast<double>(job.responses) * job.program.response.get();
  out.trains = out.host + out.passes.logprobs + out.passes.training + out.handover;
  const bool beside = job.steps_off > 0;
  out.validation = predict_validation(job, threads);
  const Seconds trainer = out.trains + out.validation;
  out.step =
      out.sync.time() + (beside ? std::max(out.rollout.time, trainer) : out.rollout.time + trainer);
  out.waits_for_generation = beside && out.rollout.time > trainer;
  for (const std::int64_t tokens : responses)
    out.tokens += static_cast<double>(tokens + job.lengths.prompt_tokens());
  out.tokens_per_gpu = out.tokens / out.step.si() / static_cast<double>(job.cluster.gpus);
  return out;
}

}  // namespace orrery
