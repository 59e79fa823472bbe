// SPDX-License-Identifier: Apache-2.0
// Writes what keeps points of a plan from ending, in time or at all, and which points are one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/app/plan/report.h"
#include "sim/app/report/parts.h"
#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/outcome/noise.h"

namespace orrery {
namespace {

constexpr std::size_t most_items = 6;

std::string times_text(double factor) {
  return factor >= 999.5 ? grouped(factor) : fmt::format("{:.3g}", factor);
}

// "a remedy: half of the time counts, 11 days".
std::string way_text(const PlanStall::Way& way, const PlanPoint& p) {
  const bool late = std::any_of(p.verdicts.begin(), p.verdicts.end(), [&](const PlanVerdict& v) {
    return v.name == "deadline" && way.duration.si() > v.allowed;
  });
  return fmt::format("{} ({}: {:.0f}% of the time counts, {}{})", way.remedy, way.how,
                     100 * way.effective, days_text(way.duration),
                     late ? ", later than the deadline" : "");
}

std::string stall_text(const PlanStall& stall, const PlanPoint& p) {
  std::string text = fmt::format("a failure every {}, and to recover from one takes {}",
                                 to_text(stall.between_failures), to_text(stall.recovery));
  if (stall.interval > stall.between_failures)
    text += std::isfinite(stall.interval.si())
                ? fmt::format(", with {} between checkpoints", to_text(stall.interval))
                : std::string(", and no checkpoint pays");
  if (stall.ways.empty()) return text + "; no known remedy makes it end";
  text +=
      fmt::format("; the smallest remedy that makes it end is {}", way_text(stall.ways.front(), p));
  if (stall.ways.size() > 1)
    text += fmt::format(", the largest single one {}", way_text(stall.ways.back(), p));
  return text;
}

void add_capped(Document& document, const std::vector<std::string>& items) {
  for (std::size_t i = 0; i < std::min(most_items, items.size()); ++i) document.item(items[i]);
  if (items.size() > most_items)
    document.item(fmt::format("and {} more of the kind.", items.size() - most_items));
}

// "the same", "0.6% more": of a quantity over that of the best.
std::string percent_text(double value, double best) {
  const double more = 100 * (value / best - 1);
  if (!std::isfinite(more)) return "unknown";
  if (std::abs(more) < 0.05) return "the same";
  return fmt::format("{:.1f}% {}", std::abs(more), more > 0 ? "more" : "less");
}

// Points that the objective tells from the best by less than same_machine() would, and that are
// other machines: no prediction is so exact that the order of them means anything.
std::vector<std::string> close_points(const PlanFile& file, const PlanResult& result) {
  std::vector<std::string> items;
  if (!result.best) return items;
  const PlanPoint& best = result.points[*result.best];
  const PlanChoice& choice = file.plan.choices[best.choice];
  const PlanObjective objective = choice.goal.objective;
  if (objective == PlanObjective::gpus) return items;  // a count is exact
  const double least = plan_score(best, objective);
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const PlanPoint& p = result.points[i];
    if (i == *result.best || !p.feasible || !same_job(file.plan.choices[p.choice], choice) ||
        same_machine(p, best) || plan_score(p, objective) > least * (1 + same_speed))
      continue;
    std::string text = fmt::format("time {}", percent_text(p.finish.si(), best.finish.si()));
    if (p.cost_known() && best.cost_known())
      text += fmt::format(", cost {}", percent_text(p.cost, best.cost));
    if (p.capital > 0 && best.capital > 0)
      text += fmt::format(", to buy it all {}", percent_text(p.capital, best.capital));
    text += fmt::format(", energy {}", percent_text(p.energy, best.energy));
    if (p.racks != best.racks)
      text += fmt::format(", racks {:.0f} for {:.0f}", p.racks, best.racks);
    items.push_back(
        fmt::format("Within {} of the best by what is wanted, closer than predictions "
                    "are: {}: {}.",
                    percent(same_speed, 0), point_name(file, p), text));
  }
  return items;
}

// Why two names are one machine, where the wiring says so.
std::string one_site_text(const PlanFile& file, const PlanPoint& p) {
  const Cluster& cluster = file.plan.choices[p.choice].question.cluster;
  const std::int64_t site = cluster.fabric.sites.accelerators;
  if (site == 0 || p.gpus > site) return "";
  return fmt::format(" One site of {} holds {}.", cluster.name, grouped(site));
}

std::string loss_text(double factor, const char* words) {
  if (factor >= 1) return "-";
  if (factor < 1e-4) return "not alone";
  return fmt::format("{} times {}", times_text(1 / factor), words);
}

// What else meets the deadline more surely: the best by objective of those that do so at their late
// ends too, else the surest.
std::string safer_text(const PlanFile& file, const PlanResult& result, const PlanPoint& best,
                       const std::function<double(const PlanPoint&)>& chance) {
  constexpr double late_end = 0.95;
  constexpr double same_chance = 0.005;  // chances are written in whole percent
  const PlanChoice& choice = file.plan.choices[best.choice];
  const PlanPoint *safe = nullptr, *surest = nullptr;
  const auto score = [&](const PlanPoint& p) { return plan_score(p, choice.goal.objective); };
  const auto look = [&](const PlanPoint& p) {
    if (!p.feasible || !same_job(file.plan.choices[p.choice], choice)) return;
    if (chance(p) >= late_end && (safe == nullptr || score(p) < score(*safe))) safe = &p;
    if (surest == nullptr || chance(p) > chance(*surest)) surest = &p;
  };
  for (const PlanPoint& p : result.points) look(p);
  for (const auto& tried : result.tried)
    for (const PlanPoint& p : tried) look(p);
  const auto named = [&](const PlanPoint& p) {
    std::string text = fmt::format("{}, {}", point_name(file, p), days_text(p.finish));
    if (p.cost_known())
      text += fmt::format(", {}{}", p.unknown_costs.empty() ? "" : "at least ", money_text(p.cost));
    return text;
  };
  if (safe != nullptr)
    return fmt::format(" With a range as wide this meets it at its late end too: {}.",
                       named(*safe));
  if (surest != nullptr && chance(*surest) > chance(best) + same_chance)
    return fmt::format(
        " With a range as wide the surest point of the question meets it with "
        "{:.0f}%: {}.",
        100 * chance(*surest), named(*surest));
  return " With a range as wide no other point of the question is likelier to meet it.";
}

}  // namespace

