// SPDX-License-Identifier: Apache-2.0
// Predicts prepared rows: the executor, the memory verdict and the range.
#include "sim/validate/score/predict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/engine/memory_fit.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/extrapolation.h"
#include "sim/outcome/simulate.h"

namespace orrery {
namespace {

std::string largest_label(const StageBreakdown& stage) {
  Label largest = Label::gemm;
  for (int i = 0; i < label_count; ++i)
    if (stage[static_cast<Label>(i)].ps > stage[largest].ps) largest = static_cast<Label>(i);
  return std::string(to_text(largest));
}

}  // namespace

Scenario row_scenario(const PreparedRow& row) {
  return {.cluster = row.cluster->cluster,
          .model = row.model,
          .job = row.job,
          .layout = row.layout,
          .stack = row.stack};
}

RunKind run_kind(const PreparedRow& row) {
  const Device& device = row.cluster->cluster.device;
  RunKind run = run_kind(row.stack, row.model, row.job, row.layout, device);
  run.family = row.family;
  if (!row.program.empty()) run.program = row.program;
  run.blanks = static_cast<int>(row.assumed.size());
  return run;
}

void settle_recompute(PreparedRow& row, const ModelError& error) {
  if (!row.skipped.empty() || row.recompute_choices.empty()) return;
  Stack stack = row.stack;
  // The program behind a stand-in may keep its gradients in 16 bits.
  if (!row.program.empty()) stack.sharding.gradient_storage = Format::bf16;
  const Optimizer usual = row.layout.optimizer;
  for (const MemorySaver& saver : row.recompute_choices) {
    row.layout.set(saver.recompute);
    row.layout.optimizer = saver.optimizer;
    const MemoryVerdict memory =
        memory_fit(row.model, row.job, row.layout, stack, row.cluster->context->device);
    if (memory.needed <= memory.capacity * (1 + error.memory)) break;
  }
  row.assumed.push_back(
      fmt::format("recompute not stated: {}", to_text(row.layout.recompute_choice())));
  if (row.layout.optimizer != usual) row.assumed.push_back("moments in 16 bits: it fits so");
  row.recompute_choices.clear();
}

double predict_step(const PreparedRow& row, const Stack& stack) {
  return to_seconds(step(*row.cluster->context, row.model, row.job, row.layout, stack).step).si();
}

double tokens_per_second(const PreparedRow& row, double seconds) {
  return tokens_per_step(row.job, 1) / seconds / static_cast<double>(row.layout.gpus());
}

RowPrediction predict_speed(const PreparedRow& row) {
  RowPrediction p;
  if (!row.skipped.empty()) return p;
  const StepResult result = step(*row.cluster->context, row.model, row.job, row.layout, row.stack);
  p.made = true;
  p.step_seconds = to_seconds(result.step).si();
  p.tokens_per_second_per_gpu = tokens_per_second(row, p.step_seconds);
  p.stage = result.stages[static_cast<std::size_t>(pacing_stage(result.stages))];
  p.bottleneck = largest_label(p.stage);
  const MemoryVerdict memory =
      memory_fit(row.model, row.job, row.layout, row.stack, row.cluster->context->device);
  p.peak_gibibytes = in_gibibytes(memory.peak);
  p.reserved_gibibytes = in_gibibytes(memory.reserved);
  for (const StageMemory& stage : memory.stages)
    p.static_gibibytes = std::max(p.static_gibibytes, in_gibibytes(stage.static_bytes()));
  p.out_of_memory = !memory.fits;
  p.run = run_kind(row);
  add_step(p.run, p.stage, memory);
  p.extrapolations =
      find_extrapolations(*row.cluster->context, row.model, row.job, row.layout, row.stack);
  return p;
}

void add_range(RowPrediction& p, const PreparedRow& row, const ModelError& error) {
  if (!p.made) return;
  const std::vector<Assumption> assumptions = used_assumptions(row_scenario(row), p.extrapolations);
  p.stated = prediction_range(p.run, assumptions, p.extrapolations, nullptr);
  p.range = prediction_range(p.run, assumptions, p.extrapolations, &error);
  p.low_tokens = p.tokens_per_second_per_gpu * std::exp(-p.range.above.total());
  p.high_tokens = p.tokens_per_second_per_gpu * std::exp(p.range.below.total());
}

RowPrediction predict_row(const PreparedRow& row, const ModelError& error) {
  RowPrediction p = predict_speed(row);
  add_range(p, row, error);
  return p;
}

}  // namespace orrery
