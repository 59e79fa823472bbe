// SPDX-License-Identifier: Apache-2.0
// Knows how many hosts or domains are out at a time, and how many spares that takes.
#include <algorithm>
#include <cmath>

#include "sim/base/statistics.h"
#include "sim/outcome/months/goodput.h"
#include "sim/outcome/months/levels.h"

namespace orrery {
namespace {

constexpr double negligible = 1e-13;

// Chances of 0, 1, 2, .. of a Poisson variable, from its mode outwards: no underflow on the way.
std::vector<double> poisson(double mean) {
  if (mean <= 0) return {1};
  const auto mode = static_cast<std::size_t>(mean);
  const auto last = static_cast<std::size_t>(mean + 10 * std::sqrt(mean) + 30);
  std::vector<double> chance(last + 1, 0);
  const auto m = static_cast<double>(mode);
  chance[mode] = std::exp(m * std::log(mean) - mean - log_factorial(m));
  for (std::size_t n = mode; n > 0; --n) chance[n - 1] = chance[n] * static_cast<double>(n) / mean;
  for (std::size_t n = mode; n < last; ++n)
    chance[n + 1] = chance[n] * mean / static_cast<double>(n + 1);
  return chance;
}

// Chances of 0, 1, 2, .. repairs, waiting ones included, of so many crews (M/M/c).
std::vector<double> crews_busy(double load, std::int64_t crews) {
  const auto servers = static_cast<double>(crews);
  std::vector<double> chance = {1};
  double sum = 1;
  while (chance.back() > negligible * sum || static_cast<double>(chance.size()) < load + 1) {
    const auto n = static_cast<double>(chance.size());
    chance.push_back(chance.back() * load / std::min(n, servers));
    sum += chance.back();
    if (sum > 1e200) {
      for (double& one : chance) one /= sum;
      sum = 1;
    }
  }
  for (double& one : chance) one /= sum;
  return chance;
}

// Adds a second group of losses, each of `size` units.
std::vector<double> together(const std::vector<double>& a, const std::vector<double>& b,
                             std::size_t size) {
  if (b.size() == 1) return a;
  std::vector<double> sum(a.size() + (b.size() - 1) * size, 0);
  for (std::size_t j = 0; j < b.size(); ++j) {
    if (b[j] < negligible) continue;
    for (std::size_t i = 0; i < a.size(); ++i) sum[i + j * size] += a[i] * b[j];
  }
  return sum;
}

struct Loads {
  double host = 0, domain = 0, leaf = 0;  // mean number under repair, crews without limit
  double events = 0, units = 0;           // repairs and the units that they take, per second
};

Loads loads_of(const GoodputCase& input) {
  Loads loads;
  for (const FailureClass& failure : input.failures) {
    const double rate = mean_rate(failure, input.run) * failure.removed.value;
    const double load = rate * failure.repair.value.si();
    if (failure.blast == BlastRadius::host) loads.host += load;
    if (failure.blast == BlastRadius::domain) loads.domain += load;
    if (failure.blast == BlastRadius::leaf) loads.leaf += load;
    loads.events += rate;
    loads.units +=
        rate * (failure.blast == BlastRadius::leaf ? static_cast<double>(input.units.leaf) : 1);
  }
  return loads;
}

// Units that single hosts and domains take out. One with slack is lost only when more of its hosts
// are out than the layout can do without.
double mean_lost(const GoodputCase& input, const Loads& loads) {
  if (input.units.slack == 0) return loads.host + loads.domain;
  const auto units = static_cast<double>(input.units.count);
  const std::vector<double> hosts = poisson(loads.host / units);
  double good = 0;
  for (std::size_t n = 0; n < hosts.size(); ++n)
    if (static_cast<std::int64_t>(n) <= input.units.slack) good += hosts[n];
  const double alive = std::log(std::min(good, 1.0)) - loads.domain / units;
  return -units * alive;
}

// Repairs of all sizes wait in one line of so many crews: counted in repairs of the mean size.
std::size_t mean_size(const Loads& loads) {
  const auto size = static_cast<std::size_t>(std::ceil(loads.units / loads.events - 1e-9));
  return std::max<std::size_t>(size, 1);
}

bool has_queue(const GoodputCase& input, const Loads& loads) {
  return input.repair_crews > 0 && loads.events > 0;
}

// Units out of a job that stands still, and loses no more, as soon as more are out than it has
// spares: n p(n) is the sum of load * size * p(n - size) over the kinds of losses that get there
// while it runs. Exact for losses of single units (Erlang's loss formula, which asks for no more
// than the mean of the repair times) and for those of equal size.
SpareUse use_of(double single, double leaf, std::int64_t leaf_units, std::int64_t spares) {
  constexpr double too_large = 1e200;
  const auto last = static_cast<std::size_t>(spares);
  const auto size = static_cast<std::size_t>(leaf_units);
  const double leaf_load = leaf > 0 ? leaf * static_cast<double>(leaf_units) : 0;
  std::vector<double> chance = {1};
  double running = 1;
  const auto into = [&](std::size_t n) {
    double sum = n - 1 <= last ? single * chance[n - 1] : 0;
    if (leaf_load > 0 && n >= size && n - size <= last) sum += leaf_load * chance[n - size];
    return sum / static_cast<double>(n);
  };
  for (std::size_t n = 1; n <= last; ++n) {
    chance.push_back(into(n));
    running += chance.back();
    if (running < too_large) continue;
    for (double& one : chance) one /= running;
    running = 1;
  }
  double waiting = 0;
  const std::size_t most = last + (leaf_load > 0 ? size : 1);
  for (std::size_t n = last + 1; n <= most; ++n) waiting += into(n);
  const double runs = running / (running + waiting);
  return {.waiting = 1 - runs, .units_out = runs * (single + leaf_load)};
}

// Fewer crews than repairs: those wait too, while the job runs and while it does not.
SpareUse use_with_crews(const GoodputCase& input, const Loads& loads) {
  const double load = loads.host + loads.domain + loads.leaf;
  const std::size_t size = mean_size(loads);
  const auto crews = static_cast<double>(input.repair_crews);
  const auto first = static_cast<std::size_t>(input.spares) / size + 1;  // that is one too many
  double chance = 1, sum = 1, mean = 0;
  for (std::size_t n = 1; n <= first; ++n) {
    const auto repairs = static_cast<double>(n);
    chance *= load / std::min(repairs, crews);
    sum += chance;
    mean += chance * repairs;
    if (sum < 1e200) continue;
    chance /= sum;
    mean /= sum;
    sum = 1;
  }
  return {.waiting = chance / sum, .units_out = mean / sum * static_cast<double>(size)};
}

// Hosts of units with slack are repaired while the job stands still, those of whole units too:
// their load is that of the time in which it runs, which in turn follows from the load.
SpareUse use_with_slack(const GoodputCase& input, const Loads& loads) {
  const auto use_at = [&](double runs) {
    Loads some = loads;
    some.host *= runs;
    some.domain *= runs;
    return use_of(mean_lost(input, some) / runs, loads.leaf, input.units.leaf, input.spares);
  };
  // More running, more load, less running: one root. Steps of the map itself where they are short,
  // halves where they are not.
  constexpr double close = 1e-9;
  SpareUse use = use_at(1);
  double low = 1 - use.waiting, high = 1, runs = low;
  for (int i = 0; i < 60 && high - low > close; ++i) {
    use = use_at(runs);
    const double then = 1 - use.waiting;
    if (std::abs(then - runs) < close) break;
    (then > runs ? low : high) = runs;
    runs = i % 2 == 0 && then > low && then < high ? then : 0.5 * (low + high);
  }
  return use;
}

}  // namespace

std::vector<double> units_out_distribution(const GoodputCase& input) {
  const Loads loads = loads_of(input);
  if (has_queue(input, loads)) {
    const double load = loads.host + loads.domain + loads.leaf;
    return together({1}, crews_busy(load, input.repair_crews), mean_size(loads));
  }
  return together(poisson(mean_lost(input, loads)), poisson(loads.leaf),
                  static_cast<std::size_t>(input.units.leaf));
}

SpareUse spare_use(const GoodputCase& input) {
  const Loads loads = loads_of(input);
  if (has_queue(input, loads)) return use_with_crews(input, loads);
  if (input.units.slack > 0) return use_with_slack(input, loads);
  return use_of(loads.host + loads.domain, loads.leaf, input.units.leaf, input.spares);
}

std::int64_t spares_needed(const GoodputCase& input, double probability) {
  if (!(probability > 0 && probability < 1))
    throw Error({.file = "goodput",
                 .path = "probability",
                 .found = std::to_string(probability),
                 .expected = "a probability between 0 and 1"});
  check_goodput(input);
  const std::vector<double> out = units_out_distribution(input);
  double sum = 0;
  std::int64_t enough = 0;  // if idle machines failed too: as many or more than are needed
  for (const double chance : out) {
    sum += chance;
    if (sum >= probability) break;
    ++enough;
  }
  if (input.elastic || enough == 0) return enough;
  GoodputCase with = input;
  std::int64_t few = -1;
  while (enough - few > 1) {
    with.spares = few + (enough - few) / 2;
    (1 - spare_use(with).waiting >= probability ? enough : few) = with.spares;
  }
  return enough;
}

}  // namespace orrery