void add_risk(Document& document, const PlanFile& file, const PlanResult& result,
              const PlanDetail& detail) {
  if (!result.best) return;
  const PlanPoint& best = result.points[*result.best];
  const PlanChoice& choice = file.plan.choices[best.choice];
  const Seconds allowed = choice.goal.allowed - choice.terms.wait;
  if (choice.goal.allowed.si() <= 0 || detail.high <= allowed) return;
  // Sides of a range are those of a normal distribution of the logarithm, 5% beyond each end.
  const double wide = detail.high / best.duration;
  const double sigma = std::log(wide) / normal_95;
  // A range as wide is taken for every point.
  const auto chance = [&](const PlanPoint& p) {
    const PlanChoice& of = file.plan.choices[p.choice];
    const double slack = (of.goal.allowed - of.terms.wait) / p.duration;
    return slack > 0 ? 0.5 * std::erfc(-std::log(slack) / (sigma * std::sqrt(2.0))) : 0.0;
  };
  std::string text = fmt::format(
      "It meets the deadline with {:.0f}% probability: the late end of its range is {}.",
      100 * chance(best), days_text(detail.high + choice.terms.wait));
  document.paragraph(text + safer_text(file, result, best, chance));
}

void add_stalls(Document& document, const PlanFile& file, const PlanResult& result) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // reason, points
  for (const PlanPoint& p : result.points) {
    const auto stall = plan_stall(file.plan, p);
    if (!stall) continue;
    const std::string text = stall_text(*stall, p);
    const auto same =
        std::find_if(found.begin(), found.end(), [&](const auto& f) { return f.first == text; });
    if (same != found.end())
      same->second.push_back(point_name(file, p));
    else
      found.push_back({text, {point_name(file, p)}});
  }
  std::vector<std::string> items;
  for (const auto& [text, points] : found)
    items.push_back(fmt::format("{} never {}: {}.", joined(points, "; "),
                                points.size() == 1 ? "ends" : "end", text));
  add_capped(document, items);
}

void add_ties(Document& document, const PlanFile& file, const PlanResult& result) {
  const std::vector<PlanPoint>& points = result.points;
  std::vector<bool> told(points.size(), false);
  std::vector<std::string> items;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (told[i]) continue;
    std::vector<std::string> names = {point_name(file, points[i])};
    std::string why = one_site_text(file, points[i]);
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      if (told[j] || !same_machine(points[i], points[j])) continue;
      told[j] = true;
      names.push_back(point_name(file, points[j]));
      if (why.empty()) why = one_site_text(file, points[j]);
    }
    if (names.size() > 1)
      items.push_back(fmt::format("The same to within 1% in time, money, energy and power: {}.{}",
                                  joined(names, "; "), why));
  }
  add_capped(document, items);
  add_capped(document, close_points(file, result));
}

void add_need(Document& document, const PlanDetail& detail) {
  if (!detail.need) return;
  const PlanNeed& need = *detail.need;
  document.gap().heading(fmt::format("What it would take to end in {}:", days_text(need.allowed)));
  document.paragraph(
      need.undisturbed > need.allowed
          ? fmt::format("The steps alone take {}: it would be late even if nothing ever failed.",
                        days_text(need.undisturbed))
          : fmt::format("The steps alone take {}; the rest is lost to failures and waiting.",
                        days_text(need.undisturbed)));
  Table table({"of the time counts", "steps faster", "for that share: failures", "or recovery"},
              {Align::right, Align::right, Align::right, Align::right});
  for (const PlanNeed::Way& way : need.ways)
    table.add({fmt::format("{:.0f}%", 100 * way.effective),
               way.faster <= 1 ? "as they are" : times_text(way.faster) + " times",
               loss_text(way.losses.failures, "rarer"), loss_text(way.losses.recovery, "as fast")});
  document.table(std::move(table));
  document.note(
      "A row is one way: steps faster by so much, and failures rarer or recovery faster "
      "(detection, "
      "diagnosis, start, warm-up) by so much, so that the share counts. The first row is as it "
      "is.");
  const auto enough = std::find_if(need.ways.begin(), need.ways.end(),
                                   [&](const auto& way) { return way.faster <= need.all_levers; });
  const std::string levers = fmt::format(
      "All that is named below for the machine and its kernels, at once and with this layout, "
      "makes "
      "steps {} times as fast",
      times_text(need.all_levers));
  document.paragraph(enough == need.ways.end()
                         ? levers +
                               ": not enough alone, more accelerators or other layouts must "
                               "do the rest."
                         : fmt::format("{}: enough where {:.0f}% of the time counts.", levers,
                                       100 * enough->effective));
}

}  // namespace orrery
