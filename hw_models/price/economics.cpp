// SPDX-License-Identifier: Apache-2.0
// Reads the catalogues of sites, storage, cloud prices and owners' assumptions.
#include "hw_models/price/economics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw_models/catalog.h"

namespace orrery {
namespace {

constexpr const char* site_folder = "hw_models/catalog/sites";
constexpr const char* storage_folder = "hw_models/catalog/storage";
constexpr const char* economics_folder = "hw_models/catalog/economics";
constexpr const char* cloud_folder = "hw_models/catalog/cloud";

// A mistaken unit or sign is found here and not as an odd sum of money.
template <class T>
Sourced<T> within(const JsonValue& file, const char* key, double low, double high,
                  const char* expected) {
  const JsonValue at = file.at(key);
  Sourced<T> sourced = read_sourced<T>(at);
  for (const auto& v : {sourced.value, sourced.low, sourced.high})
    if (v && !(in_si(*v) >= low && in_si(*v) <= high)) at.fail(expected);
  return sourced;
}

template <class T>
Sourced<T> positive(const JsonValue& file, const char* key) {
  return within<T>(file, key, 1e-300, 1e300, "a value above 0, or null with a reason");
}
template <class T>
Sourced<T> not_negative(const JsonValue& file, const char* key) {
  return within<T>(file, key, 0, 1e300, "a value of at least 0, or null with a reason");
}
Sourced<double> share(const JsonValue& file, const char* key) { return read_share(file.at(key)); }
Sourced<Hertz> yearly_share(const JsonValue& file, const char* key) {
  return within<Hertz>(file, key, 0, 1 / seconds_per_year, "a share a year from 0 to 100 %/year");
}

}  // namespace

std::string_view to_text(Contract contract) {
  constexpr auto words = enum_names<Contract>(
      {"on demand", "reserved for a year", "reserved for three years", "spot"});
  return words[contract];
}

const Sourced<DollarsPerSecond>& CloudPrices::of(Contract contract) const {
  switch (contract) {
    case Contract::on_demand:
      break;
    case Contract::reserved_1y:
      return reserved_1y;
    case Contract::reserved_3y:
      return reserved_3y;
    case Contract::spot:
      return spot;
  }
  CHECK_THAT(false, "a price on demand is that of the accelerator");
  return spot;
}

DataCentre read_site(const JsonValue& file) {
  file.expect_only({"name", "title", "power_usage_effectiveness", "electricity_price",
                    "carbon_intensity", "building_price", "colocation_price", "rack_power",
                    "rack_square_metres", "megawatt_square_metres", "staff_per_megawatt",
                    "staff_cost", "water_litres_per_kilowatt_hour", "water_dollars_per_cubic_metre",
                    "cost_of_money"});
  return {
      .name = file.at("name").text(),
      .title = file.at("title").text(),
      .power_usage_effectiveness =
          within<double>(file, "power_usage_effectiveness", 1, 10, "a ratio of at least 1"),
      .electricity_price = not_negative<DollarsPerJoule>(file, "electricity_price"),
      .carbon_intensity = not_negative<CarbonPerJoule>(file, "carbon_intensity"),
      .building_price = positive<DollarsPerWatt>(file, "building_price"),
      .colocation_price = positive<DollarsPerJoule>(file, "colocation_price"),
      .rack_power = positive<Watts>(file, "rack_power"),
      .rack_square_metres = positive<double>(file, "rack_square_metres"),
      .megawatt_square_metres = positive<double>(file, "megawatt_square_metres"),
      .staff_per_megawatt = not_negative<double>(file, "staff_per_megawatt"),
      .staff_cost = not_negative<DollarsPerSecond>(file, "staff_cost"),
      .water_litres_per_kilowatt_hour =
          not_negative<double>(file, "water_litres_per_kilowatt_hour"),
      .water_dollars_per_cubic_metre = not_negative<double>(file, "water_dollars_per_cubic_metre"),
      .cost_of_money = yearly_share(file, "cost_of_money")};
}

StorageProduct read_storage(const JsonValue& file) {
  file.expect_only({"name", "title", "capacity", "read_bandwidth", "write_bandwidth", "power",
                    "price", "rental"});
  return {.name = file.at("name").text(),
          .title = file.at("title").text(),
          .capacity = positive<Bytes>(file, "capacity"),
          .read_bandwidth = positive<BytesPerSecond>(file, "read_bandwidth"),
          .write_bandwidth = positive<BytesPerSecond>(file, "write_bandwidth"),
          .power = not_negative<Watts>(file, "power"),
          .price = not_negative<Dollars>(file, "price"),
          .rental = not_negative<DollarsPerSecond>(file, "rental")};
}

Economics read_economics(const JsonValue& file) {
  file.expect_only({"name",
                    "title",
                    "accelerator_life",
                    "network_life",
                    "storage_life",
                    "building_life",
                    "residual_value",
                    "equipment_maintenance",
                    "building_maintenance",
                    "insurance_and_taxes",
                    "installation",
                    "operators_per_thousand_accelerators",
                    "frontend_price",
                    "frontend_power",
                    "accelerator_load",
                    "host_load",
                    "network_load",
                    "idle_share",
                    "utilisation",
                    "spot_interruption_rate",
                    "spot_replacement",
                    "checkpoints_kept",
                    "dataset_bytes_per_token"});
  return {.name = file.at("name").text(),
          .title = file.at("title").text(),
          .accelerator_life = positive<Seconds>(file, "accelerator_life"),
          .network_life = positive<Seconds>(file, "network_life"),
          .storage_life = positive<Seconds>(file, "storage_life"),
          .building_life = positive<Seconds>(file, "building_life"),
          .residual_value = share(file, "residual_value"),
          .equipment_maintenance = yearly_share(file, "equipment_maintenance"),
          .building_maintenance = yearly_share(file, "building_maintenance"),
          .insurance_and_taxes = yearly_share(file, "insurance_and_taxes"),
          .installation = share(file, "installation"),
          .operators_per_thousand_accelerators =
              not_negative<double>(file, "operators_per_thousand_accelerators"),
          .frontend_price = not_negative<Dollars>(file, "frontend_price"),
          .frontend_power = not_negative<Watts>(file, "frontend_power"),
          .accelerator_load = share(file, "accelerator_load"),
          .host_load = share(file, "host_load"),
          .network_load = share(file, "network_load"),
          .idle_share = share(file, "idle_share"),
          .utilisation = within<double>(file, "utilisation", 1e-3, 1, "a share above 0, up to 1"),
          .spot_interruption_rate = not_negative<Hertz>(file, "spot_interruption_rate"),
          .spot_replacement = not_negative<Seconds>(file, "spot_replacement"),
          .checkpoints_kept = within<double>(file, "checkpoints_kept", 1, 1e6, "at least 1"),
          .dataset_bytes_per_token = not_negative<Bytes>(file, "dataset_bytes_per_token")};
}

CloudPrices read_cloud_prices(const JsonValue& file) {
  file.expect_only({"name", "title", "date", "reserved_1y", "reserved_3y", "spot"});
  return {.name = file.at("name").text(),
          .title = file.at("title").text(),
          .date = file.at("date").text(),
          .reserved_1y = positive<DollarsPerSecond>(file, "reserved_1y"),
          .reserved_3y = positive<DollarsPerSecond>(file, "reserved_3y"),
          .spot = positive<DollarsPerSecond>(file, "spot")};
}

DataCentre load_site(const std::string& name) {
  return read_site(load_catalog_entry(site_folder, "site", name));
}
StorageProduct load_storage(const std::string& name) {
  return read_storage(load_catalog_entry(storage_folder, "storage", name));
}
Economics load_economics(const std::string& name) {
  return read_economics(load_catalog_entry(economics_folder, "economics", name));
}

std::optional<CloudPrices> find_cloud_prices(const std::string& accelerator) {
  const std::vector<std::string> names = catalog_names(cloud_folder);
  if (!std::binary_search(names.begin(), names.end(), accelerator)) return std::nullopt;
  return read_cloud_prices(load_catalog_entry(cloud_folder, "cloud", accelerator));
}

}  // namespace orrery
