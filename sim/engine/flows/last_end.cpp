// SPDX-License-Identifier: Apache-2.0
// Finds the links that fill first, and when what they carry has passed.
#include "sim/engine/flows/last_end.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "sim/engine/flows/clock.h"
#include "sim/engine/flows/solver.h"

namespace orrery {
namespace {

// Flows that settle a million times round by less than this share of their bytes.
constexpr double rounding = 1e-9;

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Of all links: the least levels at which they saturate, and the greatest capacity of one flow.
struct Levels {
  double least = infinite, next = infinite;
};

Levels levels_of(const FlowTable& table) {
  std::vector<std::int64_t> units(table.links.size(), 0);
  for (const FlowUse& use : table.uses) units[use.link] += weight_units(use.weight);
  Levels levels;
  for (std::size_t l = 0; l < units.size(); ++l) {
    const double capacity = table.links[l].capacity;
    if (units[l] == 0 || !(capacity < infinite)) continue;
    const double level = capacity / (static_cast<double>(units[l]) * weight_unit);
    if (level < levels.least) {
      levels.next = levels.least;
      levels.least = level;
    } else if (level > levels.least) {
      levels.next = std::min(levels.next, level);
    }
  }
  return levels;
}

// The most that a flow can have: what the least of its links carries alone. A lower bound of the
// time until the first end follows.
double fastest(const FlowTable& table) {
  double most = 0;
  for (const FlowEntry& flow : table.flows) {
    double rate = infinite;
    for (const FlowUse& use : table.uses_of(flow))
      if (use.weight > 0) rate = std::min(rate, table.links[use.link].capacity / use.weight);
    most = std::max(most, rate);
  }
  return most;
}

// Of every flow, where all have one size and nothing else tells them apart; else 0.
double one_size(const FlowTable& table, double bytes) {
  if (table.flows.empty()) return 0;
  const FlowEntry& any = table.flows.front();
  for (const FlowEntry& flow : table.flows)
    if (!same(flow.bytes, any.bytes) || flow.cap < infinite || flow.priority != any.priority)
      return 0;
  const double size = any.bytes * bytes;
  return std::isfinite(size) ? size : 0;
}

}  // namespace

std::optional<Ticks> last_end(const FlowTable& table, double bytes) {
  const double size = one_size(table, bytes);
  if (!(size > 0)) return std::nullopt;
  const Levels levels = levels_of(table);
  if (!(levels.least > 0) || !std::isfinite(levels.least)) return std::nullopt;
  const std::optional<Ticks> end = FlowClock::end_alone(size, levels.least);
  if (!end || !std::isfinite(levels.next)) return end;
  const double most = fastest(table);
  const double first_end = std::isfinite(most) ? size / most * 1e12 : 0;
  const double ahead = (levels.next / levels.least - 1) * first_end;
  if (ahead < 4 + rounding * static_cast<double>(end->ps)) return std::nullopt;
  return end;
}

FlowEnds ends_together(const FlowTable& table, double bytes) {
  const double size = one_size(table, bytes);
  if (!(size > 0)) return {};
  FlowSolver solver(table);
  for (FlowIndex f = 0; f < table.flows.size(); ++f) solver.start(f);
  solver.solve();
  FlowEnds all;
  for (FlowIndex f = 0; f < table.flows.size(); ++f) {
    const std::optional<Ticks> end = FlowClock::end_alone(size, solver.rate(f));
    if (!end) return {};
    all.ends.push_back(*end);
    all.rates.push_back(solver.rate(f));
  }
  return all;
}

}  // namespace orrery
