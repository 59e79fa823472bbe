// SPDX-License-Identifier: Apache-2.0
// Tells stalls from queues by percentiles, by neighbours in load and by whole campaigns.
#include "sim/validate/serving/stalled_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/statistics.h"

namespace orrery {
namespace {

constexpr double minute = 60, seconds_of_median = 5;

bool stalled(const ServingCase& c) {
  return c.cells.p99_ttft && c.cells.median_ttft && *c.cells.p99_ttft > minute &&
         *c.cells.median_ttft < seconds_of_median;
}

double ttft_of(const ServingCase* c) { return c->row.measured.ttft.value_or(0); }

void judge_falling(std::vector<ServingCase*> runs) {
  constexpr double fall = 1.5, least = 1;
  std::stable_sort(runs.begin(), runs.end(), [](const ServingCase* a, const ServingCase* b) {
    return a->concurrency() < b->concurrency();
  });
  double later = std::numeric_limits<double>::infinity();
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    const double own = ttft_of(*run);
    if (own > fall * later && own > least)
      (*run)->row.measured.ttft_skipped = fmt::format(
          "{:.2f} s at concurrency {:.0f}, but {:.2f} s at a higher one of the same deployment: a "
          "stall (compilation, connection) is in the mean",
          own, (*run)->concurrency(), later);
    later = std::min(later, own);
  }
}

// Runs of one machine, engine, precision and day whose TTFT is seconds at moderate load.
void judge_campaign(const std::vector<ServingCase*>& runs) {
  constexpr std::size_t least_runs = 5;
  constexpr double load_spread = 4, ttft_spread = 1.6, low = 10, high = 90;
  if (runs.size() < least_runs) return;
  std::vector<double> ttft, load;
  for (const ServingCase* c : runs) {
    ttft.push_back(ttft_of(c));
    load.push_back(c->concurrency());
  }
  const auto [least, most] = std::minmax_element(load.begin(), load.end());
  const double from = percentile(ttft, low), to = percentile(ttft, high);
  if (*most / *least < load_spread || to / from >= ttft_spread) return;
  for (ServingCase* c : runs)
    leave_out(*c, "R14c",
              fmt::format("mean TTFT is {:.1f} to {:.1f} s in {} runs of this campaign whatever "
                          "the concurrency ({:.0f} to {:.0f}): a stall of about {:.0f} s in the "
                          "first of ten waves (kernels compiled), which is in TPOT too",
                          from, to, runs.size(), *least, *most, 10 * median(ttft)));
}

}  // namespace

void skip_ttft_of_stalls(ServingCases& cases) {
  constexpr double over_median = 3;
  for (ServingCase& c : cases)
    if (c.live() && stalled(c) && c.cells.mean_ttft &&
        *c.cells.mean_ttft > over_median * *c.cells.median_ttft)
      c.row.measured.ttft_skipped = fmt::format(
          "a stall of {:.0f} s (99th percentile; median {:.2f} s): kernels compiled "
          "during the run",
          *c.cells.p99_ttft, *c.cells.median_ttft);
}

void skip_falling_ttft(ServingCases& cases) {
  const CaseGroups groups = group_cases(
      cases,
      [](const ServingCase& c) {
        return c.live() && c.of(ServingTable::inferencex) && c.row.measured.ttft;
      },
      [](const ServingCase& c) {
        return fmt::format("{}, {}, {}, {}", c.row.file, c.row.source, deployment_key(c),
                           lengths_key(c));
      });
  for (const auto& [key, runs] : groups) judge_falling(runs);
}

void skip_ttft_of_stalled_twins(ServingCases& cases) {
  constexpr double digits = 1e-5;
  for (const ServingCase& twin : cases) {
    if (!twin.of(ServingTable::dashboard) || !stalled(twin) || !twin.row.measured.tpot ||
        twin.row.measured.statistic != ServingStatistic::mean)
      continue;
    for (ServingCase& c : cases)
      if (c.live() && c.of(ServingTable::inferencex) && c.row.measured.tpot &&
          c.row.gpu == twin.row.gpu && lengths_key(c) == lengths_key(twin) &&
          c.concurrency() == twin.concurrency() &&
          std::abs(*c.row.measured.tpot / *twin.row.measured.tpot - 1) < digits)
        c.row.measured.ttft_skipped = fmt::format(
            "the same run in {} has a 99th percentile of {:.0f} s at a median of "
            "{:.2f} s: kernels compiled during the run",
            twin.row.id, *twin.cells.p99_ttft, *twin.cells.median_ttft);
  }
}

void drop_stalled_campaigns(ServingCases& cases) {
  constexpr double seconds = 3, moderate = 128;
  const CaseGroups campaigns = group_cases(
      cases,
      [](const ServingCase& c) {
        return c.live() && c.inferencex_run() && !c.analysed && !c.row.disaggregated &&
               c.row.measured.statistic == ServingStatistic::mean && !c.row.date.empty() &&
               ttft_of(&c) > seconds && c.concurrency() > 0 && c.concurrency() <= moderate;
      },
      [](const ServingCase& c) {
        return fmt::format("{}, {}, {}, {}, {}", c.row.gpu, c.engine_name, c.row.family,
                           c.row.precision, c.row.date);
      });
  for (const auto& [key, runs] : campaigns) judge_campaign(runs);
}

}  // namespace orrery
