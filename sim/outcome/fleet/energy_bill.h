// SPDX-License-Identifier: Apache-2.0
// Bills what a cluster drew over months: electricity and carbon, at a site or by the hour.
#pragma once

#include <optional>

#include "hw_models/price/economics.h"
#include "hw_models/price/grid_series.h"
#include "sim/engine/cluster.h"
#include "sim/engine/fleet/fleet_record.h"

namespace orrery {

// What stands behind a bill: facility energy over that of accelerators and hosts, and what a
// kilowatt-hour costs and emits, each with its range.
struct EnergyPrices {
  DataCentre site;
  std::optional<GridSeries> grid = {};  // in place of the site's price and carbon
};

// A named site's, or those of the cluster's own (an unspecified place where it says nothing).
EnergyPrices energy_prices(const Cluster& cluster, const std::string& site);

// Of accelerators and hosts with the site's losses; networks and storage are left out.
struct EnergyBill {
  double dollars = 0, kg = 0;
};
// Of the site's own values those in the middle. Errors: a grid that ends before the run. Nothing
// where price or carbon of the site is not known.
std::optional<EnergyBill> energy_bill(const EnergyPrices& prices, const FleetPower& power);

}  // namespace orrery
