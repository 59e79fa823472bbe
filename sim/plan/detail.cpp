// SPDX-License-Identifier: Apache-2.0
// Says everything about one point of a plan: ranges, bill, and what would change it.
#include <algorithm>
#include <cmath>

#include "sim/base/sorting.h"
#include "sim/engine/step/step.h"
#include "sim/explain/explain.h"
#include "sim/explain/levers.h"
#include "sim/outcome/months/remedies.h"
#include "sim/outcome/noise.h"
#include "sim/plan/point.h"

namespace orrery {
namespace {

struct Ground {
  const PlanChoice& choice;
  const Cluster& cluster;
  const PlanStep& step;
};

double cost_of(const Ground& on, const PlanStep& step, const GoodputCase& months) {
  const BillQuestion question =
      plan_bill_question(on.choice, on.cluster, step, months, goodput(months));
  const Bill b = bill(on.cluster, on.choice.terms.facts, question);
  return b.job ? b.job->cost.value.si() : 0;
}

void by_days(std::vector<PlanLever>& levers) {
  sort_stably(levers, [](const PlanLever& a, const PlanLever& b) { return a.days > b.days; });
}

std::vector<PlanLever> machine_levers(const Ground& on, const Scenario& scenario,
                                      const PlanDetail& detail, double cost) {
  std::vector<PlanLever> levers;
  for (const Counterfactual& c : counterfactuals(scenario)) {
    if (!c.applies || c.faster < least_gain) continue;
    PlanStep faster = on.step;
    faster.best.step_time = on.step.best.step_time / (1 + c.faster);
    faster.best.energy_per_step = on.step.best.energy_per_step / (1 + c.faster);
    GoodputCase months = detail.goodput_case;
    months.step = faster.best.step_time;
    levers.push_back({.name = c.name,
                      .note = c.note,
                      .faster = c.faster,
                      .days = detail.goodput.days - goodput(months).days,
                      .dollars = cost - cost_of(on, faster, months)});
  }
  by_days(levers);
  return levers;
}

// The profile's, of a case that holds what the question applies.
RemedyOptions options_of(const PlanTerms& terms) {
  RemedyOptions options = remedy_options(terms.reliability);
  options.applied = terms.remedy;
  return options;
}

std::vector<PlanLever> failure_remedies(const Ground& on, const PlanDetail& detail, double cost) {
  std::vector<PlanLever> levers;
  std::string listed, small;
  const auto name = [](std::string& names, const std::string& one) {
    names += (names.empty() ? "" : ", ") + one;
  };
  for (const Remedy& r : goodput_remedies(detail.goodput_case, options_of(on.choice.terms))) {
    if (!r.reason.empty()) continue;
    const bool all = r.name == remedy_names().back();
    if (!all) name(r.gain < least_gain ? small : listed, r.name);
    if (r.gain < least_gain) continue;
    std::string note = r.action;
    if (all) note = listed + (small.empty() ? "" : "; of little effect alone: " + small);
    levers.push_back({.name = r.name,
                      .note = std::move(note),
                      .days = r.days_saved,
                      .dollars = cost - cost_of(on, on.step, r.changed)});
  }
  if (levers.size() == 2 && levers.back().name == remedy_names().back()) levers.pop_back();
  return levers;
}

Seconds recovery_of(const GoodputCase& months) {
  Seconds whole =
      months.detection.value + months.diagnosis.value + months.start.value + months.warm_up.value;
  if (!months.tiers.empty()) whole += months.tiers.back().read;
  return months.elastic ? std::min(whole, months.detection.value + months.elastic->stall) : whole;
}

// Both edits at once.
WhatIf joined(WhatIf a, const WhatIf& b) {
  for (const KernelSpeedup& k : b.kernels) a.kernels.push_back(k);
  a.tensor_rate *= b.tensor_rate;
  a.unit_rate *= b.unit_rate;
  a.memory_bandwidth *= b.memory_bandwidth;
  a.scale_up_bandwidth *= b.scale_up_bandwidth;
  a.scale_up_domain *= b.scale_up_domain;
  a.network_bandwidth *= b.network_bandwidth;
  a.host_speed *= b.host_speed;
  if (b.power_limit) a.power_limit = b.power_limit;
  a.whole_graphs = a.whole_graphs || b.whole_graphs;
  return a;
}

double all_levers(const Scenario& scenario) {
  WhatIf all;
  for (const Counterfactual& c : counterfactuals(scenario))
    if (c.applies && c.faster >= least_gain) all = joined(std::move(all), c.edit);
  return step_time(scenario) / step_time(with(scenario, all));
}

std::optional<PlanNeed> need_of(const PlanChoice& choice, const Scenario& scenario,
                                const PlanPoint& point, const PlanDetail& detail) {
  const Seconds allowed = choice.goal.allowed - choice.terms.wait;
  if (allowed.si() <= 0 || point.duration <= allowed || !point.ends()) return std::nullopt;
  PlanNeed need{.allowed = allowed, .undisturbed = point.duration * point.effective};
  need.all_levers = all_levers(scenario);
  const auto way = [&](double share, const GoodputRequirement& losses) {
    need.ways.push_back(
        {.effective = share, .faster = need.undisturbed / (allowed * share), .losses = losses});
  };
  way(point.effective, {.recovery = 1, .failures = 1, .latency = 1});
  for (const double share : {0.5, 0.75, 0.9})
    if (share > point.effective) way(share, goodput_requirement(detail.goodput_case, share));
  return need;
}

}  // namespace

std::optional<PlanStall> plan_stall(const Plan& plan, const PlanPoint& point) {
  if (!point.step.fits || !point.stalls()) return std::nullopt;
  const PlanChoice& choice = plan.choices[point.choice];
  Cluster cluster = choice.question.cluster;
  cluster.gpus = point.gpus;
  const GoodputCase months = plan_goodput(choice, cluster, point.step);
  const Goodput lost = goodput(months);
  PlanStall stall{.between_failures = lost.mean_time_to_failure, .recovery = recovery_of(months)};
  stall.interval = lost.tiers.front().interval;
  for (const TierUse& tier : lost.tiers) stall.interval = std::min(stall.interval, tier.interval);
  for (const Remedy& r : goodput_remedies(months, options_of(choice.terms))) {
    const Goodput after = goodput(r.changed);
    PlanPoint changed = point;
    changed.effective = after.effective;
    changed.duration = Seconds(after.days * seconds_per_day);
    const bool all = r.name == remedy_names().back();
    if (!r.reason.empty() || !changed.ends() || (all && !stall.ways.empty())) continue;
    stall.ways.push_back({.remedy = r.name,
                          .how = r.action,
                          .effective = after.effective,
                          .duration = changed.duration});
  }
  sort_stably(stall.ways, [](const auto& a, const auto& b) { return a.effective < b.effective; });
  return stall;
}

PlanDetail plan_detail(const Plan& plan, const PlanPoint& point, const ModelError* error) {
  const PlanChoice& choice = plan.choices[point.choice];
  Cluster cluster = choice.question.cluster;
  cluster.gpus = point.gpus;
  const Ground on{choice, cluster, point.step};
  const Scenario scenario{.cluster = cluster,
                          .model = choice.question.model,
                          .job = choice.question.job,
                          .layout = point.step.best.layout,
                          .stack = point.step.stack};
  PlanDetail detail{.scenario = scenario};
  detail.flags = launch_flags(scenario);
  detail.prediction = simulate(scenario, {.with_assumptions = true, .model_error = error});
  const StepResult timed =
      step(step_context(scenario), scenario.model, scenario.job, scenario.layout, scenario.stack);
  detail.why = explain_limit(scenario.layout, scenario.job, mean_breakdown(timed));
  detail.goodput_case = plan_goodput(choice, cluster, point.step);
  detail.goodput = goodput(detail.goodput_case);
  detail.range = goodput_range(detail.goodput_case, plan.seed);
  // Independent of each other: errors of the step and of the losses join in quadrature.
  const double value = detail.goodput.days * seconds_per_day;
  const auto joined = [](double a, double b) { return std::hypot(std::log(a), std::log(b)); };
  const Prediction& p = detail.prediction;
  const auto& share = detail.range.effective;
  detail.low = Seconds(value * std::exp(-joined(p.step_time / p.low, share.high / share.value)));
  detail.high = Seconds(value * std::exp(joined(p.high / p.step_time, share.value / share.low)));
  BillQuestion question =
      plan_bill_question(choice, cluster, point.step, detail.goodput_case, detail.goodput);
  const double cost = cost_of(on, point.step, detail.goodput_case);
  question.ranges = true;
  // Of a job that hardly gets on the late end may be never: its bill is that of the middle.
  if (question.duration.known() && std::isfinite(detail.high.si())) {
    question.duration.low = detail.low;
    question.duration.high = detail.high;
  }
  detail.bill = bill(cluster, choice.terms.facts, question);
  detail.levers = machine_levers(on, scenario, detail, cost);
  detail.remedies = failure_remedies(on, detail, cost);
  detail.need = need_of(choice, scenario, point, detail);
  return detail;
}

}  // namespace orrery
