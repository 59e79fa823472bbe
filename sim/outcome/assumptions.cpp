// Collects uncertain values and moves them one at a time.
#include "sim/outcome/assumptions.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace orrery {
namespace {

std::string value_text(double v) { return fmt::format("{:.4g}", v); }
template <Dimension D>
std::string value_text(Quantity<D> q) {
  using Q = Quantity<D>;
  if constexpr (std::is_same_v<Q, JoulesPerFlop>)
    return fmt::format("{:.3g} pJ/FLOP", q.si() * 1e12);
  if constexpr (std::is_same_v<Q, JoulesPerByte>) return fmt::format("{:.3g} pJ/B", q.si() * 1e12);
  if constexpr (std::is_same_v<Q, Seconds> || std::is_same_v<Q, Bytes> ||
                std::is_same_v<Q, BytesPerSecond> || std::is_same_v<Q, FlopPerSecond> ||
                std::is_same_v<Q, Watts> || std::is_same_v<Q, Dollars> || std::is_same_v<Q, Hertz>)
    return to_text(q);
  else
    return fmt::format("{:.4g} {}", q.si(), unit_name(D));
}

double si(double v) { return v; }
template <Dimension D>
double si(Quantity<D> q) {
  return q.si();
}

template <class T>
void collect(std::vector<UncertainValue>& out, const std::string& path, Sourced<T>& sourced) {
  if (!sourced.known() || !is_uncertain(sourced.evidence)) return;
  UncertainValue u;
  u.path = path;
  u.value = si(*sourced.value);
  u.low = sourced.low ? si(*sourced.low) : u.value;
  u.high = sourced.high ? si(*sourced.high) : u.value;
  u.described = {.path = path,
                 .value = value_text(*sourced.value),
                 .low = value_text(sourced.low.value_or(*sourced.value)),
                 .high = value_text(sourced.high.value_or(*sourced.value)),
                 .evidence = sourced.evidence,
                 .source = sourced.source};
  u.set = [&sourced](double v) { sourced.value = static_cast<T>(v); };
  out.push_back(std::move(u));
}

// The values at which a dependency shows: the range's ends and 10% either way (a microsecond or a
// millionth where the value is zero).
std::vector<double> probes(const UncertainValue& u) {
  std::vector<double> at = {u.low, u.high};
  if (u.value == 0) {
    at.push_back(1e-6);
  } else {
    at.push_back(u.value * 1.1);
    at.push_back(u.value * 0.9);
  }
  return at;
}

}  // namespace

std::vector<UncertainValue> collect_uncertain(Scenario& s) {
  std::vector<UncertainValue> out;
  const auto visit = [&](const std::string& owner) {
    return [&out, owner](const std::string& path, auto& sourced) {
      collect(out, owner + path, sourced);
    };
  };
  visit_device_values(s.cluster.device, visit("accelerator " + s.cluster.device.name + ": "));
  visit_calibration(s.cluster.calibration, visit("accelerator " + s.cluster.device.name + ": "));
  visit_fabric_values(s.cluster.fabric, visit("fabric " + s.cluster.fabric.name + ": "));
  visit_collective_values(s.cluster.collective_costs,
                          visit("collectives " + s.cluster.collective_costs.name + ": "));
  visit("cluster " + s.cluster.name + ": ")("site.clock_factor", s.cluster.site.clock_factor);
  visit_stack_values(s.stack, visit("stack " + s.stack.name + "@" + s.stack.release + ": "));
  return out;
}

std::vector<Assumption> find_assumptions(Scenario scenario,
                                         const std::function<Outputs(const Scenario&)>& evaluate) {
  const Outputs base = evaluate(scenario);
  std::vector<Assumption> used;
  for (UncertainValue& u : collect_uncertain(scenario)) {
    bool matters = false;
    std::vector<double> change;
    for (double probe : probes(u)) {
      // The ends of the range are always evaluated, the others only until a dependency is seen.
      if (change.size() >= 2 && matters) break;
      Outputs moved = base;
      if (probe != u.value) {
        u.set(probe);
        moved = evaluate(scenario);
        u.set(u.value);
      }
      matters = matters || !(moved == base);
      change.push_back(moved.step / base.step - 1);
    }
    if (!matters) continue;
    u.described.effect_low = change[0];
    u.described.effect_high = change[1];
    used.push_back(u.described);
  }
  const auto size = [](const Assumption& a) {
    return std::max(std::abs(a.effect_low), std::abs(a.effect_high));
  };
  std::stable_sort(used.begin(), used.end(),
                   [&](const Assumption& a, const Assumption& b) { return size(a) > size(b); });
  return used;
}

RelativeRange join_effects(const std::vector<Assumption>& assumptions) {
  double below = 0, above = 0;
  for (const Assumption& a : assumptions) {
    const double down = std::min({0.0, a.effect_low, a.effect_high});
    const double up = std::max({0.0, a.effect_low, a.effect_high});
    below += down * down;
    above += up * up;
  }
  return {.below = std::sqrt(below), .above = std::sqrt(above)};
}

}  // namespace orrery
