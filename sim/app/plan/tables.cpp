// SPDX-License-Identifier: Apache-2.0
// Writes the tables of plans.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/app/plan/report.h"
#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr std::size_t most_front = 12;

std::string count(std::int64_t n) { return grouped(n); }

std::string figure(double v, int digits = 3) {
  if (!(std::abs(v) < 1e9)) return "-";
  if (std::abs(v) >= 999.5) return grouped(v);
  if (v > 0 && v < 0.0001) return "<0.0001";
  return fmt::format("{:.{}g}", v, digits);
}

std::string verdict(const PlanPoint& p) {
  if (p.feasible) return "met";
  if (p.stalls()) return "never ends";
  if (!p.ends()) return "over 100 years";
  std::string text;
  for (const PlanVerdict& v : p.verdicts)
    if (!v.met())
      text += fmt::format("{}{} {}x", text.empty() ? "" : ", ", v.name,
                          std::isfinite(v.needed) ? excess_text(v.needed / v.allowed) : "-");
  return text;
}

// Names of varied values that a row shows: all but the cluster and the count, which come first.
std::vector<std::size_t> shown_values(const PlanFile& file) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < file.plan.varied.size(); ++i)
    if (file.plan.varied[i] != "cluster" && file.plan.varied[i] != "gpus") shown.push_back(i);
  return shown;
}

// What an objective that is neither time nor money counts, in one unit for a whole table.
struct Counted {
  std::string header;  // empty: time, money and accelerators have their columns already
  double unit = 1;
  double PlanPoint::*amount = nullptr;
};

Counted counted_by(PlanObjective objective, const std::vector<PlanPoint>& points) {
  const auto most = [&](double PlanPoint::*amount) {
    double largest = 0;
    for (const PlanPoint& p : points)
      if (p.step.fits && p.ends()) largest = std::max(largest, p.*amount);
    return largest;
  };
  constexpr double megawatt_hour = 3.6e9, gigawatt_hour = 3.6e12, tonne = 1e3, kilotonne = 1e6;
  if (objective == PlanObjective::energy)
    return most(&PlanPoint::energy) < gigawatt_hour
               ? Counted{"MWh", megawatt_hour, &PlanPoint::energy}
               : Counted{"GWh", gigawatt_hour, &PlanPoint::energy};
  if (objective == PlanObjective::carbon)
    return most(&PlanPoint::carbon) < kilotonne ? Counted{"t CO2e", tonne, &PlanPoint::carbon}
                                                : Counted{"kt CO2e", kilotonne, &PlanPoint::carbon};
  return {};
}

// Of a cost or a price: "+" where parts of it are not known.
std::string cost_cell(const PlanPoint& p, double dollars) {
  if (p.stalls()) return "-";
  if (!p.cost_known()) return "unknown";
  return figure(dollars) + (p.unknown_costs.empty() ? "" : "+");
}

std::vector<std::string> point_cells(const PlanPoint& p, const Counted& counted, bool limited) {
  std::vector<std::string> cells = {
      figure(p.step.best.step_time.si()),
      fmt::format("{:.1f}", 100 * p.step.mfu),
      p.effective < 0.001 ? "0" : fmt::format("{:.1f}", 100 * p.effective),
      p.stalls() ? "never" : figure(p.finish.si() / seconds_per_day),
      cost_cell(p, p.cost / 1e6),
      counted.amount == nullptr ? cost_cell(p, p.dollars_per_million_tokens)
      : p.stalls()              ? "-"
                                : figure(p.*counted.amount / counted.unit),
      figure(p.facility_peak / 1e6)};
  if (limited) cells.push_back(verdict(p));
  return cells;
}

std::string counted_note(PlanObjective objective) {
  if (objective == PlanObjective::energy) return " MWh, GWh: of the facility, for the job.";
  if (objective == PlanObjective::carbon)
    return " CO2e: of the grid, and the job's share of making the accelerators.";
  return "";
}

void add_legend(Document& document, const PlanFile& file, bool limited) {
  const bool rents =
      std::any_of(file.plan.choices.begin(), file.plan.choices.end(),
                  [](const PlanChoice& c) { return c.terms.ownership == Ownership::rent; });
  const bool buys =
      std::any_of(file.plan.choices.begin(), file.plan.choices.end(),
                  [](const PlanChoice& c) { return c.terms.ownership == Ownership::buy; });
  document.note(
      fmt::format("MFU: of the dense BF16 peak (FP8 and FP4 may exceed 100). useful%: share of the "
                  "time that counts. $ million: of the "
                  "job, {}. MW: what the facility must "
                  "provide.{}{}",
                  rents && buys ? "its share of owning, or its rent"
                  : rents       ? "its rent"
                                : "its share of owning the machines, over their life",
                  counted_note(file.plan.choices.front().goal.objective),
                  limited ? " Limits: needed over allowed." : ""));
}

// Why nothing fits or what no price is known of, and the points of which that is true.
using Remarks = std::map<std::string, std::vector<std::string>>;

