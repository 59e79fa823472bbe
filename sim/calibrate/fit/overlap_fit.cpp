// SPDX-License-Identifier: Apache-2.0
// Knows what compute and collectives cost each other when they run at once, from measured pairs.
#include "sim/calibrate/fit/overlap_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"

namespace orrery {

namespace {

double positive(const Sample& sample, const std::string& key) {
  const double value = sample.number(key);
  if (value > 0) return value;
  throw Error({.path = sample.shape + ", " + key,
               .found = fmt::format("{}", value),
               .expected = "a time above 0"});
}

int whole_or_zero(const Sample& sample, const std::string& key) {
  const auto found = sample.numbers.find(key);
  return found == sample.numbers.end() ? 0 : static_cast<int>(found->second);
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

OverlapCost summary(OverlapCost cost, const std::vector<const OverlapPair*>& pairs) {
  std::vector<double> costs, compute, collective;
  for (const OverlapPair* p : pairs) {
    costs.push_back(p->compute_cost);
    compute.push_back(p->compute_slowdown);
    collective.push_back(p->collective_slowdown);
  }
  cost.pairs = static_cast<int>(pairs.size());
  cost.median = middle(costs);
  cost.low = *std::min_element(costs.begin(), costs.end());
  cost.high = *std::max_element(costs.begin(), costs.end());
  cost.compute_slowdown = middle(compute);
  cost.collective_slowdown = middle(collective);
  return cost;
}

// What the calls cost together, over their time alone.
double together(const std::vector<const OverlapPair*>& pairs) {
  double lost = 0, alone = 0;
  for (const OverlapPair* p : pairs) {
    lost += p->compute_cost * p->alone;
    alone += p->alone;
  }
  return lost / alone;
}

OverlapCost all_products(const std::vector<const OverlapPair*>& pairs) {
  OverlapCost cost = summary({.group = "all", .compute = "gemm"}, pairs);
  std::map<std::tuple<std::string, int>, std::vector<const OverlapPair*>> kinds;
  for (const OverlapPair* p : pairs) kinds[{p->collective, p->run}].push_back(p);
  cost.median = cost.low = cost.high = together(pairs);
  for (const auto& [kind, of] : kinds) {
    cost.low = std::min(cost.low, together(of));
    cost.high = std::max(cost.high, together(of));
  }
  return cost;
}

}  // namespace

std::vector<OverlapPair> overlap_pairs(const MeasuredLog& log) {
  std::vector<OverlapPair> pairs;
  for (const Sample& s : log.samples) {
    if (s.kind != "overlap") continue;
    const double compute = positive(s, "compute_alone_us");
    const double compute_beside = positive(s, "compute_beside_us");
    const double collective = positive(s, "collective_alone_us");
    const double collective_beside = positive(s, "collective_beside_us");
    OverlapPair pair{.run = s.conditions,
                     .compute = s.text_or("compute", s.variant),
                     .collective = s.text_or("collective", s.variant),
                     .urgent = s.text_or("priority", "same") == "high",
                     .ranks = static_cast<std::int64_t>(s.number("ranks")),
                     .bytes = s.number("bytes"),
                     .most_ctas = whole_or_zero(s, "most_ctas"),
                     .ctas = whole_or_zero(s, "sms"),
                     .compute_slowdown = compute_beside / compute,
                     .collective_slowdown = collective_beside / collective,
                     .alone = collective * 1e-6};
    // Beside the other, each second does only 1 / slowdown of a second's work; a hidden call lasts
    // as long as it does beside the other.
    pair.compute_cost = (1 - 1 / pair.compute_slowdown) * pair.collective_slowdown;
    pair.collective_cost = (1 - 1 / pair.collective_slowdown) * pair.compute_slowdown;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::vector<OverlapCost> overlap_costs(const std::vector<OverlapPair>& pairs) {
  using Key = std::tuple<bool, int, std::string, std::string, double>;
  std::map<Key, std::vector<const OverlapPair*>> groups;
  std::vector<const OverlapPair*> all;
  for (const OverlapPair& p : pairs) {
    const bool own = p.most_ctas == 0;
    groups[{p.urgent, p.most_ctas, p.compute, own ? p.collective : "", p.bytes}].push_back(&p);
    if (p.compute == "gemm" && own && !p.urgent) all.push_back(&p);
  }
  std::vector<OverlapCost> out;
  for (const auto& [key, of] : groups) {
    const auto& [urgent, most_ctas, compute, collective, bytes] = key;
    std::string group = fmt::format("{:.3g} MB beside {}", bytes * 1e-6, compute);
    group += ", " + (collective.empty() ? std::string("any") : collective);
    if (most_ctas > 0) group += fmt::format(", at most {} thread blocks", most_ctas);
    if (urgent) group += ", high priority";
    out.push_back(summary({.group = std::move(group),
                           .compute = compute,
                           .collective = collective,
                           .bytes = bytes,
                           .most_ctas = most_ctas,
                           .urgent = urgent},
                          of));
  }
  if (!all.empty()) out.push_back(all_products(all));
  return out;
}

SortedJson overlap_section(const std::vector<OverlapCost>& costs) {
  SortedJson section;
  const auto rounded = [](double value) { return std::round(1e3 * value) / 1e3; };
  for (const OverlapCost& c : costs)
    section.push_back({{"what", c.group},
                       {"pairs", c.pairs},
                       {"compute_slowdown", rounded(c.compute_slowdown)},
                       {"collective_slowdown", rounded(c.collective_slowdown)},
                       {"overlap_cost", rounded(c.median)},
                       {"low", rounded(c.low)},
                       {"high", rounded(c.high)}});
  return section;
}

std::string overlap_text(const std::vector<OverlapCost>& costs) {
  std::string text = fmt::format("{:<50}{:>6}{:>9}{:>12}{:>6}  {}\n", "call beside compute",
                                 "pairs", "compute", "collective", "cost", "least - most");
  for (const OverlapCost& c : costs)
    text +=
        fmt::format("{:<50}{:>6}{:>8.2f}x{:>11.2f}x{:>6.2f}  {:.2f} - {:.2f}\n", c.group, c.pairs,
                    c.compute_slowdown, c.collective_slowdown, c.median, c.low, c.high);
  return text;
}

}  // namespace orrery
