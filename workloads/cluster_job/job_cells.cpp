// SPDX-License-Identifier: Apache-2.0
// Checks times and counts of jobs as cells of tables give them.
#include "workloads/cluster_job/job_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "workloads/cluster_job/job_times.h"

namespace orrery {

FleetTime allowed_time(const CsvRow& row, const std::string& column, FleetTime time) {
  if (time.us < 0 || time > most_fleet_time)
    row.fail(column, "a time between 0 and 1,000 years (31,536,000,000 s)");
  return time;
}

FleetTime any_seconds_in(const CsvRow& row, const std::string& column) {
  const auto time = fleet_seconds(row.text(column));
  if (!time) row.fail(column, "a number of seconds");
  return *time;
}

FleetTime seconds_in(const CsvRow& row, const std::string& column) {
  return allowed_time(row, column, any_seconds_in(row, column));
}

FleetTime length_between(const CsvRow& row, const std::string& start, const std::string& end,
                         FleetTime (*read)(const CsvRow&, const std::string&)) {
  const FleetTime from = read(row, start), to = read(row, end);
  if (to < from) row.fail(end, "a time that is not before " + start);
  return to - from;
}

std::int32_t job_gpus(const CsvRow& row, const std::string& column,
                      std::optional<std::int64_t> gpus) {
  if (!gpus || *gpus < 1 || *gpus > most_job_gpus)
    row.fail(column, "whole GPUs between 1 and 10^7");
  return static_cast<std::int32_t>(*gpus);
}

std::optional<std::int32_t> gpu_thousandths(double gpus) {
  if (!(gpus > 0 && gpus <= 1)) return std::nullopt;
  const auto milli = static_cast<std::int32_t>(std::lround(gpus * whole_gpu));
  return milli > 0 ? std::optional(milli) : std::nullopt;
}

void ask_for_gpus(const CsvRow& row, const std::string& column, ClusterJob& job) {
  constexpr const char* asked = "whole GPUs between 1 and 10^7, or a part of one such as 0.25";
  const std::optional<double> gpus = row.number(column);
  if (gpus && *gpus < 1) {
    const auto milli = gpu_thousandths(*gpus);
    if (!milli) row.fail(column, asked);
    job.gpus = 1;
    job.milli = static_cast<std::uint16_t>(*milli == whole_gpu ? 0 : *milli);
    return;
  }
  if (gpus && std::trunc(*gpus) != *gpus) row.fail(column, asked);
  job.gpus = job_gpus(row, column, row.integer(column));
}

FleetTime stamp_in(const CsvRow& row, const std::string& column, char between) {
  const auto stamp = fleet_stamp(row.text(column), between);
  if (!stamp)
    row.fail(column, fmt::format("a date and a time such as 2024-01-31{}10:00:00", between));
  return *stamp;
}

FleetTime clock_in(const CsvRow& row, const std::string& column) {
  const auto time = fleet_clock(row.text(column));
  if (!time) row.fail(column, "a time such as 1-02:03:04");
  return allowed_time(row, column, *time);
}

void fail_fields(const CsvTable& table, std::size_t line, std::size_t found,
                 const std::string& expected) {
  throw Error({.file = table.file,
               .path = fmt::format("line {}", line),
               .found = plural(found, "field"),
               .expected = expected});
}

}  // namespace orrery
