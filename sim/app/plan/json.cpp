// SPDX-License-Identifier: Apache-2.0
// Writes plans for machines.
#include <fmt/format.h>

#include <cmath>

#include "sim/app/answer/answer.h"
#include "sim/app/plan/report.h"
#include "sim/app/report/parts.h"
#include "sim/app/report/reasons_json.h"
#include "sim/base/json/tree.h"

namespace orrery {
namespace {

Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }

// What the point's money is paid for.
std::string contract_name(const PlanTerms& terms) {
  return terms.ownership == Ownership::buy ? "owned" : std::string(to_text(terms.contract));
}

Json levers_json(const std::vector<PlanLever>& levers) {
  Json out = Json::array();
  for (const PlanLever& l : levers)
    out.push_back({{"name", l.name},
                   {"note", l.note},
                   {"faster", l.faster},
                   {"saved_s", number(l.days * seconds_per_day)},
                   {"saved_usd", number(l.dollars)}});
  return out;
}

Json bill_lines_json(const std::vector<JobLine>& lines) {
  Json out = Json::array();
  for (const JobLine& line : lines)
    out.push_back({{"item", line.item}, {"amount_usd", number(line.amount.value.si())}});
  return out;
}

Json memory_json(const MemoryVerdict& m) {
  return {{"fits", m.fits},
          {"reserved_bytes", m.reserved.si()},
          {"needed_bytes", m.needed.si()},
          {"needed_low_bytes", m.needed_low.si()},
          {"needed_high_bytes", m.needed_high.si()},
          {"capacity_bytes", m.capacity.si()},
          {"probability", m.probability}};
}

Json need_json(const PlanNeed& need) {
  Json ways = Json::array();
  for (const PlanNeed::Way& way : need.ways)
    ways.push_back({{"effective", way.effective},
                    {"faster", number(way.faster)},
                    {"failures_factor", way.losses.failures},
                    {"recovery_factor", way.losses.recovery}});
  return {{"allowed_s", need.allowed.si()},
          {"undisturbed_s", need.undisturbed.si()},
          {"all_levers_faster", need.all_levers},
          {"ways", ways}};
}

Json detail_json(const PlanDetail& d) {
  Json shares = Json::object();
  for (int i = 0; i < time_share_count; ++i)
    shares[json_key(to_text(static_cast<TimeShare>(i)))] =
        d.goodput.shares[static_cast<std::size_t>(i)];
  Json capital = Json::object();
  for (int i = 0; i < capital_group_count; ++i)
    capital[json_key(to_text(static_cast<CapitalGroup>(i))) + "_usd"] =
        d.bill.capital_by_group[static_cast<std::size_t>(i)].value.si();
  Json out = {{"why", d.why},
              {"step_time_low_s", d.prediction.low.si()},
              {"step_time_high_s", d.prediction.high.si()},
              {"duration_low_s", number(d.low.si())},
              {"duration_high_s", number(d.high.si())},
              {"time_shares", shares},
              {"mean_time_to_failure_s", number(d.goodput.mean_time_to_failure.si())},
              {"capital_by_group", capital},
              {"levers", levers_json(d.levers)},
              {"remedies", levers_json(d.remedies)},
              {"memory", memory_json(d.prediction.memory)}};
  Reasons start;
  start.flags = d.flags;
  out["launch"] = reasons_json(start)["launch"];
  if (d.need) out["need"] = need_json(*d.need);
  if (d.bill.job) {
    out["job_lines"] = bill_lines_json(d.bill.job->lines);
    out["cost_low_usd"] = number(d.bill.job->cost.low.si());
    out["cost_high_usd"] = number(d.bill.job->cost.high.si());
  }
  return out;
}

}  // namespace

