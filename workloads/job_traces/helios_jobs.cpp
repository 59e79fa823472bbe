// SPDX-License-Identifier: Apache-2.0
// Takes those jobs that had GPUs, from their start to their end.
#include "workloads/job_traces/helios_jobs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/text/csv.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/cluster_job/job_times.h"
#include "workloads/job_traces/job_list_maker.h"

namespace orrery {
namespace {

constexpr std::string_view date_and_time = "2020-06-09 18:41:01";

bool is_zone(std::string_view text) {  // "+08:00"
  return text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':';
}

// Local time since 1970: hours of the day count, and all rows have one zone.
FleetTime local_time(const CsvRow& row, const std::string& column) {
  const std::string_view text = row.text(column);
  const std::string_view zone = text.substr(std::min(text.size(), date_and_time.size()));
  const auto time = fleet_stamp(text.substr(0, date_and_time.size()), ' ');
  if (!time || !(zone.empty() || is_zone(zone)))
    row.fail(column, "a date and a time such as 2020-06-09 18:41:01 or 2023-03-01 00:18:22+08:00");
  return *time;
}

// As the tables' own pages have it: what ran out of its time, or of its host, counts as failed
// (https://github.com/S-Lab-System-Group/HeliosData, https://github.com/InternLM/AcmeTrace).
JobFate fate_of(const CsvRow& row) {
  constexpr std::pair<std::string_view, JobFate> fates[] = {
      {"COMPLETED", JobFate::completed}, {"CANCELLED", JobFate::cancelled},
      {"FAILED", JobFate::failed},       {"TIMEOUT", JobFate::failed},
      {"NODE_FAIL", JobFate::failed},    {"SUSPENDED", JobFate::completed}};
  for (const auto& [state, fate] : fates)
    if (row.text("state") == state) return fate;
  row.fail("state", "COMPLETED, CANCELLED, FAILED, TIMEOUT, NODE_FAIL or SUSPENDED");
}

}  // namespace

ClusterJobs parse_helios_jobs(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  require_columns(table, {"job_id", "gpu_num", "state", "submit_time", "start_time", "end_time"},
                  job_columns_page);
  const char* queue = table.has("vc") ? "vc" : "type";
  JobListMaker maker(table, "submit_time", "job_id");
  std::int64_t without_gpus = 0, not_ended = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const std::int64_t gpus = row.integer("gpu_num").value_or(0);
    if (gpus == 0) {
      ++without_gpus;
      continue;
    }
    if (row.blank("start_time") || row.blank("end_time")) {
      ++not_ended;
      continue;
    }
    const FleetTime start = local_time(row, "start_time");
    const FleetTime end = local_time(row, "end_time");
    if (end < start) row.fail("end_time", "a time that is not before start_time");
    maker.add(i,
              {.submit = local_time(row, "submit_time"),
               .length = end - start,
               .gpus = job_gpus(row, "gpu_num", gpus),
               .queue = maker.queue_called(row.text(queue)),
               .user = maker.user_called(row.text("user")),
               .fate = fate_of(row)},
              std::nullopt);
  }
  maker.note(without_gpus, "job", "without GPUs was left out", "without GPUs were left out");
  maker.note(not_ended, "job", "without a start or an end was left out",
             "without a start or an end were left out");
  return maker.made();
}

}  // namespace orrery
