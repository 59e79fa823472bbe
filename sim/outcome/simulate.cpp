// SPDX-License-Identifier: Apache-2.0
// Makes predictions: step, memory, energy, money, and the values behind them.
#include "sim/outcome/simulate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw_models/price/economics.h"
#include "sim/engine/network/loaded_transfer.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/assumptions.h"
#include "sim/outcome/extrapolation.h"
#include "sim/outcome/model_flop.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

template <class T>
void append_value(std::vector<double>& values, const Sourced<T>& sourced) {
  if constexpr (std::is_same_v<T, double>)
    values.push_back(sourced.value.value_or(-1));
  else
    values.push_back(sourced.value.value_or(T(-1)).si());
}

std::vector<double> stack_values(const Scenario& s) {
  std::vector<double> values;
  visit_stack_values(
      s.stack, [&values](std::string_view, const auto& sourced) { append_value(values, sourced); });
  return values;
}

// What memory_fit reads of the values that are moved, beside those of the stack.
std::vector<double> capacity_values(const Scenario& s) {
  std::vector<double> values;
  append_value(values, s.cluster.device.memory_capacity);
  append_value(values, s.cluster.device.memory_usable);
  return values;
}

// What loaded_transfer reads of them: capacities of links, no latencies.
std::vector<double> fabric_values(const Scenario& s) {
  std::vector<double> values;
  visit_fabric_values(s.cluster.fabric, [&values](std::string_view path, const auto& sourced) {
    if (path.find("latency") == std::string_view::npos) append_value(values, sourced);
  });
  return values;
}

// Outputs of a scenario whose values are moved one by one: what does not read them is kept. Ranges
// are those of the ideal network, also for a prediction on flows: the same values matter, and a
// step is evaluated more than a hundred times.
class MovedOutputs {
 public:
  explicit MovedOutputs(const Scenario& s)
      : capacity_(capacity_values(s)),
        fabric_(fabric_values(s)),
        stack_(stack_values(s)),
        program_(lower_step(s.model, s.job, s.layout, s.stack)) {
    const ResolvedDevice device = step_context(s).device;
    margin_ = memory_fit(s.model, s.job, s.layout, s.stack, device).margin;
  }
  Outputs operator()(const Scenario& s) {
    StepContext context = step_context(s);
    context.network = NetworkMode::ideal;
    const bool same_stack = stack_values(s) == stack_;
    if (same_stack) context.program = &program_;
    LoadedTransfers own;  // where the fabric itself was moved
    context.loaded = fabric_values(s) == fabric_ ? &loaded_ : &own;
    const StepResult result = step(context, s.model, s.job, s.layout, s.stack);
    double margin = margin_;
    if (!same_stack || capacity_values(s) != capacity_)
      margin = memory_fit(s.model, s.job, s.layout, s.stack, context.device).margin;
    // A margin in capacity is part of the verdict, so both sides count.
    return {.step = to_seconds(result.step).si(),
            .energy = result.energy_per_gpu.si(),
            .reserved = margin,
            .rental = context.device.rental.si()};
  }

 private:
  std::vector<double> capacity_, fabric_, stack_;
  StepProgram program_;
  double margin_ = 0;
  LoadedTransfers loaded_;
};

std::string bottleneck_text(const StageBreakdown& stage, Ticks step, std::int64_t index) {
  std::array<std::pair<Ticks, Label>, label_count> parts;
  for (int i = 0; i < label_count; ++i)
    parts[static_cast<std::size_t>(i)] = {stage.label[static_cast<std::size_t>(i)],
                                          static_cast<Label>(i)};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto share = [&](Ticks t) {
    return 100 * static_cast<double>(t.ps) /
           static_cast<double>(std::max<std::int64_t>(1, step.ps));
  };
  return fmt::format("stage {} paces the step: {:.0f}% goes to {}, {:.0f}% to {} and {:.0f}% to {}",
                     index, share(parts[0].first), phrase(parts[0].second), share(parts[1].first),
                     phrase(parts[1].second), share(parts[2].first), phrase(parts[2].second));
}

void add_money(Prediction& p, const Scenario& s, const SimulateOptions& options,
               const ResolvedDevice& device, double tokens) {
  StepPrice& price = p.price;
  const bool given = options.rental_per_gpu_hour > 0;
  price.rental_per_gpu =
      given ? DollarsPerSecond(options.rental_per_gpu_hour / seconds_per_hour) : device.rental;
  price.contract = given ? "as given" : to_text(Contract::on_demand);
  price.per_step = price.rental_per_gpu * p.step_time * static_cast<double>(s.layout.gpus());
  price.per_million_tokens = price.per_step * (1e6 / tokens);
}

void add_utilisation(Prediction& p, const Scenario& s) {
  Utilisation& u = p.utilisation;
  const double flop = model_flop_per_token(s.model, s.job);
  u.model_flop_per_token = Flop(flop);
  const ResolvedDevice device = s.cluster.device.resolved();
  const auto rate = [&](Format f) { return device.tensor_rate[static_cast<std::size_t>(f)]; };
  u.peak_format = rate(Format::bf16) > FlopPerSecond(0) ? Format::bf16 : Format::fp16;
  u.peak = rate(u.peak_format);
  if (u.peak <= FlopPerSecond(0)) return;
  u.mfu = flop * p.tokens_per_second_per_gpu / u.peak.si();
  auto* training = std::get_if<TrainingStep>(&p.kind);
  if (training == nullptr) return;
  double recomputed = 0;
  if (s.layout.recompute == Recompute::full) {
    const double layers = static_cast<double>(s.model.layer_count());
    const double chosen =
        s.layout.recompute_layers > 0
            ? std::min(layers, static_cast<double>(s.layout.recompute_layers * s.layout.pp))
            : layers;
    recomputed = forward_flop_per_token(s.model, s.job) * chosen / layers;
  }
  training->hfu = u.mfu * (1 + recomputed / flop);
}

}  // namespace

