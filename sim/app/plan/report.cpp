// SPDX-License-Identifier: Apache-2.0
// Writes plans as documents.
#include "sim/app/plan/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "sim/app/report/parts.h"
#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/explain/machine_tie.h"

namespace orrery {
namespace {

std::string limit_text(const std::string& name, double value) {
  if (name == "deadline") return days_text(Seconds(value));
  if (name == "budget" || name == "capital") return money_text(value);
  if (name == "power") return to_text(Watts(value));
  return name == "racks" ? plural(value, "rack") : fmt::format("{} square metres", grouped(value));
}

// "10^26 FLOP", "3.2e26 FLOP".
std::string flop_text(Flop flop) {
  const double tens = std::log10(flop.si());
  if (std::abs(tens - std::round(tens)) < 1e-9) return fmt::format("10^{:.0f} FLOP", tens);
  std::string text = fmt::format("{:.3g} FLOP", flop.si());
  if (const std::size_t plus = text.find('+'); plus != std::string::npos) text.erase(plus, 1);
  return text;
}

// What is asked for, in sentences.
void add_question(Document& document, const PlanFile& file) {
  const PlanChoice& first = file.plan.choices.front();
  const PlanGoal& goal = first.goal;
  const auto same = [&](auto&& value) {
    return std::all_of(file.plan.choices.begin(), file.plan.choices.end(),
                       [&](const PlanChoice& c) { return value(c) == value(first); });
  };
  const bool model = same([](const PlanChoice& c) { return c.question.model.name; });
  const bool tokens = same([](const PlanChoice& c) { return c.goal.tokens; });
  std::string text;
  if (model) text += first.question.model.title + ", ";
  if (tokens)
    text += fmt::format(
        "{} token{}{}, ", tokens_text(goal.tokens), goal.tokens == 1 ? "" : "s",
        goal.flop.si() > 0 ? fmt::format(" (what {} train)", flop_text(goal.flop)) : std::string());
  if (same([](const PlanChoice& c) { return c.question.job.global_batch; }) &&
      same([](const PlanChoice& c) { return c.question.job.sequence; }))
    text +=
        fmt::format("{} of {} tokens a step. ", plural(first.question.job.global_batch, "sequence"),
                    grouped(first.question.job.sequence));
  else if (!text.empty())
    text.replace(text.size() - 2, 2, ". ");
  text += fmt::format("Wanted: {}.", to_text(goal.objective));
  std::string limits;
  const auto add = [&](const char* name, double value) {
    if (value <= 0) return;
    limits += limits.empty() ? "" : ", ";
    if (std::string_view(name) != "racks") limits += std::string(name) + " ";
    limits += limit_text(name, value);
  };
  const auto fixed = [&](const char* key) {
    return std::find(file.plan.varied.begin(), file.plan.varied.end(), key) ==
           file.plan.varied.end();
  };
  if (fixed("deadline")) {
    add("deadline", goal.allowed.si());
    if (file.start && goal.allowed.si() > 0)
      limits += fmt::format(
          " ({})",
          to_text(*file.start + static_cast<std::int64_t>(goal.allowed.si() / seconds_per_day)));
  }
  if (fixed("budget")) add("budget", goal.budget.si());
  if (fixed("capital")) add("capital", goal.capital.si());
  if (fixed("power")) add("power", goal.power.si());
  if (fixed("racks")) add("racks", goal.racks);
  if (fixed("square_metres")) add("floor", goal.square_metres);
  if (!limits.empty()) text += " Limits: " + limits + ".";
  if (file.start) text += " Start: " + to_text(*file.start) + ".";
  document.paragraph(text);
  if (!file.note.empty()) document.paragraph(file.note);
}

// "it takes", "it needs": what a limit is held against.
std::string verb_of(const std::string& limit) {
  if (limit == "budget") return "the job costs";
  if (limit == "capital") return "buying it costs";
  return limit == "power" ? "the facility must provide" : "it takes";
}

std::string misses(const PlanPoint& p) {
  if (p.stalls()) return "it never ends, since failures take nearly all of its time";
  if (!p.ends()) return "it takes over 100 years";
  std::string text;
  for (const PlanVerdict& v : p.verdicts)
    if (!v.met() && !std::isfinite(v.needed))
      text += fmt::format("{}what {} is not known, and {} is allowed", text.empty() ? "" : "; ",
                          verb_of(v.name), limit_text(v.name, v.allowed));
    else if (!v.met())
      text += fmt::format(
          "{}{} {}, and {} {} allowed", text.empty() ? "" : "; ", verb_of(v.name),
          limit_text(v.name, v.needed), limit_text(v.name, v.allowed),
          v.name == "deadline" || v.name == "racks" || v.name == "floor" ? "are" : "is");
  return text;
}

// ", done on 2027-05-20", where the question has a start.
std::string done_text(const PlanFile& file, const PlanPoint& p) {
  if (!file.start || !p.ends()) return "";
  std::string text = fmt::format(
      ", done on {}",
      to_text(*file.start + static_cast<std::int64_t>(std::ceil(p.finish.si() / seconds_per_day))));
  const Seconds wait = choice_of(file, p).terms.wait;
  if (wait.si() > 0)
    text += fmt::format(" ({} of waiting for the machines among it)", days_text(wait));
  return text;
}

// Before a sum with parts that are not known.
std::string at_least(const std::vector<std::string>& unknown) {
  return unknown.empty() ? "" : "at least ";
}

std::string machine_sentence(const PlanFile& file, const PlanPoint& p, const PlanDetail& d) {
  std::string text =
      fmt::format("{}, {} (90% range {} to {})", point_name(file, p), days_text(p.finish),
                  days_text(d.low + choice_of(file, p).terms.wait),
                  days_text(d.high + choice_of(file, p).terms.wait));
  if (p.cost_known() && d.bill.job)
    text +=
        fmt::format(", {}{} ({} to {})", at_least(d.bill.job->cost.unknown), money_text(p.cost),
                    money_text(d.bill.job->cost.low.si()), money_text(d.bill.job->cost.high.si()));
  const PlanTerms& terms = choice_of(file, p).terms;
  if (terms.ownership == Ownership::rent)
    text += fmt::format(", rented {}", to_text(terms.contract));
  else if (p.cost_known() && p.capital > 0)
    text += fmt::format(" as the job's share of {}{} to buy it all",
                        at_least(d.bill.capital_total.unknown), money_text(p.capital));
  text += done_text(file, p);
  return text + fmt::format(", {}{} of facility power at its peak, {}{} of CO2e.",
                            at_least(p.unknown_power), to_text(Watts(p.facility_peak)),
                            at_least(p.unknown_carbon), carbon_text(p.carbon));
}

// Points of other clusters than the winner's, the best of each.
std::vector<std::size_t> rivals(const PlanFile& file, const PlanResult& result, std::size_t best) {
  std::vector<std::size_t> found;
  std::set<std::string> seen = {choice_of(file, result.points[best]).question.cluster.name};
  const PlanObjective objective = choice_of(file, result.points[best]).goal.objective;
  std::vector<std::size_t> order(result.points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  sort_stably(order, [&](std::size_t a, std::size_t b) {
    const PlanPoint &x = result.points[a], &y = result.points[b];
    if (x.feasible != y.feasible) return x.feasible;
    return plan_rank(x, objective) < plan_rank(y, objective);
  });
  for (const std::size_t i : order)
    if (result.points[i].step.fits &&
        same_job(choice_of(file, result.points[i]), choice_of(file, result.points[best])) &&
        !same_machine(result.points[i], result.points[best]) &&
        seen.insert(choice_of(file, result.points[i]).question.cluster.name).second)
      found.push_back(i);
  return found;
}

// "29% less", "2.1 times": of a quantity over that of the best.
std::string ratio_text(double ratio) {
  if (!std::isfinite(ratio)) return "unbounded";
  if (std::abs(ratio - 1) < 0.005) return "the same";
  if (ratio >= 2) return fmt::format("{:.3g} times", ratio);
  return fmt::format("{:.0f}% {}", 100 * std::abs(ratio - 1), ratio > 1 ? "more" : "less");
}

void add_rivals(Document& document, const PlanFile& file, const PlanResult& result,
                const PlanDetail& detail) {
  const PlanPoint& best = result.points[*result.best];
  const std::vector<std::size_t> others = rivals(file, result, *result.best);
  if (others.empty()) return;
  document.gap().heading("Against the best of each other machine:");
  for (const std::size_t i : others) {
    const PlanPoint& p = result.points[i];
    std::string text =
        fmt::format("{}: time {}", point_name(file, p), ratio_text(p.finish / best.finish));
    if (p.cost_known() && best.cost_known())
      text += fmt::format(", cost {}{}", ratio_text(p.cost / best.cost),
                          p.unknown_costs == best.unknown_costs ? "" : " as far as it is known");
    const double each = p.tokens_per_second / static_cast<double>(p.gpus) /
                        (best.tokens_per_second / static_cast<double>(best.gpus));
    if (choice_of(file, best).goal.objective == PlanObjective::carbon)
      text += fmt::format(", carbon {}", ratio_text(p.carbon / best.carbon));
    text += fmt::format(", energy {}; one accelerator is {:.2f} times as fast",
                        ratio_text(p.energy / best.energy), each);
    if (!p.feasible) text += "; it misses: " + misses(p);
    text += ".";
    if (const std::string tie = machine_tie(choice_of(file, best).question.cluster.device,
                                            choice_of(file, p).question.cluster.device, each);
        !tie.empty())
      text += " " + tie;
    document.item(text);
  }
  const PlanPoint& rival = result.points[others.front()];
  const double ratio = plan_score(rival, choice_of(file, best).goal.objective) /
                       plan_score(best, choice_of(file, best).goal.objective);
  const double half = detail.high / (detail.low + Seconds(1));
  if (rival.feasible && choice_of(file, best).goal.objective == PlanObjective::cost &&
      rival.unknown_costs == best.unknown_costs && std::isfinite(ratio))
    document.paragraph(
        fmt::format("What would change the answer: {} wins if it costs {:.0f}% less.",
                    point_name(file, rival), 100 * (1 - 1 / ratio)));
  if (rival.feasible && ratio * ratio < half)
    document.paragraph(fmt::format(
        "The second, {}, is closer to the first than a prediction's own range is wide: what both "
        "have in common cancels, but measure both before choosing.",
        point_name(file, rival)));
}

// How far the limits of the machine's size go.
std::string allowed_text(const PlanFile& file, const PlanPoint& p) {
  if (p.allowed_by.empty()) return "";
  const bool wiring = p.allowed_by == "wiring";
  return fmt::format(" The {} {} at most {} accelerators{}.",
                     wiring ? "wiring " + choice_of(file, p).question.cluster.fabric.name
                            : "limit of " + p.allowed_by,
                     wiring ? "joins" : "allows", grouped(p.allowed),
                     wiring ? "" : " with the spares that they need");
}

void add_answer(Document& document, const PlanFile& file, const PlanResult& result,
                const std::optional<PlanDetail>& detail) {
  document.gap().heading("Answer:");
  const auto at = detailed_point(result);
  if (!at) {
    document.paragraph(result.stopped_early() ? "Stopped before the first point was known."
                                              : "No machine of the question can run the job. The "
                                                "table says why.");
    return;
  }
  const PlanPoint& p = result.points[*at];
  const PlanObjective objective = choice_of(file, p).goal.objective;
  const std::vector<std::string>& unknown = plan_unknown(p, objective);
  if (result.best) {
    document.paragraph(
        fmt::format("{} {}{}: {}", job_answers(file, result).size() > 1 ? "Of all jobs the" : "The",
                    to_text(objective), unknown.empty() ? "" : " as far as it is known",
                    detail ? machine_sentence(file, p, *detail) : point_name(file, p)));
  } else if (p.feasible) {
    document.paragraph(
        fmt::format("Which is the {} is not known: no machine that meets all limits has a known "
                    "amount. Of {} it is without {}.",
                    to_text(objective), point_name(file, p), unknown_text(unknown)));
  } else {
    document.paragraph(missed_text(file, p));
  }
  if (detail) add_conditions(document, file, result, *detail);
  if (detail) add_risk(document, file, result, *detail);
  if (choice_of(file, p).any_count && !p.binding.empty() && result.best) {
    const bool more = choice_of(file, p).goal.objective == PlanObjective::time;
    document.paragraph(fmt::format(
        "{} machines{} are ruled out by: {}.{}", more ? "Larger" : "Smaller",
        result.points.size() > 1 ? " of the winner's kind" : "", p.binding, allowed_text(file, p)));
  }
  if (p.largest_tried)
    document.paragraph(fmt::format(
        "It is the largest machine that was looked at: counts are searched up to {} accelerators, "
        "and a larger one may serve better. `gpus` asks for it.",
        grouped(plan_most_gpus)));
  if (result.stopped_early())
    document.paragraph("Stopped early: of the points, only those that were known are compared.");
}

void add_method(Document& document, const PlanFile& file, const PlanResult& result) {
  document.gap().heading("How it was found:");
  std::size_t searched = 0;
  for (const auto& tried : result.tried) searched += tried.size();
  std::string text = plural(result.points.size(), "point");
  if (searched > 0) text += fmt::format(", {} tried", plural(searched, "count"));
  const auto full = std::count_if(result.points.begin(), result.points.end(),
                                  [](const PlanPoint& p) { return p.fully_searched; });
  document.item(
      text +
      fmt::format(
          ". Layouts of the sweep: all sizes, schedules and micro-batches with the stack's own "
          "ZeRO "
          "stage and rank order, every recompute and no offload. Of each machine's best point all "
          "layouts were searched, best first, for {} batches of parts of the grid at most ({} of "
          "{} "
          "points); what was found there was tried on all points with as many accelerators.",
          grouped(usual_full_batches), full, result.points.size()));
  document.item(
      "Days count failures, restarts, checkpoints, waiting for data and evaluation; machines count "
      "spares, network, storage, building and staff. Ranges are of 90%.");
  document.item(fmt::format("{:.0f}% of memory is left free.", 100 * file.plan.memory_reserve));
  for (const std::string& premise : file.premises) document.item(premise);
  if (!file.shared.empty()) document.item("The same for all: " + file.shared.front() + ".");
}

}  // namespace

std::string money_text(double dollars) { return to_text(Dollars(dollars)); }

std::string excess_text(double factor) {
  // A limit that is missed by little is missed still: digits until it shows.
  int digits = 3;
  while (digits < 9 && factor > 1 && fmt::format("{:.{}g}", factor, digits) == "1") ++digits;
  return factor >= 999.5 ? grouped(factor) : fmt::format("{:.{}g}", factor, digits);
}

std::string days_text(Seconds time) {
  const double days = time.si() / seconds_per_day;
  if (days > 0 && days < 0.01) return to_text(time);
  if (!(days < 100 * 365.25)) return "over 100 years";
  if (days >= 2 * 365.25) return fmt::format("{:.3g} years", days / 365.25);
  return days >= 99.5 ? fmt::format("{:.0f} days", days) : fmt::format("{:.3g} days", days);
}

std::string carbon_text(double kilograms) {
  if (!(kilograms < 1e15)) return "without end";
  if (kilograms > 0 && kilograms < 0.001) return "under a gram";
  if (kilograms < 0.9995) return fmt::format("{} kg", significant(kilograms));
  return kilograms >= 999.5e3 ? fmt::format("{} kt", significant(kilograms / 1e6))
                              : fmt::format("{} t", significant(kilograms / 1e3));
}

std::string energy_text(double joules) {
  const double kilowatt_hours = joules / joules_per_kilowatt_hour;
  if (!(kilowatt_hours < 1e15)) return "without end";
  if (kilowatt_hours > 0 && kilowatt_hours < 0.001) return "under a watt-hour";
  constexpr std::array<std::pair<double, const char*>, 3> units = {
      {{1e9, "TWh"}, {1e6, "GWh"}, {1e3, "MWh"}}};
  for (const auto& [size, unit] : units)
    if (kilowatt_hours >= 0.9995 * size)
      return fmt::format("{} {}", significant(kilowatt_hours / size), unit);
  return fmt::format("{} kWh", significant(kilowatt_hours));
}

std::string tokens_text(double tokens) {
  if (tokens >= 999.5e12) return fmt::format("{} trillion", grouped(tokens / 1e12));
  if (tokens >= 999.5e9) return fmt::format("{:.3g} trillion", tokens / 1e12);
  return tokens >= 999.5e6 ? fmt::format("{:.3g} billion", tokens / 1e9) : grouped(tokens);
}

std::string point_name(const PlanFile& file, const PlanPoint& p) {
  const PlanChoice& choice = choice_of(file, p);
  std::string text = fmt::format("{} of {}", plural(p.gpus, "GPU"), choice.question.cluster.name);
  std::string rest;
  for (std::size_t i = 0; i < file.plan.varied.size(); ++i)
    if (file.plan.varied[i] != "cluster" && file.plan.varied[i] != "gpus")
      rest +=
          fmt::format("{}{} {}", rest.empty() ? "" : ", ", file.plan.varied[i], choice.values[i]);
  return rest.empty() ? text : fmt::format("{} ({})", text, rest);
}

std::string missed_text(const PlanFile& file, const PlanPoint& nearest) {
  return fmt::format("Nothing in the question meets all limits. Nearest: {}: {}{}.",
                     point_name(file, nearest), misses(nearest),
                     std::isfinite(plan_excess(nearest))
                         ? fmt::format(" ({} times)", excess_text(plan_excess(nearest)))
                         : "");
}

Document plan_document(const PlanFile& file, const PlanResult& result,
                       const std::optional<PlanDetail>& detail, std::size_t width) {
  Document document(true, width);
  document.title(file.title.empty() ? "Plan" : file.title);
  document.gap();
  add_question(document, file);
  add_answer(document, file, result, detail);
  add_point_table(document, file, result);
  add_table_marks(document, file, result);
  add_stalls(document, file, result);
  add_ties(document, file, result);
  for (const std::string& sentence : file.availability) document.item(sentence);
  add_power_curve(document, file, result);
  add_speedups(document, file, result);
  if (result.best && detail) add_rivals(document, file, result, *detail);
  add_front(document, file, result);
  if (detail) add_detail(document, file, result.points[*detailed_point(result)], *detail);
  add_method(document, file, result);
  return document;
}

}  // namespace orrery
