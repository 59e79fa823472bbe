// SPDX-License-Identifier: Apache-2.0
// Compares the figures of rows to find the same measurement in several tables.
#include "sim/validate/serving/serving_duplicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace orrery {
namespace {

// TTFT of fewer digits than printed: two decimals of milliseconds below a second, one above.
std::string rounded_ttft(const ServingCase& c) {
  const double seconds = c.row.measured.ttft.value_or(0);
  return seconds < 1 ? fmt::format("{:.2f}", seconds * 1e3) : fmt::format("{:.1f}", seconds * 1e3);
}

// A TPOT that was printed with fewer digits is the longer one that it rounds from.
double joined_tpot(const ServingCase& c, const std::vector<ServingCase*>& group) {
  constexpr double half_digit = 0.0051e-3;
  const double own = c.row.measured.tpot.value_or(0);
  for (const ServingCase* other : group) {
    const double tpot = other->row.measured.tpot.value_or(0);
    if (std::abs(tpot - own) <= half_digit &&
        other->cells.tpot_digits.size() > c.cells.tpot_digits.size())
      return tpot;
  }
  return own;
}

// Which of equal rows stays: the one whose speculation is told by its model's name (its table also
// tells workers), then one that needed no repair, then by table and number.
auto rank_of(const ServingCase* c) {
  return std::tuple(c->name_speculation == "none" ? 0 : 1, c->cells.squared ? 1 : 0, c->row.file,
                    c->number);
}

std::string load_key(const ServingCase& c) {
  return fmt::format("{}, {}, {}, {}, {}, {}", c.row.gpu, c.row.family, c.engine_name,
                     c.row.precision, lengths_key(c), c.concurrency());
}

}  // namespace

std::string measurement_key(const ServingCase& c) {
  return fmt::format("{}, {:.5g}, {:.5g}", load_key(c), c.row.measured.ttft.value_or(0),
                     c.row.measured.tpot.value_or(0));
}

void drop_repeated_rows(ServingCases& cases) {
  const CaseGroups near = group_cases(
      cases,
      [](const ServingCase& c) {
        return c.of(ServingTable::inferencex) && c.row.measured.ttft && c.row.measured.tpot;
      },
      [](const ServingCase& c) { return load_key(c) + ", " + rounded_ttft(c); });
  for (const auto& [key, group] : near) {
    std::map<double, std::vector<ServingCase*>> equal;
    for (ServingCase* c : group) equal[joined_tpot(*c, group)].push_back(c);
    for (auto& [tpot, same] : equal) {
      std::sort(same.begin(), same.end(),
                [](const ServingCase* a, const ServingCase* b) { return rank_of(a) < rank_of(b); });
      for (std::size_t i = 1; i < same.size(); ++i)
        leave_out(*same[i], "R1",
                  fmt::format("the same measurement as {} (TTFT and TPOT equal to the last digit)",
                              same.front()->row.id));
    }
  }
}

void drop_repeated_throughput(ServingCases& cases) {
  const CaseGroups equal = group_cases(
      cases, [](const ServingCase& c) { return c.live() && c.of(ServingTable::overview); },
      [](const ServingCase& c) {
        return fmt::format("{}, {}, {}, {}, {}, {}", c.row.gpu, c.row.family, c.row.precision,
                           lengths_key(c), c.cells.printed_gpus,
                           c.row.measured.tokens_s_gpu.value_or(0));
      });
  for (const auto& [key, same] : equal)
    for (std::size_t i = 1; i < same.size(); ++i)
      leave_out(*same[i], "R1", fmt::format("the same measurement as {}", same.front()->row.id));
}

void join_labelled_runs(ServingCases& cases) {
  std::map<std::string, ServingCase*> labelled;
  for (ServingCase& c : cases)
    if (c.of(ServingTable::dashboard) && c.row.measured.statistic == ServingStatistic::mean)
      labelled[measurement_key(c)] = &c;
  for (ServingCase& c : cases) {
    if (!c.live() || !c.of(ServingTable::inferencex)) continue;
    const auto found = labelled.find(measurement_key(c));
    if (found == labelled.end()) continue;
    ServingCase& label = *found->second;
    if (c.row.disaggregated && c.prefill.count == 0) {
      leave_out(c, "R2",
                fmt::format("the same measurement as {}, which prints workers and speculation",
                            label.row.id));
      continue;
    }
    leave_out(label, "R2",
              fmt::format("the same measurement as {} (mean TTFT and TPOT equal); its label is "
                          "carried over",
                          c.row.id));
    c.row.software.speculation = label.row.software.speculation;
    c.row.software.speculation_from = "label";
    c.row.measured.tokens_s_gpu = label.row.measured.tokens_s_gpu;
  }
}

void drop_trials(ServingCases& cases) {
  CaseGroups runs = group_cases(
      cases, [](const ServingCase& c) { return c.live() && c.of(ServingTable::batches); },
      [](const ServingCase& c) { return c.cells.run; });
  for (auto& [key, trials] : runs) {
    std::stable_sort(trials.begin(), trials.end(), [](const ServingCase* a, const ServingCase* b) {
      return a->row.measured.tpot.value_or(0) < b->row.measured.tpot.value_or(0);
    });
    const ServingCase* kept = trials[trials.size() / 2];
    for (ServingCase* c : trials)
      if (c != kept)
        leave_out(
            *c, "R16",
            fmt::format("trial of the same run as {}, which has the median TPOT", kept->row.id));
  }
}

}  // namespace orrery