std::string remark_of(const PlanPoint& p) {
  if (!p.step.fits) return p.step.why_not;
  if (p.unknown_costs.empty() || p.stalls()) return "";
  return fmt::format("the cost is {}; not known: {}.",
                     p.cost_known() ? "at least what is shown (+)" : "unknown",
                     unknown_text(p.unknown_costs));
}

void add_remarks(Document& document, const Remarks& remarks) {
  for (const auto& [remark, points] : remarks) {
    const std::size_t named = std::min<std::size_t>(points.size(), 4);
    std::string names = joined(std::span(points).first(named), "; ");
    if (points.size() > named) names += fmt::format(" and {} more", points.size() - named);
    document.item(fmt::format("{}: {}", names, remark));
  }
}

}  // namespace

std::string unknown_text(const std::vector<std::string>& unknown) {
  std::vector<std::pair<std::string, std::string>> parts;  // name, what of it
  for (const std::string& path : unknown) {
    const std::size_t colon = std::min(path.rfind(": "), path.size());
    const std::string name = path.substr(0, colon);
    const std::string what = colon < path.size() ? path.substr(colon + 2) : std::string("price");
    const auto known = std::find_if(parts.begin(), parts.end(),
                                    [&](const auto& part) { return part.first == name; });
    if (known == parts.end())
      parts.emplace_back(name, what);
    else
      known->second += " and " + what;
  }
  std::string text;
  for (const auto& [name, what] : parts)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", what, name);
  return text;
}

bool same_job(const PlanChoice& a, const PlanChoice& b) {
  return a.question.model.name == b.question.model.name && a.goal.tokens == b.goal.tokens;
}

std::vector<std::optional<std::size_t>> job_answers(const PlanFile& file,
                                                    const PlanResult& result) {
  std::vector<const PlanChoice*> jobs;
  std::vector<std::optional<std::size_t>> answers;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const PlanPoint& p = result.points[i];
    const PlanChoice& choice = file.plan.choices[p.choice];
    const auto known = std::find_if(jobs.begin(), jobs.end(),
                                    [&](const PlanChoice* job) { return same_job(*job, choice); });
    const auto at = static_cast<std::size_t>(known - jobs.begin());
    if (known == jobs.end()) {
      jobs.push_back(&choice);
      answers.emplace_back();
    }
    const PlanObjective objective = choice.goal.objective;
    if (p.step.fits && p.feasible &&
        (!answers[at] ||
         plan_rank(p, objective) < plan_rank(result.points[*answers[at]], objective)))
      answers[at] = i;
  }
  return answers;
}

void add_point_table(Document& document, const PlanFile& file, const PlanResult& result) {
  std::set<std::size_t> best;
  for (const auto& answer : job_answers(file, result))
    if (answer) best.insert(*answer);
  if (best.size() <= 1) best = result.best ? std::set{*result.best} : std::set<std::size_t>{};
  document.gap().heading(best.size() > 1 ? "All points (* the best for its job):"
                                         : "All points (* the best):");
  const std::vector<std::size_t> shown = shown_values(file);
  const bool limited = std::any_of(result.points.begin(), result.points.end(),
                                   [](const PlanPoint& p) { return !p.verdicts.empty(); });
  std::vector<std::string> header = {"", "cluster", "GPUs"};
  std::vector<Align> align = {Align::left, Align::left, Align::right};
  for (const std::size_t i : shown) {
    header.push_back(file.plan.varied[i]);
    align.push_back(Align::left);
  }
  const bool budgets =
      std::find(file.plan.varied.begin(), file.plan.varied.end(), "flop") != file.plan.varied.end();
  if (budgets) {
    header.emplace_back("Ttok");
    align.push_back(Align::right);
  }
  // An amount that the objective counts stands where dollars a token would.
  const Counted counted = counted_by(file.plan.choices.front().goal.objective, result.points);
  const std::string each = counted.header.empty() ? "$/Mtok" : counted.header;
  for (const char* name : {"step s", "MFU%", "useful%", "days", "$ million", each.c_str(), "MW"}) {
    header.emplace_back(name);
    align.push_back(Align::right);
  }
  if (limited) {
    header.emplace_back("limits");
    align.push_back(Align::left);
  }
  Table table(header, align);
  Remarks remarks;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const PlanPoint& p = result.points[i];
    const PlanChoice& choice = file.plan.choices[p.choice];
    if (const std::string remark = remark_of(p); !remark.empty())
      remarks[remark].push_back(point_name(file, p));
    if (!p.step.fits && result.stopped_early()) continue;
    const std::string mark = p.site_misfit.empty() ? "" : "!";
    std::vector<std::string> row = {(best.contains(i) ? "*" : "") + mark,
                                    choice.question.cluster.name, count(p.gpus)};
    for (const std::size_t v : shown) row.push_back(choice.values[v]);
    if (budgets) row.push_back(figure(choice.goal.tokens / 1e12));
    if (p.step.fits)
      for (std::string& cell : point_cells(p, counted, limited)) row.push_back(std::move(cell));
    else
      row.emplace_back("-");
    table.add(row);
  }
  document.table(std::move(table));
  add_legend(document, file, limited);
  add_remarks(document, remarks);
}

