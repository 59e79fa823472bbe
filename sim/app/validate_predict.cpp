// Predicts prepared rows: the executor, the memory verdict and the range.
#include "sim/app/validate_predict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/json.h"
#include "sim/engine/memory_fit.h"
#include "sim/outcome/extrapolation.h"

namespace orrery {
namespace {

ModelError::Range read_range(const JsonValue& at) {
  at.expect_only({"below", "above"});
  return {.below = at.at("below").number(), .above = at.at("above").number()};
}

const StageBreakdown& pacing_stage(const StepResult& result) {
  const auto least = std::min_element(
      result.stages.begin(), result.stages.end(),
      [](const auto& a, const auto& b) { return a[Label::bubble].ps < b[Label::bubble].ps; });
  return *least;
}

std::string largest_label(const StageBreakdown& stage) {
  Label largest = Label::gemm;
  for (int i = 0; i < label_count; ++i)
    if (stage[static_cast<Label>(i)].ps > stage[largest].ps) largest = static_cast<Label>(i);
  return std::string(to_text(largest));
}

// Variance of the step that leaving the curves' regions adds: each curve at the end of its widened
// range, joined as independent. Effects under a thousandth are not worth a step.
double extrapolated_variance(const PreparedRow& row, const RowPrediction& p) {
  double variance = 0;
  for (const Extrapolation& e : p.extrapolations) {
    if (e.growth < 1e-3) continue;
    Calibration slower = row.cluster->context->calibration;
    for (Curve& curve : slower.curves)
      if (Calibration::name(curve) == e.curve) *curve.scale.value *= 1 + e.growth;
    const StepContext& own = *row.cluster->context;
    const StepContext context{.fabric = own.fabric,
                              .collective_costs = own.collective_costs,
                              .device = own.device,
                              .calibration = slower,
                              .clock_factor = own.clock_factor,
                              .host_memory_bandwidth = own.host_memory_bandwidth,
                              .loaded = own.loaded};
    const StepResult moved = step(context, row.model, row.job, row.layout, row.stack);
    const double effect = to_seconds(moved.step).si() / p.step_seconds - 1;
    variance += effect * effect;
  }
  return variance;
}

void add_range(RowPrediction& p, const PreparedRow& row, const ModelError& error) {
  const auto& regions = row.model.has_experts() ? error.experts : error.stacks;
  const auto found = regions.find(row.stack.name);
  const ModelError::Range own = found == regions.end() ? error.fallback : found->second;
  const double variance =
      error.each_assumption * error.each_assumption * static_cast<double>(row.assumed.size()) +
      extrapolated_variance(row, p);
  const auto joined = [variance](double share) { return std::sqrt(share * share + variance); };
  p.low_tokens = p.tokens_per_second_per_gpu * std::max(0.05, 1 - joined(own.below));
  p.high_tokens = p.tokens_per_second_per_gpu * (1 + joined(own.above));
}

}  // namespace

ModelError load_model_error(const std::filesystem::path& path) {
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"default", "stacks", "experts", "collectives", "each_assumption", "memory"});
  ModelError error;
  error.fallback = read_range(file.at("default"));
  for (const auto& [name, range] : file.at("stacks").members())
    error.stacks[name] = read_range(range);
  for (const auto& [name, range] : file.at("experts").members())
    error.experts[name] = read_range(range);
  for (const auto& [name, range] : file.at("collectives").members())
    error.collectives[name] = read_range(range);
  error.each_assumption = file.at("each_assumption").number();
  error.memory = file.at("memory").number();
  return error;
}

ModelError::Range ModelError::collective(const std::string& library, bool crosses_domains,
                                         bool large) const {
  const auto found = collectives.find(collective_region(library, crosses_domains, large));
  if (found != collectives.end()) return found->second;
  Range widest = fallback;
  for (const auto& [name, range] : collectives) {
    widest.below = std::max(widest.below, range.below);
    widest.above = std::max(widest.above, range.above);
  }
  return widest;
}

std::string collective_region(const std::string& library, bool crosses_domains, bool large) {
  return fmt::format("{}, {}, {} 1 MiB", library, crosses_domains ? "across" : "one domain",
                     large ? "from" : "below");
}

void settle_recompute(PreparedRow& row, const ModelError& error) {
  if (!row.skipped.empty() || row.recompute_choices.empty()) return;
  for (const Recompute choice : row.recompute_choices) {
    row.layout.recompute = choice;
    const MemoryVerdict memory =
        memory_fit(row.model, row.job, row.layout, row.stack, row.cluster->context->device);
    if (memory.reserved <= memory.capacity * (1 + error.memory)) break;
  }
  row.assumed.push_back(fmt::format("recompute not stated: {}", to_text(row.layout.recompute)));
  row.recompute_choices.clear();
}

double predict_step(const PreparedRow& row, const Stack& stack) {
  return to_seconds(step(*row.cluster->context, row.model, row.job, row.layout, stack).step).si();
}

double tokens_per_second(const PreparedRow& row, double seconds) {
  const Job& job = row.job;
  double tokens = static_cast<double>(job.global_batch * job.sequence);
  if (job.task == Task::prefill) tokens = static_cast<double>(job.batch * job.sequence);
  if (job.task == Task::decode) tokens = static_cast<double>(job.batch);
  return tokens / seconds / static_cast<double>(row.layout.gpus());
}

RowPrediction predict_row(const PreparedRow& row, const ModelError& error) {
  RowPrediction p;
  if (!row.skipped.empty()) return p;
  const StepResult result = step(*row.cluster->context, row.model, row.job, row.layout, row.stack);
  p.made = true;
  p.step_seconds = to_seconds(result.step).si();
  p.tokens_per_second_per_gpu = tokens_per_second(row, p.step_seconds);
  p.stage = pacing_stage(result);
  p.bottleneck = largest_label(p.stage);
  const MemoryVerdict memory =
      memory_fit(row.model, row.job, row.layout, row.stack, row.cluster->context->device);
  p.peak_gibibytes = in_gibibytes(memory.peak);
  for (const StageMemory& stage : memory.stages)
    p.static_gibibytes = std::max(p.static_gibibytes, in_gibibytes(stage.static_bytes()));
  p.out_of_memory = !memory.fits;
  p.extrapolations =
      find_extrapolations(*row.cluster->context, row.model, row.job, row.layout, row.stack);
  add_range(p, row, error);
  return p;
}

}  // namespace orrery
