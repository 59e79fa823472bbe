// SPDX-License-Identifier: Apache-2.0
// Makes months and money of a step.
#include "sim/plan/point.h"

#include <algorithm>
#include <cmath>

#include "sim/outcome/money/rack_fit.h"
#include "sim/outcome/months/checkpoint_traffic.h"
#include "sim/outcome/months/remedies.h"
#include "workloads/parameters/optimizer.h"

namespace orrery {
namespace {

// What is replaced and bought as one: a host, or a scale-up domain of several hosts.
std::int64_t unit_gpus(const Cluster& cluster, const GoodputCase& months) {
  return months.units.hosts > 1 ? cluster.fabric.scale_up.domain : cluster.gpus_per_host;
}

std::int64_t with_spares(const Cluster& cluster, const GoodputCase& months) {
  const std::int64_t units = (months.units.count + months.spares) * unit_gpus(cluster, months);
  return std::max(units, cluster.gpus);
}

void add(std::vector<PlanVerdict>& verdicts, const char* name, double allowed, double needed) {
  if (allowed > 0) verdicts.push_back({.name = name, .allowed = allowed, .needed = needed});
}

void judge(const PlanGoal& goal, Ownership ownership, PlanPoint& point) {
  add(point.verdicts, "deadline", goal.allowed.si(), point.finish.si());
  // A cost without the price of what costs most is none: no limit is met by it.
  const bool priced = point.cost_known() || !point.ends();
  add(point.verdicts, "budget", goal.budget.si(), priced ? point.cost : infinite);
  // Of what is rented nothing is bought: a limit that cannot be missed is no verdict.
  if (ownership == Ownership::buy)
    add(point.verdicts, "capital", goal.capital.si(), priced ? point.capital : infinite);
  const bool rated = first_essential(point.unknown_power).empty();
  add(point.verdicts, "power", goal.power.si(), rated ? point.facility_peak : infinite);
  add(point.verdicts, "racks", goal.racks, rated ? point.racks : infinite);
  add(point.verdicts, "floor", goal.square_metres, rated ? point.square_metres : infinite);
  // Not a limit that was asked for: a job that recovers more slowly than it fails does not end.
  if (!point.ends())
    point.verdicts.push_back(
        {.name = point.stalls() ? "failures" : "a century", .allowed = 1, .needed = infinite});
  point.feasible = std::all_of(point.verdicts.begin(), point.verdicts.end(),
                               [](const PlanVerdict& v) { return v.met(); });
}

// What we predict is an estimate of ours. plan_detail() widens it by the ranges that it knows.
Sourced<Seconds> predicted_duration(Seconds value) {
  return {.value = value,
          .low = value,
          .high = value,
          .evidence = Evidence::estimated,
          .source = "orrery-estimate",
          .reason = "predicted"};
}

void pay(const Bill& b, PlanPoint& point) {
  point.bought = b.bought;
  point.capital = b.capital_total.value.si();
  point.running_per_year = b.running_total.value.si() * seconds_per_year;
  point.facility_peak = b.facility_peak.value.si();
  point.unknown_power = b.facility_peak.unknown;
  point.facility_mean = b.facility_mean.value.si();
  point.racks = b.floor.racks.value;
  point.square_metres = b.floor.white_square_metres.value;
  if (!b.job) return;
  point.cost = b.job->cost.value.si();
  point.unknown_costs = b.job->cost.unknown;
  point.dollars_per_million_tokens = b.job->dollars_per_million_tokens.value.si();
  point.energy = b.job->facility_energy.value.si();
  point.carbon = b.job->operational_carbon.value.si() + b.job->embodied_carbon.value.si();
  point.unknown_carbon = b.job->operational_carbon.unknown;
  for (const std::string& name : b.job->embodied_carbon.unknown)
    point.unknown_carbon.push_back(name);
}

}  // namespace

GoodputCase plan_goodput(const PlanChoice& choice, const Cluster& cluster, const PlanStep& step) {
  const Question& q = choice.question;
  GoodputJob job{.step = step.best.step_time,
                 .tokens_per_step = tokens_per_step(q.job, 1),
                 .tokens = choice.goal.tokens,
                 .replicas = step.best.layout.dp,
                 .storage = choice.terms.storage,
                 .spare_gpus = choice.terms.spare_gpus};
  job.checkpoint = checkpoint_bytes(static_cast<double>(count_parameters(q.model).total),
                                    optimizer_cost(step.best.layout, step.stack, q.model.hidden));
  if (cluster.fabric.scale_up.kind != ScaleUpKind::torus &&
      cluster.fabric.scale_up.domain > cluster.gpus_per_host)
    job.domain_gpus =
        std::min(step.domain_gpus, std::min(cluster.fabric.scale_up.domain, cluster.gpus));
  if (choice.terms.ownership == Ownership::rent && choice.terms.contract == Contract::spot) {
    job.preemption = choice.terms.facts.economics.spot_interruption_rate;
    job.replacement = choice.terms.facts.economics.spot_replacement;
  }
  GoodputCase months = goodput_case(cluster, choice.terms.reliability, job);
  const Scenario alone{.cluster = cluster,
                       .model = q.model,
                       .job = q.job,
                       .layout = step.best.layout,
                       .stack = step.stack};
  for (CheckpointTier& tier : months.tiers) tier.slowed = slowed_by(alone, job.step, tier.flow);
  months.peer_slowed = slowed_by(alone, job.step, months.peer_flow);
  if (choice.terms.remedy.empty()) return months;
  return with_remedy(months, choice.terms.remedy, remedy_options(choice.terms.reliability));
}

BillQuestion plan_bill_question(const PlanChoice& choice, const Cluster& cluster,
                                const PlanStep& step, const GoodputCase& months,
                                const Goodput& goodput) {
  BillQuestion question{.accelerators = with_spares(cluster, months),
                        .tokens = choice.goal.tokens,
                        .ownership = choice.terms.ownership,
                        .facility = choice.terms.facility,
                        .contract = choice.terms.contract,
                        .ranges = false};
  question.spares = question.accelerators - cluster.gpus;
  const double power =
      step.best.energy_per_step.si() / step.best.step_time.si() / static_cast<double>(cluster.gpus);
  if (power > 0) question.accelerator_power = predicted_power(Watts(power));
  question.goodput = std::clamp(goodput.effective, 1e-6, 1.0);
  // The last tier is the remote store: it is bought or rented for what the checkpoints ask of it.
  const CheckpointTier& store = months.tiers.back();
  question.checkpoint = store.size;
  question.storage_read = question.storage_write = store.bandwidth;
  if (goodput.days > 0 && std::isfinite(goodput.days))
    question.duration = predicted_duration(Seconds(goodput.days * seconds_per_day));
  return question;
}

PlanPoint plan_point(const Plan& plan, std::size_t index, std::int64_t gpus, PlanStep step) {
  const PlanChoice& choice = plan.choices[index];
  PlanPoint point{.choice = index, .gpus = gpus, .step = std::move(step)};
  if (!point.step.fits) return point;
  Cluster cluster = choice.question.cluster;
  cluster.gpus = gpus;
  try {
    const GoodputCase months = plan_goodput(choice, cluster, point.step);
    const Goodput lost = goodput(months);
    point.tokens_per_second = months.tokens_per_step / months.step.si();
    point.effective = lost.effective;
    point.duration = Seconds(lost.days * seconds_per_day);
    point.finish = point.duration + choice.terms.wait;
    const BillQuestion question = plan_bill_question(choice, cluster, point.step, months, lost);
    point.spares = months.spares * unit_gpus(cluster, months);
    const Bill owed = bill(cluster, choice.terms.facts, question);
    pay(owed, point);
    point.site_misfit = rack_misfit(cluster, choice.terms.facts, owed);
    judge(choice.goal, choice.terms.ownership, point);
  } catch (const Error& error) {  // of this machine at this size: say so in its row
    point.step.fits = false;
    point.step.why_not = error.message();
  }
  return point;
}

PlanStep spread_over(PlanStep step, std::int64_t gpus) {
  const auto before = static_cast<double>(std::max<std::int64_t>(1, step.best.layout.gpus()));
  step.best.energy_per_step = step.best.energy_per_step * (static_cast<double>(gpus) / before);
  return step;
}

AllowedCount allowed_count(const Plan& plan, std::size_t choice, const PlanStep& step,
                           std::int64_t most) {
  const std::int64_t unit = plan.choices[choice].question.cluster.gpus_per_host;
  // The first limit of size that so many hosts miss; empty: none.
  const auto missed = [&](std::int64_t hosts) -> std::string {
    const PlanPoint p = plan_point(plan, choice, hosts * unit, spread_over(step, hosts * unit));
    if (!p.step.fits) return "wiring";
    for (const PlanVerdict& v : p.verdicts)
      if (v.of_size() && !v.met()) return v.name;
    return "";
  };
  std::int64_t good = 0, bad = most / unit;
  AllowedCount found{.limit = bad > 0 ? missed(bad) : "wiring"};
  if (found.limit.empty()) return {.count = bad * unit};
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    const std::string limit = missed(middle);
    if (!limit.empty()) found.limit = limit;
    (limit.empty() ? good : bad) = middle;
  }
  found.count = good * unit;
  return found;
}

