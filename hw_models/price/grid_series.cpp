// SPDX-License-Identifier: Apache-2.0
// Reads hourly prices and carbon from a table.
#include "hw_models/price/grid_series.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/text/csv.h"

namespace orrery {

GridSeries parse_grid(std::string_view csv, const std::string& file) {
  const CsvTable table = parse_csv(csv, file);
  require_columns(table, {"hour", "usd_per_kwh", "kg_per_kwh"}, "docs/schedule/power.md");
  GridSeries out{.name = file, .hours = {}};
  constexpr double most_dollars = 1000;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const auto number = [&](const char* column, const char* expected) {
      const auto value = row.number(column);
      if (!value) row.fail(column, expected);
      return *value;
    };
    if (row.integer("hour") != static_cast<std::int64_t>(i))
      row.fail("hour", fmt::format("{}: hours from 0 on, each once", i));
    constexpr const char* price = "dollars of a kilowatt-hour, between -1,000 and 1,000";
    constexpr const char* carbon = "kilograms of CO2 of a kilowatt-hour, 0 or more";
    const GridHour hour{number("usd_per_kwh", price), number("kg_per_kwh", carbon)};
    if (std::abs(hour.dollars_per_kwh) > most_dollars) row.fail("usd_per_kwh", price);
    if (!(hour.kg_per_kwh >= 0)) row.fail("kg_per_kwh", carbon);
    out.hours.push_back(hour);
    if (!table.has("limit_mw")) continue;
    constexpr const char* limit = "megawatts above 0, and below 100,000";
    constexpr double most_megawatts = 1e5;
    const double megawatts = number("limit_mw", limit);
    if (!(megawatts > 0 && megawatts < most_megawatts)) row.fail("limit_mw", limit);
    out.limits.emplace_back(megawatts * 1e6);
  }
  if (out.hours.empty())
    throw Error({.file = file, .found = "no row", .expected = "a row for each hour of the run"});
  return out;
}

}  // namespace orrery