void check_precision(const ResolvedDevice& device, PrecisionRecipe precision) {
  if (is_weight_only(precision))
    throw Error({.file = "precision",
                 .path = "",
                 .found = fmt::format("{}, a format of served checkpoints", to_text(precision)),
                 .expected = "orrery serve, or a recipe of computing",
                 .nearest = ""});
  const Format format = linear_format(precision);
  if (device.tensor_rate[static_cast<std::size_t>(format)] > FlopPerSecond(0)) return;
  std::string have;
  for (Format other : {Format::bf16, Format::fp16, Format::fp8, Format::fp4})
    if (device.tensor_rate[static_cast<std::size_t>(other)] > FlopPerSecond(0))
      have += (have.empty() ? "" : ", ") + std::string(to_text(other));
  throw Error({.file = "precision",
               .found = fmt::format("{} on {}, which has no {} products", to_text(precision),
                                    device.name, to_text(format)),
               .expected = "a recipe in " + have});
}

namespace {

void check_placement(const Scenario& s) {
  std::optional<std::string> reason = unplaceable_reason(s.layout, s.cluster.fabric);
  if (!reason && s.network == NetworkMode::flow && !s.layout.rank_order.is_default())
    reason = fmt::format("rank order {} on the flow network, which knows {} only",
                         to_text(s.layout.rank_order), to_text(RankOrder()));
  if (reason)
    throw Error({.file = "layout",
                 .found = *reason,
                 .expected = "a placement that the cluster and the network have"});
}

// Offloading needs a known link to the host, and its memory's bandwidth for the optimizer.
void check_offload(const Scenario& s, const StepContext& context) {
  const Layout& l = s.layout;
  const bool any = l.offload_weights || l.offload_optimizer || l.offload_activations;
  const bool link = context.device.host_bandwidth > BytesPerSecond(0);
  const bool memory = context.host_memory_bandwidth > BytesPerSecond(0);
  if (!any || (link && (memory || !l.offload_optimizer))) return;
  throw Error({.file = "offload",
               .found = fmt::format(
                   "{} {}", link ? s.cluster.host.name : s.cluster.device.name,
                   link ? "without a known memory bandwidth" : "without a known link to its host"),
               .expected = "a host that the catalogue knows"});
}

}  // namespace

std::vector<Assumption> used_assumptions(const Scenario& s,
                                         const std::vector<Extrapolation>& extrapolations) {
  Scenario widened = s;
  widened.network = NetworkMode::ideal;
  widen_extrapolated(widened.cluster.calibration, extrapolations);
  std::vector<std::string> curves =
      used_curves(step_context(widened), s.model, s.job, s.layout, s.stack);
  MovedOutputs outputs(widened);
  return find_assumptions(std::move(widened), std::ref(outputs), curves);
}

Prediction simulate(const Scenario& s, const SimulateOptions& options) {
  check_precision(s.cluster.device.resolved(), s.layout.precision);
  if (const auto reason =
          invalid_reason(s.layout, s.model, s.job, s.cluster.gpus, s.stack.sharding.partition))
    throw Error({.file = "layout",
                 .path = "",
                 .found = *reason,
                 .expected = "a layout that fits the model, the batch and the cluster",
                 .nearest = ""});
  check_placement(s);
  const StepContext context = step_context(s);
  check_offload(s, context);
  const StepResult result = step(context, s.model, s.job, s.layout, s.stack);
  Prediction p;
  p.step_time = to_seconds(result.step);
  const double tokens = tokens_per_step(s.job, s.layout.dp);
  const auto gpus = static_cast<double>(s.layout.gpus());
  p.tokens_per_second = tokens / p.step_time.si();
  p.tokens_per_second_per_gpu = p.tokens_per_second / gpus;
  p.stages = result.stages;
  p.bottleneck_stage = pacing_stage(p.stages);
  p.bottleneck = bottleneck_text(p.stages[static_cast<std::size_t>(p.bottleneck_stage)],
                                 result.step, p.bottleneck_stage);
  p.memory = memory_fit(s.model, s.job, s.layout, s.stack, context.device);
  p.energy_per_step = result.energy_per_gpu * gpus;
  p.energy_per_token = p.energy_per_step / tokens;
  p.mean_power_per_gpu = result.energy_per_gpu / p.step_time;
  p.throttle = result.throttle;
  p.scale_up_bytes = result.scale_up_bytes;
  p.scale_out_bytes = result.scale_out_bytes;
  p.network = result.network;
  p.undisturbed = p.step_time;
  if (s.network == NetworkMode::flow) {
    StepContext ideal = context;
    ideal.network = NetworkMode::ideal;
    p.undisturbed = to_seconds(step(ideal, s.model, s.job, s.layout, s.stack).step);
  }
  if (!is_training(s.job.task))
    p.kind = InferenceStep{s.job.task == Task::prefill ? Latency::ttft : Latency::tpot};
  add_utilisation(p, s);
  add_money(p, s, options, context.device, tokens);
  p.low = p.high = p.step_time;
  p.extrapolations = find_extrapolations(context, s.model, s.job, s.layout, s.stack);
  if (options.with_assumptions) {
    p.assumptions = used_assumptions(s, p.extrapolations);
    RunKind run = run_kind(s);
    add_step(run, p.stages[static_cast<std::size_t>(p.bottleneck_stage)], p.memory);
    p.range = prediction_range(run, p.assumptions, p.extrapolations, options.model_error);
    p.low = p.step_time * std::exp(-p.range->below.total());
    p.high = p.step_time * std::exp(p.range->above.total());
  }
  return p;
}

}  // namespace orrery
