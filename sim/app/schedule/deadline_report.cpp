// SPDX-License-Identifier: Apache-2.0
// Holds points that delay jobs against the same ones that do not.
#include "sim/app/schedule/deadline_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/answer/answer.h"
#include "sim/app/schedule/point_names.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

bool delays(const SchedulePoint& p) { return !p.asked.question.hours.weights.empty(); }

// The same point that delays nobody; nothing where it was not asked or run.
const SchedulePoint* without_delay(const Scheduled& s, const SchedulePoint& point) {
  const auto rest = [](const SchedulePoint& p) {
    auto values = p.varied;
    std::erase_if(values, [](const auto& value) { return value.first == "delay"; });
    return values;
  };
  const auto at = std::find_if(s.points.begin(), s.points.end(), [&](const SchedulePoint& p) {
    return !delays(p) && p.asked.policy == point.asked.policy &&
           p.asked.place == point.asked.place && rest(p) == rest(point);
  });
  return at != s.points.end() && !at->measures.empty() ? &*at : nullptr;
}

std::string change_text(double now, double before) {
  return before > 0 ? fmt::format("{:+.1f}%", 100 * (now / before - 1)) : "not known";
}

double work(const SchedulePoint& p) {
  return mean_of(p, [](const FleetMeasures& m) { return m.shares.useful + m.shares.in_vain; });
}

// Of a bill against that of another point, in percent.
std::string change_cell(const SchedulePoint& p, const SchedulePoint& other,
                        double EnergyBill::*part) {
  const auto sum = [&](const FleetMeasures& m) { return m.power.bill ? (*m.power.bill).*part : 0; };
  return change_text(mean_of(p, sum), mean_of(other, sum));
}

double count(std::int64_t jobs) { return static_cast<double>(jobs); }

}  // namespace

void add_deadlines(Document& document, const Scheduled& s) {
  const auto some = [&](const auto& is) {
    return std::any_of(s.points.begin(), s.points.end(),
                       [&](const SchedulePoint& p) { return !p.measures.empty() && is(p); });
  };
  if (!some([](const SchedulePoint& p) { return p.measures.front().deadlines.jobs > 0; })) return;
  const bool delayed = some(delays);
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name : {"with one", "met %", "late by"}) head.emplace_back(name);
  if (delayed) head.insert(head.end(), {"kept back", "for", "work", "electricity", "CO2"});
  align.resize(head.size(), Align::right);
  Table table(head, align);
  for (const SchedulePoint* p : run_points(s)) {
    const auto mean = [&](const auto& of) {
      return mean_of(*p, [&](const FleetMeasures& m) { return of(m.deadlines); });
    };
    const auto all = [&](const auto& are) {
      return std::all_of(p->measures.begin(), p->measures.end(),
                         [&](const FleetMeasures& m) { return are(m.deadlines); });
    };
    std::vector<std::string> row = name_cells(*p);
    row.push_back(grouped(std::llround(mean([](const auto& d) { return count(d.jobs); }))));
    row.push_back(all([](const auto& d) { return d.jobs > 0; })
                      ? percent_figure(mean([](const auto& d) { return d.met_share(); }))
                      : "-");
    row.push_back(all([](const auto& d) { return d.jobs > d.met; })
                      ? to_text(seconds(mean([](const auto& d) { return d.late.si(); })))
                      : "-");
    const SchedulePoint* other = delays(*p) ? without_delay(s, *p) : nullptr;
    if (delayed) {
      row.push_back(grouped(std::llround(mean([](const auto& d) { return count(d.delayed); }))));
      row.push_back(all([](const auto& d) { return d.delayed > 0; })
                        ? to_text(seconds(mean([](const auto& d) { return d.delay.si(); })))
                        : "-");
      row.push_back(other ? change_text(work(*p), work(*other)) : "");
      row.push_back(other ? change_cell(*p, *other, &EnergyBill::dollars) : "");
      row.push_back(other ? change_cell(*p, *other, &EnergyBill::kg) : "");
    }
    table.add(row);
  }
  document.heading("Deadlines");
  document.table(table);
  document.note(std::string("late by: those that missed it, in the mean.") +
                (delayed
                     ? " kept back: jobs that waited for cheap or clean hours, and for how "
                       "long in the mean; work (GPU-time in steps that count), electricity, CO2: "
                       "of the whole cluster against the same without delay."
                     : ""));
  const std::int64_t too_long =
      s.points[s.best].measures.empty() ? 0 : s.points[s.best].measures.front().deadlines.too_long;
  if (too_long > 0)
    document.note(fmt::format("{} {} longer than {} deadline, and miss{} it wherever {} placed.",
                              plural(too_long, "job"), too_long == 1 ? "is" : "are",
                              too_long == 1 ? "its" : "their", too_long == 1 ? "es" : "",
                              too_long == 1 ? "it is" : "they are"));
}

Json deadlines_json(const SchedulePoint& p) {
  const FleetDeadlines& d = p.measures.front().deadlines;
  if (d.jobs == 0 && d.delayed == 0) return nullptr;
  return {{"jobs", d.jobs},         {"met_share", figure_of(d.jobs > 0, d.met_share())},
          {"too_long", d.too_long}, {"late_s", figure_of(d.jobs > d.met, d.late.si())},
          {"delayed", d.delayed},   {"delay_s", figure_of(d.delayed > 0, d.delay.si())}};
}

}  // namespace orrery
