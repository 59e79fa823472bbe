// Says everything about one point of a plan: ranges, bill, and what would change it.
#include <algorithm>
#include <cmath>

#include "sim/advise/explain.h"
#include "sim/advise/levers.h"
#include "sim/advise/plan_point.h"
#include "sim/outcome/goodput_remedies.h"

namespace orrery {
namespace {

constexpr double least_gain = 0.002;  // below it a lever is noise

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
  std::stable_sort(levers.begin(), levers.end(),
                   [](const PlanLever& a, const PlanLever& b) { return a.days > b.days; });
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

std::vector<PlanLever> failure_remedies(const Ground& on, const PlanDetail& detail, double cost) {
  std::vector<PlanLever> levers;
  for (const Remedy& r : goodput_remedies(detail.goodput_case)) {
    if (!r.reason.empty() || r.gain < least_gain) continue;
    levers.push_back({.name = r.name,
                      .note = r.action,
                      .days = r.days_saved,
                      .dollars = cost - cost_of(on, on.step, r.changed)});
  }
  return levers;
}

}  // namespace

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
  PlanDetail detail;
  detail.prediction = simulate(scenario, {.with_assumptions = true, .model_error = error});
  const StepResult timed =
      step(step_context(scenario), scenario.model, scenario.job, scenario.layout, scenario.stack);
  detail.why = explain_limit(scenario.layout, scenario.job, mean_breakdown(timed));
  detail.goodput_case = plan_goodput(choice, cluster, point.step);
  detail.goodput = goodput(detail.goodput_case);
  detail.range = goodput_range(detail.goodput_case);
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
  if (question.duration.known()) {
    question.duration.low = detail.low;
    question.duration.high = detail.high;
    question.duration.evidence = Evidence::estimated;
    question.duration.source = "orrery-estimate";
  }
  detail.bill = bill(cluster, choice.terms.facts, question);
  detail.levers = machine_levers(on, scenario, detail, cost);
  detail.remedies = failure_remedies(on, detail, cost);
  return detail;
}

}  // namespace orrery
