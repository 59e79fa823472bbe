// SPDX-License-Identifier: Apache-2.0
// Writes one point of a plan in full.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/plan/report.h"
#include "sim/app/report/advice.h"
#include "sim/app/report/parts.h"
#include "sim/base/sorting.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr std::size_t most_levers = 10, most_drivers = 6;

std::string ranged_money(const BillSum<Dollars>& sum) {
  std::string text = fmt::format("{} ({} to {})", money_text(sum.value.si()),
                                 money_text(sum.low.si()), money_text(sum.high.si()));
  if (!sum.unknown.empty()) text += ", and what is not known";
  return text;
}

std::string saved_days(double days) {
  if (!(std::abs(days) < 1e7)) return "without end";
  return std::abs(days) < 0.0001 ? "0" : significant(days);
}

// "64 spare GPUs wait"; what whole hosts and domains hold besides is told apart.
std::string waiting_text(const PlanPoint& p) {
  const auto gpus = [](std::int64_t n, const char* kind) {
    return plural(n, std::string(kind) + "GPU");
  };
  std::string text =
      gpus(p.spares, "spare ") + (p.spares == 1 ? std::string(" waits") : std::string(" wait"));
  const std::int64_t left = p.bought - p.gpus - p.spares;
  if (left > 0) text += fmt::format(", {} left over in whole hosts or domains", gpus(left, ""));
  return text;
}

void add_layout(Document& document, const PlanPoint& p, const PlanDetail& d) {
  document.item(fmt::format("layout: {}", to_text(p.step.best.layout)));
  document.item(
      fmt::format("step {} (90% range {} to {}), {} tokens/s in all, {} a GPU, MFU {:.1f}%.",
                  to_text(p.step.best.step_time), to_text(d.prediction.low),
                  to_text(d.prediction.high), grouped(p.tokens_per_second),
                  significant(p.step.best.tokens_per_second_per_gpu), 100 * p.step.mfu));
  document.item(fmt::format("memory: {}", memory_sentence(d.prediction.memory)));
  document.item(fmt::format("what limits it: {}", d.why));
  document.item(fmt::format(
      "of the time {:.1f}% counts (90% range {:.1f} to {:.1f}%); a failure every {}; {}, {} "
      "are {} in all.",
      100 * d.goodput.effective, 100 * d.range.effective.low, 100 * d.range.effective.high,
      to_text(d.goodput.mean_time_to_failure), waiting_text(p), grouped(p.bought),
      d.bill.ownership == Ownership::buy ? "bought" : "rented"));
}

void add_losses(Document& document, const PlanDetail& d) {
  std::vector<std::pair<double, std::string>> losses;
  for (int i = 1; i < time_share_count; ++i)
    if (d.goodput.shares[static_cast<std::size_t>(i)] >= 0.0005)
      losses.emplace_back(d.goodput.shares[static_cast<std::size_t>(i)],
                          std::string(to_text(static_cast<TimeShare>(i))));
  sort_stably(losses, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [share, name] : losses)
    text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : ", ", name, 100 * share);
  if (!text.empty()) document.item("the rest of the time goes to: " + text + ".");
}

void add_levers(Document& document, const PlanDetail& d) {
  if (!d.levers.empty()) {
    document.gap().heading("What would change it (the layout kept, one at a time):");
    Table table({"", "faster", "days saved", "saved"},
                {Align::left, Align::right, Align::right, Align::right});
    std::vector<std::string> notes;
    for (std::size_t i = 0; i < std::min(most_levers, d.levers.size()); ++i) {
      const PlanLever& l = d.levers[i];
      table.add({l.name, fmt::format("{:.1f}%", 100 * l.faster), saved_days(l.days),
                 money_text(l.dollars)});
      if (!l.note.empty() && std::find(notes.begin(), notes.end(), l.note) == notes.end())
        notes.push_back(l.note);
    }
    document.table(std::move(table));
    document.note(
        "Saved: at the same price of the machine; what the change costs is not taken off.");
    for (const std::string& note : notes) document.item(note);
  }
  if (d.remedies.empty()) return;
  document.gap().heading("What would lose less time:");
  Table table({"", "days saved", "saved", "how"},
              {Align::left, Align::right, Align::right, Align::left});
  for (const PlanLever& l : d.remedies)
    table.add({l.name, saved_days(l.days), money_text(l.dollars), l.note});
  document.table(std::move(table));
  document.note(
      "What a remedy reaches is not measured on this machine: `remedies` of the reliability "
      "profile, with ranges.");
}

