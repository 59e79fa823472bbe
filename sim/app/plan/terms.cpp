// SPDX-License-Identifier: Apache-2.0
// Writes what stands beside a plan's answer: sites, contracts, limits that are left unused.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/app/plan/report.h"
#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr std::size_t most_names = 4;

std::string names_text(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(most_names, names.size());
  std::string text = joined(std::span(names).first(shown), "; ");
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// Largest count of the point's choice that meets all limits and is no better; nothing where the
// point is the largest that was tried.
const PlanPoint* larger(const PlanFile& file, const PlanResult& result, std::size_t i) {
  const PlanPoint& p = result.points[i];
  const PlanChoice& choice = choice_of(file, p);
  if (!choice.any_count || !p.feasible || choice.goal.objective != PlanObjective::time ||
      i >= result.tried.size())
    return nullptr;
  const PlanPoint* most = nullptr;
  for (const PlanPoint& other : result.tried[i])
    if (other.feasible && other.gpus > p.gpus && other.finish >= p.finish &&
        (most == nullptr || other.gpus > most->gpus))
      most = &other;
  return most;
}

std::string why_no_faster(const PlanFile& file, const PlanPoint& p, const PlanPoint& more) {
  if (more.tokens_per_second > p.tokens_per_second)
    return "their steps gain less than more failures cost";
  const std::int64_t batch = choice_of(file, p).question.job.global_batch;
  // With the layout of the faster one, would the batch divide over as many replicas as there are?
  const Layout& layout = p.step.best.layout;
  const std::int64_t replica = p.gpus / std::max<std::int64_t>(1, layout.dp);
  const std::int64_t replicas = more.gpus / std::max<std::int64_t>(1, replica);
  const bool divides = more.gpus % replica == 0 && batch % (replicas * layout.micro_batch) == 0;
  const char* why = divides ? "leave each of them too little work"
                            : "do not divide over as many replicas of the best layout, and other "
                              "layouts are slower";
  return fmt::format("{} a step {}", plural(batch, "sequence"), why);
}

}  // namespace

void add_conditions(Document& document, const PlanFile& file, const PlanResult& result,
                    const PlanDetail& detail) {
  const PlanPoint& p = result.points[*detailed_point(result)];
  const PlanChoice& choice = choice_of(file, p);
  if (!p.site_misfit.empty())
    document.paragraph(fmt::format(
        "{}: {}. It needs a site with liquid cooling for such racks.",
        choice.terms.facts.site.name == BillNames::no_site
            ? std::string("No site is named, and usual ones do not hold it as they are")
            : fmt::format("It cannot be installed at {} as that is", choice.terms.facts.site.name),
        p.site_misfit));
  if (const auto& job = detail.bill.job; job && job->committed > Seconds{})
    document.paragraph(fmt::format(
        "That is the job's own time alone: the contract commits {} accelerators for {}, {} in "
        "all, which someone must use or buy when the job is done.",
        grouped(detail.bill.bought), days_text(job->committed),
        money_text(job->commitment.value.si())));
}

void add_table_marks(Document& document, const PlanFile& file, const PlanResult& result) {
  std::map<std::string, std::vector<std::string>> misfits;
  std::map<std::string, std::vector<std::string>> unused;
  std::vector<std::string> reserved;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const PlanPoint& p = result.points[i];
    if (!p.step.fits) continue;
    if (!p.site_misfit.empty()) misfits[p.site_misfit].push_back(point_name(file, p));
    const PlanTerms& terms = choice_of(file, p).terms;
    if (terms.ownership == Ownership::rent &&
        (terms.contract == Contract::reserved_1y || terms.contract == Contract::reserved_3y))
      reserved.push_back(point_name(file, p));
    if (const PlanPoint* more = larger(file, result, i))
      unused[why_no_faster(file, p, *more)].push_back(
          fmt::format("{} (up to {} tried)", point_name(file, p), grouped(more->gpus)));
  }
  for (const auto& [why, points] : misfits)
    document.item(
        fmt::format("! not installable at the site as it is: {}: {}.", names_text(points), why));
  if (!reserved.empty())
    document.item(
        fmt::format("Reserved contracts commit for their whole term; $ million is the job's own "
                    "time of it: {}.",
                    names_text(reserved)));
  for (const auto& [why, points] : unused)
    document.item(fmt::format("Larger machines within the limits are no faster than {}: {}.",
                              names_text(points), why));
}

void add_spot(Table& table, const PlanFile& file, const PlanPoint& p, const PlanDetail& detail) {
  const PlanTerms& terms = choice_of(file, p).terms;
  if (terms.ownership != Ownership::rent || terms.contract != Contract::spot) return;
  const Sourced<Hertz>& rate = terms.facts.economics.spot_interruption_rate;
  if (!rate.known()) return;
  const auto a_year = [](Hertz h) { return fmt::format("{:.2g}", h.si() * seconds_per_year); };
  const auto effect = [&](Hertz end) {
    GoodputCase moved = detail.goodput_case;
    for (FailureClass& failure : moved.failures)
      if (failure.name == "preemption")
        failure.rate = exactly(failure.rate.value * (end / rate.get()));
    return 100 * (detail.goodput.effective / std::max(1e-9, goodput(moved).effective) - 1);
  };
  const Hertz low = rate.low.value_or(rate.get()), high = rate.high.value_or(rate.get());
  table.add(
      {"time", fmt::format("{:+.1f} {:+.1f}%", effect(low), effect(high)),
       fmt::format("{} a host and year ({} .. {})", a_year(rate.get()), a_year(low), a_year(high)),
       "economics.spot_interruption_rate (spot_interruptions sets it)"});
}

}  // namespace orrery
