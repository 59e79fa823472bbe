// SPDX-License-Identifier: Apache-2.0
// Reads cells of tables of jobs as checked values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/text/csv.h"
#include "sim/base/units/fleet_time.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

inline constexpr std::int64_t most_job_gpus = 10'000'000;
// What errors name as the list of columns.
inline constexpr const char* job_columns_page = "workloads/catalog/job_traces/README.md";

// The time itself. Error where it is below 0 or above most_fleet_time.
FleetTime allowed_time(const CsvRow& row, const std::string& column, FleetTime time);

// Of decimals, of any sign; allowed ones; "1-02:03:04"; "2024-01-31T10:00:00" since 1970-01-01.
// Error, with line and column, for all else.
FleetTime any_seconds_in(const CsvRow& row, const std::string& column);
FleetTime seconds_in(const CsvRow& row, const std::string& column);
FleetTime clock_in(const CsvRow& row, const std::string& column);
FleetTime stamp_in(const CsvRow& row, const std::string& column, char between);

// From one time to the other, which `read` takes from their columns. Error where that is before.
FleetTime length_between(const CsvRow& row, const std::string& start, const std::string& end,
                         FleetTime (*read)(const CsvRow&, const std::string&));

// GPUs that the column gave. Error: none, or not between 1 and 10^7.
std::int32_t job_gpus(const CsvRow& row, const std::string& column,
                      std::optional<std::int64_t> gpus);

// The same, or a part of one GPU as a decimal, such as 0.25, to a thousandth. Error: none, a part
// of several GPUs, less than a thousandth.
void ask_for_gpus(const CsvRow& row, const std::string& column, ClusterJob& job);
// Thousandths of a GPU that are a part of one, or all of it. Nothing: neither.
std::optional<std::int32_t> gpu_thousandths(double gpus);

// Error: a line with a number of fields that is not the expected one.
[[noreturn]] void fail_fields(const CsvTable& table, std::size_t line, std::size_t found,
                              const std::string& expected);

}  // namespace orrery