bool PlanVerdict::of_size() const {
  return name == "capital" || name == "power" || name == "racks" || name == "floor";
}

bool PlanPoint::cost_known() const { return cost > 0 && first_essential(unknown_costs).empty(); }

PlanRank plan_rank(const PlanPoint& point, PlanObjective objective) {
  return {!plan_unknown(point, objective).empty(), plan_score(point, objective)};
}

const std::vector<std::string>& plan_unknown(const PlanPoint& point, PlanObjective objective) {
  static const std::vector<std::string> nothing;
  switch (objective) {
    case PlanObjective::cost:
      return point.unknown_costs;
    case PlanObjective::energy:
      return point.unknown_power;
    case PlanObjective::carbon:
      return point.unknown_carbon;
    case PlanObjective::time:
    case PlanObjective::gpus:
      return nothing;
  }
  return nothing;
}

double plan_score(const PlanPoint& point, PlanObjective objective) {
  if (!point.step.fits) return infinite;
  switch (objective) {
    case PlanObjective::time:
      return point.finish.si();
    case PlanObjective::cost:
      return point.cost_known() ? point.cost : infinite;
    case PlanObjective::energy:
      return first_essential(point.unknown_power).empty() ? point.energy : infinite;
    case PlanObjective::carbon:
      return point.carbon > 0 ? point.carbon : infinite;
    case PlanObjective::gpus:
      return static_cast<double>(point.gpus);
  }
  return infinite;
}

double plan_excess(const PlanPoint& point) {
  if (!point.step.fits) return infinite;
  double excess = 0;
  for (const PlanVerdict& v : point.verdicts) excess = std::max(excess, v.needed / v.allowed);
  return excess;
}

bool misses_less(const PlanPoint& a, const PlanPoint& b) {
  if (!a.step.fits || !b.step.fits) return a.step.fits && !b.step.fits;
  const auto missed = [](const PlanPoint& p) {
    return std::count_if(p.verdicts.begin(), p.verdicts.end(),
                         [](const PlanVerdict& v) { return !v.met(); });
  };
  if (missed(a) != missed(b)) return missed(a) < missed(b);
  return plan_excess(a) < plan_excess(b);
}

std::string_view to_text(PlanObjective objective) {
  constexpr auto words = enum_names<PlanObjective>(
      {"least time", "least cost", "least energy", "least carbon", "fewest accelerators"});
  return words[objective];
}

}  // namespace orrery
