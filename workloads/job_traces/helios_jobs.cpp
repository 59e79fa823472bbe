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
#include "workloads/job_traces/left_out_jobs.h"

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
JobFate helios_fate(const CsvRow& row) {
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
  LeftOutJobs left_out{"job"};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const std::int64_t gpus = row.integer("gpu_num").value_or(0);
    if (gpus == 0) {
      ++left_out.without_gpus;
      continue;
    }
    if (row.blank("start_time") || row.blank("end_time")) {
      ++left_out.without_times;
      continue;
    }
    maker.add(i,
              {.submit = local_time(row, "submit_time"),
               .length = length_between(row, "start_time", "end_time", local_time),
               .gpus = job_gpus(row, "gpu_num", gpus),
               .queue = maker.queue_called(row.text(queue)),
               .user = maker.user_called(row.text("user")),
               .fate = helios_fate(row)},
              std::nullopt);
  }
  left_out.note(maker);
  return maker.made();
}

}  // namespace orrery
