// SPDX-License-Identifier: Apache-2.0
// Lists what owning and renting machines costs: sites, storage, cloud prices, lives and shares.
#pragma once

#include <optional>
#include <string>

#include "sim/base/json/json.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

using DollarsPerJoule = Quantity<Dimension{.energy = -1, .money = 1}>;
using DollarsPerWatt = Quantity<Dimension{.time = 1, .energy = -1, .money = 1}>;
using CarbonPerJoule = Quantity<Dimension{.energy = -1, .carbon = 1}>;

// A place where machines stand: hw_models/catalog/sites. Watts are those of IT equipment unless
// said otherwise; carbon is that of the grid (location based).
struct DataCentre {
  std::string name, title;
  Sourced<double> power_usage_effectiveness;  // facility energy over that of IT
  Sourced<DollarsPerJoule> electricity_price;
  Sourced<CarbonPerJoule> carbon_intensity;
  Sourced<DollarsPerWatt> building_price;     // shell, power and cooling per watt of IT load
  Sourced<DollarsPerJoule> colocation_price;  // rent of space with power and cooling, per watt and
                                              // second of IT load; electricity is paid beside it
  Sourced<Watts> rack_power;                  // that one rack may draw
  Sourced<double> rack_square_metres;         // white space, aisles included
  Sourced<double> megawatt_square_metres;     // building per MW of IT load, plant included
  Sourced<double> staff_per_megawatt;         // people
  Sourced<DollarsPerSecond> staff_cost;       // of one person, all taxes included
  Sourced<double> water_litres_per_kilowatt_hour;  // of IT energy, on site
  Sourced<double> water_dollars_per_cubic_metre;
  Sourced<Hertz> cost_of_money;  // share of the capital per second
};

// Storage comes in equal units: hw_models/catalog/storage. What is only sold has no rental, what is
// only rented (a cloud's) has no price and no power.
struct StorageProduct {
  std::string name, title;
  Sourced<Bytes> capacity;  // usable, of one unit
  Sourced<BytesPerSecond> read_bandwidth, write_bandwidth;
  Sourced<Watts> power;
  Sourced<Dollars> price;
  Sourced<DollarsPerSecond> rental;
};

// Assumptions of an owner: hw_models/catalog/economics.
struct Economics {
  std::string name, title;
  Sourced<Seconds> accelerator_life, network_life, storage_life, building_life;  // straight line
  Sourced<double> residual_value;        // of accelerators and hosts at the end, a share
  Sourced<Hertz> equipment_maintenance;  // share of the price per second, spare parts included
  Sourced<Hertz> building_maintenance;
  Sourced<Hertz> insurance_and_taxes;  // share of all capital per second
  Sourced<double> installation;        // freight, cabling, tests: share of the equipment's price
  Sourced<double> operators_per_thousand_accelerators;
  Sourced<Dollars> frontend_price;  // of the storage and management network, per host
  Sourced<Watts> frontend_power;
  Sourced<double>
      accelerator_load;       // mean power in training over the limit, where no prediction is
  Sourced<double> host_load;  // mean power of hosts and network over the rated
  Sourced<double> network_load;
  Sourced<double> idle_share;   // power in time that does not count: 0 idle, 1 as in training
  Sourced<double> utilisation;  // share of their life in which owned machines have work
  // Spot capacity: how often one host is taken back, and until another can be had.
  Sourced<Hertz> spot_interruption_rate;
  Sourced<Seconds> spot_replacement;
  // What storage must hold of a job.
  Sourced<double> checkpoints_kept;
  Sourced<Bytes> dataset_bytes_per_token;
};

enum class Contract { on_demand, reserved_1y, reserved_3y, spot };
inline constexpr auto contract_text =
    enum_names<Contract>({"on-demand", "reserved-1y", "reserved-3y", "spot"});
std::string_view to_text(Contract);  // in words: "reserved for a year"

// What clouds ask for one accelerator with its share of host, network and site, per second, under
// the contracts beside on demand: hw_models/catalog/cloud, by the accelerator's name. Its price on
// demand is Device::rental and stands nowhere else.
struct CloudPrices {
  std::string name, title;
  std::string date;  // of the prices
  Sourced<DollarsPerSecond> reserved_1y, reserved_3y, spot;
  // Not for on demand.
  const Sourced<DollarsPerSecond>& of(Contract contract) const;
};

DataCentre read_site(const JsonValue& file);
StorageProduct read_storage(const JsonValue& file);
Economics read_economics(const JsonValue& file);
CloudPrices read_cloud_prices(const JsonValue& file);

// By name from hw_models/catalog/{sites, storage, economics, cloud}, or a path to such a file.
// An unknown name is an Error with the nearest.
DataCentre load_site(const std::string& name);
StorageProduct load_storage(const std::string& name);
Economics load_economics(const std::string& name);
// The entry for a question that names none.
inline constexpr const char* usual_economics = "standard";
// Absent where no file has the accelerator's name.
std::optional<CloudPrices> find_cloud_prices(const std::string& accelerator);

}  // namespace orrery
