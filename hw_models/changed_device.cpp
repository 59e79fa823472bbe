// SPDX-License-Identifier: Apache-2.0
// Moves energies of work to the clocks that another peak or another power limit sustains.
#include "hw_models/changed_device.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hw_models/power.h"

namespace orrery {
namespace {

// Share of the peak that large products reach.
constexpr double typical_share = 0.8;

// Power for work; 0: not known.
double budget_of(const Device& device) {
  if (!device.power_limit.known() || !device.idle_power.known()) return 0;
  return std::max(0.0, (device.power_limit.get() - device.idle_power.get()).si());
}

// Power of tensor work at full clocks and a share of the peak, at the energy that the calibration
// holds, over what the board's limit leaves. Above 1 that energy is of the clock that the limit
// sustains; 0: not known.
double demand(const Device& device, const Calibration& calibration, Format format, double share) {
  const auto f = static_cast<std::size_t>(format);
  const double budget = budget_of(device);
  const auto& own = calibration.tensor_energy[f];
  const auto& bf16 = calibration.tensor_energy[static_cast<std::size_t>(Format::bf16)];
  const double energy = own.value.value_or(bf16.value.value_or(JoulesPerFlop())).si();
  const double rate = device.tensor_rate[f].value.value_or(FlopPerSecond()).si();
  return budget > 0 ? energy * rate * share / budget : 0;
}

// Energy of a format's tensor work under `budget` times today's power for work. Beyond what full
// clocks draw more power changes nothing; alone at the limit time goes with the budget to
// sustained_energy's exponent less one, which says where that is.
double energy_under(double today, double budget) {
  if (today <= 0) return sustained_energy(std::min(budget, 1.0));
  if (today <= 1) return sustained_energy(std::min(budget / today, 1.0));
  const double full = std::pow(today, 1 / (1 - std::log2(sustained_energy(2))));
  return sustained_energy(std::min(budget, full));
}

// Energy of tensor work that is `faster` at full clocks, where it demands `today` of the budget
// before: at the limit more speed means a lower clock, where an operation costs less.
double energy_of(double faster, double today) {
  if (today <= 0) return 1;
  return today > 1 ? sustained_energy(1 / faster)
                   : sustained_energy(std::min(1.0, 1 / (today * faster)));
}

template <class T>
void scale(Sourced<T>& value, double factor) {
  if (factor == 1) return;
  for (auto* part : {&value.value, &value.low, &value.high})
    if (*part) **part = **part * factor;
}

void follow_rates(Calibration& calibration, const Device& measured, const Device& changed) {
  std::array<double, format_count> energies{};
  for (std::size_t f = 0; f < format_count; ++f) {
    const auto &before = measured.tensor_rate[f], &after = changed.tensor_rate[f];
    energies[f] = 1;
    if (!before.known() || !after.known() || before.get() == after.get()) continue;
    if (!(before.get().si() > 0) || !(after.get().si() > 0)) continue;
    const double today = demand(measured, calibration, static_cast<Format>(f), typical_share);
    energies[f] = energy_of(after.get() / before.get(), today);
  }
  for (std::size_t f = 0; f < format_count; ++f) scale(calibration.tensor_energy[f], energies[f]);
}

// `changed` differs from the device that the calibration is of in its limit alone.
void follow_limit(Calibration& calibration, const Device& changed, double before) {
  const double after = budget_of(changed);
  if (!(before > 0) || !(after > 0) || before == after) return;
  // What the calibration's device demanded, of the budget that it had.
  std::array<double, format_count> energies{};
  for (std::size_t f = 0; f < format_count; ++f) {
    const double today =
        demand(changed, calibration, static_cast<Format>(f), typical_share) * (after / before);
    energies[f] = energy_under(today, after / before);
  }
  for (std::size_t f = 0; f < format_count; ++f) scale(calibration.tensor_energy[f], energies[f]);
  // Busy processors draw the watts that they drew, as long as the limit leaves them.
  Sourced<double>& busy = calibration.busy_share;
  if (busy.known()) scale(busy, std::min(before / after, 1 / std::max(1e-9, busy.get())));
}

}  // namespace

double faster_work_energy(const Device& device, const Calibration& calibration, Format format,
                          double share, double faster) {
  return energy_of(faster, demand(device, calibration, format, share));
}

void follow_device(Calibration& calibration, const Device& measured, const Device& changed) {
  follow_rates(calibration, measured, changed);
  follow_limit(calibration, changed, budget_of(measured));
}

}  // namespace orrery
