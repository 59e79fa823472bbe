// SPDX-License-Identifier: Apache-2.0
// Bounds a step from below: tensor work at the best efficiency, and the pipeline's
// fill.
#include "sim/advise/search/bound.h"

#include <algorithm>
#include <cmath>

#include "workloads/operations/training.h"

namespace orrery {

namespace {

// Tiles, waves, alignment, memory and clocks only lengthen this (hw_models/kernel/kernel_time).
double tensor_seconds(const Operation& operation, const StepContext& context) {
  const Kernel* kernel = operation.kernel();
  if (!kernel) return 0;
  const Work& work = kernel->work;
  const double operations = tensor_flop(work);
  const double rate = context.device.tensor_rate[static_cast<std::size_t>(work.input)].si();
  if (operations <= 0 || rate <= 0) return 0;
  const Curve& curve = context.calibration.curve(work.kind, work.input, kernel->library);
  double factor = *curve.scale.value / std::max(curve.tensor_efficiency, 1e-6);
  if (is_product(work.kind)) factor *= curve.role_factor[static_cast<std::size_t>(work.role)];
  return operation.count * operations / rate * factor;
}

double tensor_seconds(const Segment& segment, const StepContext& context) {
  double sum = 0;
  for (const Operation& operation : segment.operations) sum += tensor_seconds(operation, context);
  return sum;
}

double tensor_seconds(const LayerProgram& layer, const StepContext& context) {
  return tensor_seconds(layer.forward, context) + tensor_seconds(layer.backward, context);
}

double tensor_seconds(const StepProgram& program, const StepContext& context) {
  double sum = 0;
  for (const ChunkProgram& chunk : program.chunks) {
    if (chunk.embedding) sum += tensor_seconds(program.embedding, context);
    if (chunk.head) sum += tensor_seconds(program.head, context);
    for (std::size_t c = 0; c < program.classes.size(); ++c) {
      const LayerProgram& layer = program.classes[c];
      const double plain = tensor_seconds(layer, context);
      if (c < chunk.layers.size()) sum += chunk.layers[c] * plain;
      if (c < chunk.recomputed.size())
        sum += chunk.recomputed[c] * (plain + tensor_seconds(layer.recompute, context));
    }
  }
  return sum;
}

}  // namespace

StepBound::StepBound(const StepContext& context, const Model& model, const Job& job,
                     const Stack& stack, const Layout& like)
    : job_(job) {
  if (!is_training(job.task)) return;  // the few layouts of an inference step are all simulated
  Layout whole;                        // one GPU, one sequence: splitting never removes operations
  whole.sequence_parallel = false;
  whole.precision = like.precision;
  whole.optimizer = like.optimizer;
  Job one = job;
  one.global_batch = 1;
  one.expert_imbalance = 1;
  plain_ = tensor_seconds(lower_training(model, one, whole, stack), context);
  whole.recompute = Recompute::full;
  recomputed_ = tensor_seconds(lower_training(model, one, whole, stack), context);
}

double pipeline_passes(std::int64_t stages, std::int64_t microbatches) {
  const double p = static_cast<double>(stages), m = static_cast<double>(microbatches);
  return 1 / (1 - std::pow(1 - 1 / m, p));
}

Seconds StepBound::operator()(const Layout& layout) const {
  const std::int64_t microbatches = layout.microbatches(job_);
  if (microbatches <= 0) return Seconds(0);
  const bool all_recomputed = layout.recompute == Recompute::full && layout.recompute_layers == 0;
  const double one_gpu =
      static_cast<double>(layout.micro_batch) * (all_recomputed ? recomputed_ : plain_);
  const double replica = one_gpu / static_cast<double>(layout.tp * layout.cp);
  const bool fills = layout.schedule == Schedule::one_f_one_b || layout.schedule == Schedule::gpipe;
  // Schedules that cut a stage's layers or split the backward fill sooner: only the work is
  // certain.
  const double passes = fills ? pipeline_passes(layout.pp, microbatches)
                              : static_cast<double>(microbatches) / static_cast<double>(layout.pp);
  // Context parallelism counts a causal row's keys as half of all, not (n + 1) / 2; the same factor
  // covers the rounding of every pass to whole picoseconds.
  const double rows = static_cast<double>(
      job_.mean_document > 0 ? std::min(job_.mean_document, job_.sequence) : job_.sequence);
  return Seconds(replica * passes * (rows / (rows + 1)));
}

}  // namespace orrery