void add_front(Document& document, const PlanFile& file, const PlanResult& result) {
  if (result.front.size() < 2 || job_answers(file, result).size() > 1) return;
  document.gap().heading("Time against money (nothing else is both sooner and cheaper):");
  const bool limited = std::any_of(result.front.begin(), result.front.end(),
                                   [](const PlanPoint& p) { return !p.verdicts.empty(); });
  const Counted counted = counted_by(file.plan.choices.front().goal.objective, result.front);
  std::vector<std::string> header = {"days", "$ million", "MW"};
  if (counted.amount != nullptr) header.push_back(counted.header);
  std::vector<Align> align(header.size(), Align::right);
  header.emplace_back("machine");
  align.push_back(Align::left);
  if (limited) {
    header.emplace_back("limits");
    align.push_back(Align::left);
  }
  Table table(header, align);
  const std::size_t all = result.front.size(), rows = std::min(all, most_front);
  for (std::size_t r = 0; r < rows; ++r) {
    const PlanPoint& p = result.front[rows == 1 ? 0 : r * (all - 1) / (rows - 1)];
    std::vector<std::string> row = {figure(p.finish.si() / seconds_per_day),
                                    cost_cell(p, p.cost / 1e6), figure(p.facility_peak / 1e6)};
    if (counted.amount != nullptr) row.push_back(figure(p.*counted.amount / counted.unit));
    row.push_back(point_name(file, p));
    if (limited) row.push_back(verdict(p));
    table.add(row);
  }
  document.table(std::move(table));
  if (all > rows) document.note(fmt::format("{} of {} points of the front.", rows, all));
}

void add_power_curve(Document& document, const PlanFile& file, const PlanResult& result) {
  const auto at = std::find(file.plan.varied.begin(), file.plan.varied.end(), "power");
  if (at == file.plan.varied.end()) return;
  document.gap().heading("Power to tokens:");
  double most = 0;
  for (const PlanPoint& p : result.points)
    if (p.feasible) most = std::max(most, p.tokens_per_second * p.effective);
  Table table({"power", "cluster", "GPUs", "useful Mtok/s", "tok/s per kW", ""},
              {Align::right, Align::left, Align::right, Align::right, Align::right, Align::left});
  std::map<double, std::vector<const PlanPoint*>> by_power;
  for (const PlanPoint& p : result.points)
    by_power[file.plan.choices[p.choice].goal.power.si()].push_back(&p);
  for (const auto& [power, points] : by_power)
    for (const PlanPoint* p : points) {
      const double useful = p->feasible ? p->tokens_per_second * p->effective : 0;
      table.add({to_text(Watts(power)), file.plan.choices[p->choice].question.cluster.name,
                 count(p->gpus), p->feasible ? figure(useful / 1e6) : "-",
                 p->feasible ? figure(useful / (p->facility_peak / 1e3)) : "-",
                 bar(most > 0 ? useful / most : 0, 24)});
    }
  document.table(std::move(table));
  document.note("Power is what the facility may be provided with, cooling and network included.");
}

void add_speedups(Document& document, const PlanFile& file, const PlanResult& result) {
  const auto& varied = file.plan.varied;
  const auto at = std::find(varied.begin(), varied.end(), "speedup");
  if (at == varied.end()) return;
  const auto place = static_cast<std::size_t>(at - varied.begin());
  document.gap().heading("What faster kernels are worth:");
  Table table({"speedup", "machine", "step", "faster", "days", "GPU-hours saved", "saved"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  const auto others = [&](const PlanPoint& p) {
    std::vector<std::string> values = file.plan.choices[p.choice].values;
    values[place].clear();
    return values;
  };
  for (const PlanPoint& p : result.points) {
    const auto base =
        std::find_if(result.points.begin(), result.points.end(), [&](const PlanPoint& q) {
          return file.plan.choices[q.choice].values[place] == "none" && others(q) == others(p);
        });
    if (base == result.points.end() || !base->step.fits || !p.step.fits) continue;
    const double hours = (base->duration.si() * static_cast<double>(base->gpus) -
                          p.duration.si() * static_cast<double>(p.gpus)) /
                         seconds_per_hour;
    table.add(
        {file.plan.choices[p.choice].values[place],
         file.plan.choices[p.choice].question.cluster.name + " x " + count(p.gpus),
         to_text(p.step.best.step_time),
         fmt::format("{:.1f}%", 100 * (base->step.best.step_time / p.step.best.step_time - 1)),
         figure(p.finish.si() / seconds_per_day), grouped(hours),
         p.cost_known() ? money_text(base->cost - p.cost) : "unknown"});
  }
  document.table(std::move(table));
  document.note(
      "The layout is searched anew for each; kernels that run faster draw what their "
      "operations cost before, so the power limit takes a part of the gain.");
}

}  // namespace orrery
