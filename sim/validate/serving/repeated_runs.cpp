// SPDX-License-Identifier: Apache-2.0
// Compares runs of one deployment with each other.
#include "sim/validate/serving/repeated_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/date.h"
#include "sim/base/statistics.h"

namespace orrery {
namespace {

double tpot_of(const ServingCase& c) { return c.row.measured.tpot.value_or(0); }

bool same_but_load(const ServingCase& a, const ServingCase& b) {
  return a.row.gpu == b.row.gpu && a.row.family == b.row.family &&
         a.row.precision == b.row.precision && a.engine_name == b.engine_name &&
         a.row.disaggregated == b.row.disaggregated && lengths_key(a) == lengths_key(b) &&
         a.row.software.speculation == b.row.software.speculation && a.gpus() == b.gpus();
}

// TPOT of the neighbours in concurrency; nullptr: none.
struct Neighbours {
  const ServingCase* below = nullptr;
  const ServingCase* above = nullptr;
};

Neighbours neighbours_of(const std::vector<const ServingCase*>& all,
                         const std::vector<ServingCase*>& group) {
  Neighbours near;
  const ServingCase& one = *group.front();
  for (const ServingCase* c : all) {
    if (!same_but_load(*c, one) || std::find(group.begin(), group.end(), c) != group.end())
      continue;
    if (c->concurrency() < one.concurrency() &&
        (!near.below || c->concurrency() >= near.below->concurrency()))
      near.below = c;
    if (c->concurrency() > one.concurrency() &&
        (!near.above || c->concurrency() < near.above->concurrency()))
      near.above = c;
  }
  return near;
}

void judge_pair(const std::vector<ServingCase*>& group, double ratio, const Neighbours& near) {
  constexpr double slack = 1.1;
  const auto fits = [&near](const ServingCase* c) {
    return tpot_of(*c) > tpot_of(*near.below) / slack && tpot_of(*c) < tpot_of(*near.above) * slack;
  };
  const bool judged = near.below && near.above;
  const bool one_fits = judged && std::count_if(group.begin(), group.end(), fits) == 1;
  for (ServingCase* c : group) {
    if (!one_fits) {
      leave_out(*c, "R8",
                fmt::format("{} runs of the same deployment differ {:.2f} times in TPOT: the "
                            "setting that differs is not told",
                            group.size(), ratio));
    } else if (!fits(c)) {
      leave_out(*c, "R8",
                fmt::format("a second run of the same deployment has {:.2f} times less TPOT and "
                            "fits its neighbours in concurrency, this one does not",
                            ratio));
    }
  }
}

std::string rerun_key(const ServingCase& c) {
  return fmt::format("{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}", c.row.gpu, c.row.family,
                     c.engine_name, c.row.software.framework, c.row.precision,
                     serving_speculation_text[c.row.software.speculation], c.row.disaggregated,
                     lengths_key(c), c.concurrency(),
                     serving_statistic_text[c.row.measured.statistic], layout_key(c));
}

CaseGroups reruns(ServingCases& cases) {
  return group_cases(
      cases,
      [](const ServingCase& c) {
        return c.live() && c.of(ServingTable::dashboard) && c.row.measured.tpot;
      },
      rerun_key);
}

// The least TPOT of runs before or after a day; nullopt: none.
template <class On>
std::optional<double> least_tpot(const std::vector<ServingCase*>& runs, const On& on) {
  std::optional<double> least;
  for (const ServingCase* c : runs)
    if (on(c->row.date) && (!least || tpot_of(*c) < *least)) least = tpot_of(*c);
  return least;
}

std::string day_key(const ServingCase& c) {
  return fmt::format("{}, {}, {}, {}, {}, {}", c.row.gpu, c.engine_name, c.row.precision,
                     c.row.disaggregated, serving_speculation_text[c.row.software.speculation],
                     c.row.date);
}

void judge_rerun(ServingCase& c, const std::vector<ServingCase*>& runs, bool second,
                 std::set<std::string>& days) {
  constexpr double slow = 1.5, stalled = 3;
  const std::string& day = c.row.date;
  const auto before = least_tpot(runs, [&day](const std::string& d) { return d < day; });
  const auto after = least_tpot(runs, [&day](const std::string& d) { return d > day; });
  const double own = tpot_of(c);
  const bool odd_day = second && days.contains(day_key(c));
  if (before && own > slow * *before && (after ? own > slow * *after : odd_day)) {
    days.insert(day_key(c));
    leave_out(
        c, "R14b",
        fmt::format("TPOT is {:.2f} times that of an earlier run of the same deployment{}",
                    own / *before,
                    after ? fmt::format(" and {:.2f} times that of a later one", own / *after)
                          : fmt::format(", on a day ({}) whose other runs are outliers too", day)));
    return;
  }
  if (runs.size() <= 2 || !c.row.measured.ttft) return;
  std::vector<double> ttft;
  for (const ServingCase* run : runs)
    if (run->row.measured.ttft) ttft.push_back(*run->row.measured.ttft);
  const double ratio = *c.row.measured.ttft / median(ttft);
  if (ratio > stalled)
    c.row.measured.ttft_skipped = fmt::format(
        "{:.0f} times the median of {} runs of the same deployment", ratio, runs.size());
}

// Of campaigns of a machine, an engine and a day: how many times slower than what came after.
struct Defects {
  std::map<std::string, double> campaigns;              // with precision and prompt
  std::map<std::string, std::vector<double>> campaign;  // of all precisions
};

std::string any_precision_key(const ServingCase& c) {
  return fmt::format("{}, {}, {}, {}", c.row.gpu, c.engine_name, c.row.load.prompt_tokens,
                     c.row.date);
}

std::string precision_key(const ServingCase& c) {
  return any_precision_key(c) + ", " + c.row.precision;
}

void find_defects(const std::vector<ServingCase*>& runs, Defects& defects) {
  constexpr double slow = 1.8;
  constexpr std::int64_t days = 60;
  for (const ServingCase* c : runs) {
    const auto day = date_from_text(c->row.date);
    if (!day) continue;
    const auto after = least_tpot(runs, [&day](const std::string& d) {
      const auto other = date_from_text(d);
      return other && *other > *day && *other - *day <= days;
    });
    if (!after || tpot_of(*c) <= slow * *after) continue;
    const double ratio = tpot_of(*c) / *after;
    double& worst = defects.campaigns[precision_key(*c)];
    worst = std::max(worst, ratio);
    defects.campaign[any_precision_key(*c)].push_back(ratio);
  }
}

}  // namespace

void drop_contradicting_pairs(ServingCases& cases) {
  constexpr double most = 1.3;
  const auto wanted = [](const ServingCase& c) {
    return c.live() && c.of(ServingTable::inferencex) && c.row.measured.tpot;
  };
  std::vector<const ServingCase*> all;
  for (const ServingCase& c : cases)
    if (wanted(c)) all.push_back(&c);
  const CaseGroups groups = group_cases(cases, wanted, [](const ServingCase& c) {
    return fmt::format("{}, {}, {}", deployment_key(c), lengths_key(c), c.concurrency());
  });
  for (const auto& [key, group] : groups) {
    const auto [least, largest] = std::minmax_element(
        group.begin(), group.end(),
        [](const ServingCase* a, const ServingCase* b) { return tpot_of(*a) < tpot_of(*b); });
    const double ratio = tpot_of(**largest) / tpot_of(**least);
    if (ratio > most) judge_pair(group, ratio, neighbours_of(all, group));
  }
}

void drop_outliers_among_reruns(ServingCases& cases) {
  const CaseGroups groups = reruns(cases);
  std::set<std::string> days;
  for (const bool second : {false, true})
    for (const auto& [key, runs] : groups)
      if (runs.size() > 1)
        for (ServingCase* c : runs) judge_rerun(*c, runs, second, days);
}

void drop_defective_builds(ServingCases& cases) {
  Defects defects;
  std::set<std::string> families;
  const CaseGroups groups = group_cases(
      cases,
      [](const ServingCase& c) {
        return (c.live() || c.row.rule == "R14b") && c.of(ServingTable::dashboard) &&
               c.row.measured.tpot;
      },
      rerun_key);
  for (const auto& [key, runs] : groups) {
    families.insert(runs.front()->row.family);
    find_defects(runs, defects);
  }
  for (ServingCase& c : cases) {
    if (!c.live() || !c.inferencex_run() || c.row.disaggregated || !families.contains(c.row.family))
      continue;
    const auto own = defects.campaigns.find(precision_key(c));
    const auto all = defects.campaign.find(any_precision_key(c));
    double ratio = own == defects.campaigns.end() ? 0 : own->second;
    if (ratio == 0 && all != defects.campaign.end() && all->second.size() >= 2)
      ratio = *std::max_element(all->second.begin(), all->second.end());
    if (ratio > 0)
      leave_out(c, "R18",
                fmt::format("in this campaign ({} on {}, {}) TPOT is up to {:.1f} times that of "
                            "the next image within 60 days: a defect of that build",
                            c.engine_name, c.row.gpu, c.row.date, ratio));
  }
}

}  // namespace orrery
