// SPDX-License-Identifier: Apache-2.0
// Packs the responses and prices forward passes and training steps over them.
#include "sim/outcome/rl/policy_passes.h"

#include <algorithm>

#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/step.h"
#include "workloads/memory/memory.h"

namespace orrery {
namespace {

// Sequences are padded to whole blocks of this many tokens, and to what their ranks divide
// (sequence_length_round of NeMo RL's recipes).
constexpr std::int64_t block = 64;

std::vector<std::int64_t> with_prompts(const RlJob& job, std::vector<std::int64_t> responses) {
  for (std::int64_t& tokens : responses) tokens += job.lengths.prompt_tokens();
  return responses;
}

PackingRules rules_of(const RlJob& job, std::int64_t fill) {
  const Layout& layout = job.training.layout;
  return {.ranks = layout.dp,
          .capacity = job.lengths.context * fill,
          .round = block * layout.tp * layout.cp,
          .alike = layout.pp > 1,
          .packed = job.training.packed,
          .together = fill};
}

// A training job of such microbatches, one packed sequence each. Its sequences attend inside their
// documents.
Job job_of(const PackedBatch& batch, const Layout& layout) {
  return {.task = Task::sft,
          .sequence = batch.tokens,
          .global_batch = batch.microbatches * layout.dp * layout.micro_batch,
          .mean_document = batch.document < batch.tokens ? batch.document : 0};
}

// The stack with what the program's own loss moves, of microbatches with so many sequences. Stacks
// count half of it forward: `forward_only` doubles the forward part.
Stack with_loss(const RlJob& job, double sequences, bool forward_only) {
  const RlProgram& program = job.program;
  const double forward = program.logit_forward.get();
  const double all = forward + program.logit_backward.get() +
                     program.logit_sequence.get() * std::max(1.0, sequences);
  Stack stack = job.training.stack;
  stack.kernels.loss_bytes_per_logit.value = forward_only ? 2 * forward : all;
  return stack;
}

// Forward passes alone: microbatches follow each other through the stages, which wait for the
// slowest one.
Seconds forward_time(const StepContext& context, const RlJob& job, const PackedBatch& batch) {
  const Layout& layout = job.training.layout;
  const Stack stack = with_loss(job, 1, true);
  const StepPipeline p = step_pipeline(context, job.model, job_of(batch, layout), layout, stack);
  Ticks first, slowest;
  for (std::int64_t s = 0; s < layout.pp; ++s) {
    Ticks stage;
    for (std::int64_t c = 0; c < p.shape.chunks; ++c) {
      const ChunkCost& chunk = p.costs.chunk[static_cast<std::size_t>(s * p.shape.chunks + c)];
      stage += chunk.forward;
      first += chunk.forward + chunk.send_forward;
    }
    slowest = max(slowest, stage);
  }
  return to_seconds(first + slowest * (batch.microbatches - 1));
}

}  // namespace

PolicyPasses predict_passes(const RlJob& job, const std::vector<std::int64_t>& responses) {
  const RlTraining& training = job.training;
  const Cluster cluster = with_count(job.cluster, job.training_gpus());
  const StepContext context = step_context(cluster);
  const std::vector<std::int64_t> sequences = with_prompts(job, responses);
  PolicyPasses out;
  const auto count = static_cast<std::int64_t>(sequences.size());
  const std::int64_t each = std::min(training.update_batch, count);
  out.updates = (count + each - 1) / each;
  for (std::int64_t u = 0; u < out.updates; ++u) {
    const std::vector<std::int64_t> part(sequences.begin() + u * each,
                                         sequences.begin() + std::min(count, (u + 1) * each));
    const PackedBatch packed = pack(part, rules_of(job, 1));
    if (u == 0) out.update = packed;
    const double shared = static_cast<double>(part.size()) /
                          static_cast<double>(packed.microbatches * training.layout.dp);
    const Stack stack = with_loss(job, shared, false);
    out.training += to_seconds(
        step(context, job.model, job_of(packed, training.layout), training.layout, stack).step);
  }
  out.logprob = pack(sequences, rules_of(job, training.logprob_fill));
  out.logprobs = (training.reference ? 2 : 1) * forward_time(context, job, out.logprob);
  for (const StageMemory& stage : training_memory(job.model, job_of(out.update, training.layout),
                                                  training.layout, training.stack)) {
    out.optimizer = std::max(out.optimizer, stage[MemoryCategory::optimizer]);
    out.parameters = std::max(out.parameters, stage[MemoryCategory::parameters]);
    out.gradients = std::max(out.gradients, stage[MemoryCategory::gradients]);
  }
  return out;
}

}  // namespace orrery