void add_bill(Document& document, const PlanDetail& d) {
  const Bill& b = d.bill;
  document.gap().heading("The bill:");
  if (b.job) {
    Table table({"of the job", "amount", "range"}, {Align::left, Align::right, Align::left});
    for (const JobLine& line : b.job->lines)
      table.add({line.item, money_text(line.amount.value.si()),
                 fmt::format("{} to {}", money_text(line.amount.low.si()),
                             money_text(line.amount.high.si()))});
    table.add({"in all", money_text(b.job->cost.value.si()),
               fmt::format("{} to {}", money_text(b.job->cost.low.si()),
                           money_text(b.job->cost.high.si()))});
    document.table(std::move(table));
    if (!b.job->cost.unknown.empty())
      document.item(
          fmt::format("not known and so in no sum: {}.", unknown_text(b.job->cost.unknown)));
    const BillSum<Carbon>& making = b.job->embodied_carbon;
    document.item(fmt::format(
        "energy of the facility {}, CO2e of the grid {}; of making the accelerators {}.",
        energy_text(b.job->facility_energy.value.si()),
        carbon_text(b.job->operational_carbon.value.si()),
        making.unknown.empty()
            ? carbon_text(making.value.si()) + " (their share of the machines' life)"
            : std::string("it is not published")));
  }
  if (b.capital_total.value.si() > 0) {
    std::vector<std::pair<double, std::string>> groups;
    for (int i = 0; i < capital_group_count; ++i)
      groups.emplace_back(b.capital_by_group[static_cast<std::size_t>(i)].value.si(),
                          std::string(to_text(static_cast<CapitalGroup>(i))));
    sort_stably(groups, [](const auto& x, const auto& y) { return x.first > y.first; });
    std::string text;
    for (const auto& [amount, name] : groups)
      if (amount >= 0.005 * b.capital_total.value.si())
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, money_text(amount));
    document.item(fmt::format("to buy: {}: {}.", ranged_money(b.capital_total), text));
    document.item(fmt::format("to run, a year: {}.",
                              money_text(b.running_total.value.si() * seconds_per_year)));
  }
  document.item(fmt::format("floor: {} racks, {} square metres of white space.",
                            grouped(b.floor.racks.value),
                            grouped(b.floor.white_square_metres.value)));
}

void add_foundations(Document& document, const PlanFile& file, const PlanPoint& point,
                     const PlanDetail& d) {
  document.gap().heading("What it rests on that is not a fact:");
  Table table({"changes", "by", "value (range)", "of"},
              {Align::left, Align::right, Align::left, Align::left});
  for (std::size_t i = 0; i < std::min(most_drivers, d.prediction.assumptions.size()); ++i) {
    const Assumption& a = d.prediction.assumptions[i];
    table.add({"time", fmt::format("{:+.1f} {:+.1f}%", 100 * a.effect_low, 100 * a.effect_high),
               fmt::format("{} ({} .. {})", a.value, a.low, a.high), a.path});
  }
  add_spot(table, file, point, d);
  for (std::size_t i = 0; i < std::min(most_drivers, d.bill.drivers.size()); ++i) {
    const BillDriver& a = d.bill.drivers[i];
    const std::string range =
        a.value > 0 ? fmt::format("{:.2f} to {:.2f} times", a.low / a.value, a.high / a.value)
                    : std::string("a range");
    table.add({"cost", fmt::format("{:+.1f} {:+.1f}%", 100 * a.effect_low, 100 * a.effect_high),
               range, a.path});
  }
  document.table(std::move(table));
  for (const std::string& note : goodput_notes(d.goodput_case, d.goodput)) document.item(note);
  for (const std::string& note : d.bill.notes) document.item(note);
}

}  // namespace

void add_detail(Document& document, const PlanFile& file, const PlanPoint& point,
                const PlanDetail& detail) {
  document.gap().heading(fmt::format("{} in full:", point_name(file, point)));
  add_layout(document, point, detail);
  add_losses(document, detail);
  add_need(document, detail);
  add_levers(document, detail);
  add_bill(document, detail);
  add_foundations(document, file, point, detail);
  Reasons start;
  start.flags = detail.flags;
  add_flags(document, start);
}

}  // namespace orrery