Json point_json(const PlanFile& file, const PlanPoint& p) {
  const PlanChoice& choice = file.plan.choices[p.choice];
  Json values = Json::object();
  for (std::size_t i = 0; i < file.plan.varied.size(); ++i)
    values[file.plan.varied[i]] = choice.values[i];
  Json out = {{"cluster", choice.question.cluster.name},
              {"model", choice.question.model.name},
              {"values", values},
              {"gpus", p.gpus},
              {"fits", p.step.fits},
              {"feasible", p.feasible}};
  if (!p.step.fits) {
    out["why_not"] = p.step.why_not;
    return out;
  }
  out.update({{"layout", layout_json(p.step.best.layout)},
              {"fully_searched", p.fully_searched},
              {"step_time_s", p.step.best.step_time.si()},
              {"tokens_per_s", p.tokens_per_second},
              {"mfu", p.step.mfu},
              {"peak_memory_bytes", p.step.best.peak_memory.si()},
              {"effective", p.effective},
              {"ends", p.ends()},
              {"tokens", choice.goal.tokens},
              {"flop", choice.goal.flop.si() > 0 ? Json(choice.goal.flop.si()) : Json(nullptr)},
              {"duration_s", number(p.duration.si())},
              {"finish_s", number(p.finish.si())},
              {"spares", p.spares},
              {"bought", p.bought},
              {"cost_usd", number(p.cost)},
              {"capital_usd", p.capital},
              {"running_per_year_usd", p.running_per_year},
              {"cost_per_million_tokens_usd", number(p.dollars_per_million_tokens)},
              {"unknown_costs", p.unknown_costs},
              {"unknown_power", p.unknown_power},
              {"unknown_carbon", p.unknown_carbon},
              {"contract", contract_name(choice.terms)},
              {"energy_j", number(p.energy)},
              {"carbon_kg", number(p.carbon)},
              {"facility_peak_w", p.facility_peak},
              {"facility_mean_w", p.facility_mean},
              {"racks", p.racks},
              {"white_space_m2", p.square_metres},
              {"binding", p.binding},
              {"allowed_gpus", p.allowed > 0 ? Json(p.allowed) : Json(nullptr)},
              {"allowed_by", p.allowed_by},
              {"largest_tried", p.largest_tried}});
  Json verdicts = Json::array();
  for (const PlanVerdict& v : p.verdicts)
    verdicts.push_back({{"limit", v.name},
                        {"allowed", v.allowed},
                        {"needed", number(v.needed)},
                        {"met", v.met()}});
  out["verdicts"] = verdicts;
  return out;
}

Json plan_json(const PlanFile& file, const PlanResult& result,
               const std::optional<PlanDetail>& detail) {
  Json points = Json::array();
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    points.push_back(point_json(file, result.points[i]));
    Json tried = Json::array();
    for (const PlanPoint& p : result.tried[i]) tried.push_back(point_json(file, p));
    if (!tried.empty()) points.back()["tried"] = tried;
  }
  Json front = Json::array();
  for (const PlanPoint& p : result.front) front.push_back(point_json(file, p));
  Json out = {{"title", file.title},
              {"varied", file.plan.varied},
              {"objective", to_text(file.plan.choices.front().goal.objective)},
              {"stopped_early", result.stopped_early()},
              {"best", result.best ? Json(*result.best) : Json(nullptr)},
              {"points", points},
              {"front", front},
              {"availability", file.availability},
              {"premises", file.premises}};
  Json answers = Json::array();
  for (const auto& answer : job_answers(file, result))
    answers.push_back(answer ? Json(*answer) : Json(nullptr));
  out["best_of_jobs"] = answers;
  Json same = Json::array();
  for (std::size_t i = 0; i < result.points.size(); ++i)
    for (std::size_t j = i + 1; j < result.points.size(); ++j)
      if (same_machine(result.points[i], result.points[j])) same.push_back({i, j});
  out["same"] = same;
  if (result.stopped_early()) out["stopped_after"] = stopped_json(result.stopped_after);
  if (detail) out["detail"] = detail_json(*detail);
  return out;
}

AnswerVerdict verdict_of(const PlanFile& file, const PlanResult& result,
                         const std::optional<PlanDetail>& detail) {
  const Verdict judged = orrery::verdict_of(result);
  AnswerVerdict verdict{.fits = judged.exists(), .runs = judged.runs};
  if (detail && judged.exists()) verdict.probability = detail->prediction.memory.probability;
  if (judged.exists()) return verdict;
  if (result.stopped_early()) verdict.fits = std::nullopt;
  if (const auto nearest = detailed_point(result); nearest && !result.points[*nearest].feasible)
    verdict.why = missed_text(file, result.points[*nearest]);
  for (const PlanPoint& p : result.points)
    if (verdict.why.empty() && !p.step.fits) verdict.why = p.step.why_not;
  return verdict;
}

}  // namespace orrery
