// SPDX-License-Identifier: Apache-2.0
// Multiplies energy by price and carbon.
#include "sim/outcome/fleet/energy_bill.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/outcome/money/bill.h"

namespace orrery {
namespace {

constexpr double joules_of_kwh = 3.6e6;

double joules(__int128 nanojoules) { return static_cast<double>(nanojoules) * 1e-9; }

}  // namespace

EnergyPrices energy_prices(const Cluster& cluster, const std::string& site) {
  BillNames names;
  names.site = site;
  return {.site = load_bill_facts(cluster, names).site};
}

std::optional<EnergyBill> energy_bill(const EnergyPrices& prices, const FleetPower& power) {
  const DataCentre& site = prices.site;
  if (!site.power_usage_effectiveness.known()) return std::nullopt;
  const double facility = site.power_usage_effectiveness.get();
  if (!prices.grid) {
    if (!site.electricity_price.known() || !site.carbon_intensity.known()) return std::nullopt;
    const double energy = joules(power.nanojoules) * facility;
    return EnergyBill{energy * site.electricity_price.get().si(),
                      energy * site.carbon_intensity.get().si()};
  }
  const GridSeries& grid = *prices.grid;
  if (power.hours.size() > grid.hours.size())
    throw Error({.file = grid.name,
                 .path = "hour",
                 .found = fmt::format("{} hours", grid.hours.size()),
                 .expected = fmt::format("the {} hours of the run", power.hours.size())});
  EnergyBill bill;
  for (std::size_t i = 0; i < power.hours.size(); ++i) {
    const double kwh = joules(power.hours[i]) * facility / joules_of_kwh;
    bill.dollars += kwh * grid.hours[i].dollars_per_kwh;
    bill.kg += kwh * grid.hours[i].kg_per_kwh;
  }
  return bill;
}

}  // namespace orrery
