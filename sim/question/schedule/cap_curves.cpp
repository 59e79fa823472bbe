// SPDX-License-Identifier: Apache-2.0
// Steps trainings at several caps, and lets recorded jobs follow the clock.
#include "sim/question/schedule/cap_curves.h"

#include <algorithm>

#include "hw_models/power.h"
#include "sim/engine/step/step.h"
#include "sim/explain/what_if.h"
#include "sim/outcome/host_power.h"

namespace orrery {
namespace {

constexpr double least_budget = 0.5;
constexpr int stepped_caps = 8;  // parts of the range: lines between are within 0.1% of steps there

// A device whose limit or idle power is not known has no caps.
bool has_caps(const ResolvedDevice& device) { return device.power_limit > device.idle_power; }

// Caps, or what work draws at clocks.
struct CapRange {
  Watts least, most;
};

CapRange range_to(const ResolvedDevice& device, Watts most) {
  return {device.idle_power + (most - device.idle_power) * least_budget, most};
}

double most_slower(const CapCurve& curve, double idle_milliwatts) {
  const auto above = [&](const CapLevel& level) {
    return static_cast<double>(level.milliwatts) - idle_milliwatts;
  };
  return std::max(curve.front().slower, above(curve.back()) / above(curve.front()));
}

CapPoint stepped(const Scenario& scenario, Watts cap) {
  Scenario capped = scenario;
  capped.cluster = with(scenario.cluster, {.power_limit = cap});
  const StepResult result =
      step(step_context(capped), capped.model, capped.job, capped.layout, capped.stack);
  const double time = to_seconds(result.step).si();
  return {.watts = cap.si(), .drawn = result.energy_per_gpu.si() / time, .step = time};
}

CapCurve training_curve(const Scenario& scenario, double host_watts) {
  const ResolvedDevice device = scenario.cluster.device.resolved();
  const Watts least = range_to(device, device.power_limit).least;
  std::vector<CapPoint> points;
  for (int i = 0; i <= stepped_caps; ++i)
    points.push_back(stepped(scenario, i == stepped_caps
                                           ? device.power_limit
                                           : least + (device.power_limit - least) *
                                                         (static_cast<double>(i) / stepped_caps)));
  return cap_curve(points, host_watts);
}

// What takes `drawn` watts of a device without a cap: exact at each level.
CapCurve recorded_curve(const ResolvedDevice& device, const CapRange& range, double drawn,
                        double host_watts, CapResponse response) {
  const double idle = device.idle_power.si(), least = range.least.si();
  std::vector<CapPoint> points;
  for (int i = 0; i <= cap_steps; ++i) {
    const double cap = least + (range.most.si() - least) * i / cap_steps;
    CapPoint point{.watts = cap, .drawn = std::min(drawn, cap), .step = 1};
    const double budget = drawn > idle ? (point.drawn - idle) / (drawn - idle) : 1;
    if (budget < 1 && response == CapResponse::proportional) point.step = 1 / budget;
    // Alone at a limit work takes its energy over what the limit leaves.
    if (budget < 1 && response == CapResponse::clock)
      point.step = sustained_energy(budget) / budget;
    points.push_back(point);
  }
  return cap_curve(points, host_watts);
}

}  // namespace

std::vector<WorkCaps> work_caps(const FleetJobs& jobs, const Cluster& cluster, CapResponse response,
                                bool clocks) {
  const ResolvedDevice device = cluster.device.resolved();
  const double host = host_power_per_accelerator(cluster).si();
  const CapRange all = range_to(device, device.power_limit);
  std::vector<WorkCaps> out(jobs.works.size());
  if (!has_caps(device)) return out;
  const auto add = [&](std::uint16_t work, std::string name, const CapRange& range,
                       const CapCurve& curve) {
    CapCurve whole = curve;
    whole.back().milliwatts = jobs.works[work].milliwatts;
    out[work] = {.name = std::move(name),
                 .least = range.least,
                 .most = range.most,
                 .curve = whole,
                 .most_slower = most_slower(whole, 1e3 * (device.idle_power.si() + host))};
  };
  const auto add_recorded = [&](std::uint16_t work, std::string name) {
    const double drawn = static_cast<double>(jobs.works[work].milliwatts) * 1e-3 - host;
    const CapRange range = clocks ? range_to(device, Watts(drawn)) : all;
    add(work, std::move(name), range, recorded_curve(device, range, drawn, host, response));
  };
  if (!jobs.traces.empty() || !jobs.mixes.empty()) add_recorded(0, "recorded");
  for (const FleetTraining& training : jobs.trainings) {
    add(training.job.work, training.id, all, training_curve(training.scenario, host));
    for (const FleetTraining& size : training.sizes)
      add(size.job.work, training.id + " on " + std::to_string(size.job.gpus), all,
          training_curve(size.scenario, host));
  }
  for (const BatchInference& batch : jobs.batches) add_recorded(batch.job.work, batch.id);
  for (const PostTraining& job : jobs.post_trainings) add_recorded(job.job.work, job.id);
  return out;
}

}  // namespace orrery
