// SPDX-License-Identifier: Apache-2.0
// Knows when a device throttles: a mix of kernels cannot run faster than its power limit allows.
#include "hw_models/power.h"

#include <algorithm>
#include <cmath>

namespace orrery {

Seconds sustained_time(Seconds burst, Joules energy, const ResolvedDevice& device) {
  const double budget = device.power_limit.si() - device.idle_power.si();
  if (budget <= 0) return burst;  // no published limit: nothing to throttle by
  return Seconds(std::max(burst.si(), energy.si() / budget));
}

namespace {

// Energy of an operation over that at another speed: (speed ratio) to this power. On an H200 it
// goes with the clock squared (0.86 pJ a bf16 FLOP at 1.46 GHz, 1.1 at 1.66 GHz, 1.5 at 1.94 GHz),
// time of large products with the clock to the -0.58 (1.18 times the burst at 0.75 of its clock).
constexpr double energy_by_clock = 2, speed_by_clock = 0.58;
constexpr double energy_by_speed = energy_by_clock / speed_by_clock;

// Of what a limit leaves above idle: no clock was measured below.
constexpr double least_budget = 0.5;

// How much more an operation costs at `faster` times the speed that calibrations hold it for.
double energy_factor(double faster) { return faster > 1 ? std::pow(faster, energy_by_speed) : 1.0; }

// Clocked work, with what does not depend on the clock that is looked for.
struct Clocked {
  double time = 0, alone = 0;  // seconds at full clocks; alone at the limit
  double energy = 0;           // joules alone at the limit
  double hottest = 1;          // energy at full clocks over that
  bool hides = false;
};

std::vector<Clocked> prepared(const std::vector<ClockedWork>& clocked, double budget) {
  std::vector<Clocked> all;
  all.reserve(clocked.size());
  for (const ClockedWork& work : clocked) {
    Clocked c{.time = work.time.si(), .energy = work.energy.si(), .hides = work.hides};
    c.alone = c.energy / budget;
    if (c.time > 0) c.hottest = energy_factor(c.alone / c.time);
    all.push_back(c);
  }
  return all;
}

// What the clocked work takes and costs when its time is at least `share` of what it takes alone at
// the limit. All of it runs at one clock: that of the work on the whole.
SustainedPass clocked_pass(const std::vector<Clocked>& clocked, double share) {
  const double cooler = share > 0 ? energy_factor(1 / share) : HUGE_VAL;
  double time = 0, energy = 0, hiding = 0, burst = 0;
  for (const Clocked& c : clocked) {
    const double slowed = std::max(c.time, share * c.alone);
    time += slowed;
    burst += c.time;
    energy += c.energy * std::min(c.hottest, cooler);
    if (c.hides) hiding += slowed - c.time;
  }
  const double clock = time > burst ? std::pow(burst / time, 1 / speed_by_clock) : 1;
  return {Seconds(time), Joules(energy), Seconds(hiding), clock};
}

}  // namespace

SustainedPass sustained_pass(Seconds stream, Seconds paced, Joules energy,
                             const std::vector<ClockedWork>& clocked, const ResolvedDevice& device,
                             const std::function<Seconds(Seconds, Seconds)>& joined) {
  const double budget = device.power_limit.si() - device.idle_power.si();
  const Seconds burst = joined(stream, Seconds(0));
  if (budget <= 0) return {.time = burst, .energy = energy};
  Seconds other_time = stream;
  Joules other_energy = energy;
  for (const ClockedWork& one : clocked) {
    other_time -= one.time;
    other_energy -= one.energy;
  }
  other_time = std::max(Seconds(0), other_time);
  other_energy = std::max(Joules(0), other_energy);
  const std::vector<Clocked> work = prepared(clocked, budget);
  const auto at = [&](double share) {
    const SustainedPass pass = clocked_pass(work, share);
    const Seconds others = other_time + (1 / pass.clock - 1) * paced;
    return SustainedPass{std::max(burst, joined(others + pass.time, pass.hiding)),
                         other_energy + pass.energy, pass.hiding, pass.clock};
  };
  const auto fits = [&](const SustainedPass& p) { return p.energy.si() <= budget * p.time.si(); };
  if (const SustainedPass fastest = at(0); fits(fastest)) return fastest;
  // No clock saves more: the rest is too hot as well.
  if (const SustainedPass coolest = at(1); !fits(coolest))
    return {std::max(burst, Seconds(coolest.energy.si() / budget)), coolest.energy, coolest.hiding,
            coolest.clock};
  // The first share of a grid that fits: rounding of the sums cannot make a faster device slower.
  // What is too hot falls almost in proportion to the share, so that the next one to look at lies
  // on the line between the last two; every other is the middle, for where it does not.
  const auto too_hot = [&](const SustainedPass& p) { return p.energy.si() - budget * p.time.si(); };
  constexpr double steps = 1 << 20;
  double low = 0, high = steps, above = too_hot(at(0)), below = too_hot(at(1));
  for (bool middle = false; high - low > 1; middle = !middle) {
    const double guess =
        middle ? (low + high) / 2 : low + (high - low) * above / std::max(above - below, 1e-300);
    const double next = std::clamp(std::floor(guess), low + 1, high - 1);
    const double heat = too_hot(at(next / steps));
    const bool fit = heat <= 0;
    (fit ? high : low) = next;
    (fit ? below : above) = heat;
  }
  return at(high / steps);
}

// Alone at the limit, budget = speed * energy and energy = speed to the power above.
double sustained_energy(double budget) {
  return std::pow(std::max(budget, least_budget), energy_by_speed / (1 + energy_by_speed));
}

double budget_of_clock(double clock) { return std::pow(clock, energy_by_clock + speed_by_clock); }

double least_measured_clock() {
  return std::pow(least_budget, 1 / (energy_by_clock + speed_by_clock));
}

Watts mean_power(Joules energy, Seconds elapsed, const ResolvedDevice& device) {
  if (elapsed.si() <= 0) return device.idle_power;
  const double power = device.idle_power.si() + energy.si() / elapsed.si();
  if (device.power_limit.si() <= 0) return Watts(power);
  return Watts(std::min(power, device.power_limit.si()));
}

}  // namespace orrery
