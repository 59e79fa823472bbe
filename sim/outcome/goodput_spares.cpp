// Knows how many hosts or domains are out at a time, and how many spares that takes.
#include <algorithm>
#include <cmath>

#include "sim/outcome/goodput.h"
#include "sim/outcome/goodput_levels.h"

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
  chance[mode] = std::exp(m * std::log(mean) - mean - std::lgamma(m + 1));
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

}  // namespace

std::vector<double> units_out_distribution(const GoodputCase& input) {
  const Loads loads = loads_of(input);
  if (input.repair_crews > 0 && loads.events > 0) {
    // Repairs of all sizes wait in one line: counted in repairs of the mean size.
    const double load = loads.host + loads.domain + loads.leaf;
    const std::vector<double> repairs = crews_busy(load, input.repair_crews);
    const auto size = static_cast<std::size_t>(std::ceil(loads.units / loads.events - 1e-9));
    return together({1}, repairs, std::max<std::size_t>(size, 1));
  }
  return together(poisson(mean_lost(input, loads)), poisson(loads.leaf),
                  static_cast<std::size_t>(input.units.leaf));
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
  for (std::size_t units = 0; units < out.size(); ++units) {
    sum += out[units];
    if (sum >= probability) return static_cast<std::int64_t>(units);
  }
  return static_cast<std::int64_t>(out.size());
}

}  // namespace orrery
