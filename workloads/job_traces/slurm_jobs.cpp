// SPDX-License-Identifier: Apache-2.0
// Reads the columns of sacct that say what a job needs, and leaves out what is no job here.
#include "workloads/job_traces/slurm_jobs.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/text/csv.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/cluster_job/job_times.h"
#include "workloads/job_traces/job_list_maker.h"
#include "workloads/job_traces/slurm_table.h"

namespace orrery {
namespace {

const std::vector<std::string>& slurm_columns() {
  static const std::vector<std::string> columns = {
      "JobID",     "Submit",    "Start",        "ElapsedRaw", "Elapsed",   "ReqTRES",
      "AllocTRES", "Timelimit", "TimelimitRaw", "User",       "Partition", "State"};
  return columns;
}

void require_slurm_columns(const CsvTable& table) {
  require_columns(table, {"JobID", "Submit"}, job_columns_page);
  const auto require_one = [&](const char* first, const char* second) {
    if (table.has(first) || table.has(second)) return;
    throw Error({.file = table.file,
                 .path = "line 1",
                 .found = fmt::format("no column \"{}\" or \"{}\"", first, second),
                 .expected = fmt::format("the columns that {} lists", job_columns_page)});
  };
  require_one("ElapsedRaw", "Elapsed");
  require_one("ReqTRES", "AllocTRES");
}

std::optional<FleetTime> slurm_limit(const CsvRow& row) {
  constexpr std::int64_t seconds_of_minute = 60;
  if (is_slurm_limit(row.text("Timelimit"))) return clock_in(row, "Timelimit");
  if (!is_slurm_limit(row.text("TimelimitRaw"))) return std::nullopt;
  const auto minutes = fleet_seconds(row.text("TimelimitRaw"));
  if (!minutes) row.fail("TimelimitRaw", "a number of minutes");
  const FleetTime limit{allowed_time(row, "TimelimitRaw", *minutes).us * seconds_of_minute};
  return allowed_time(row, "TimelimitRaw", limit);
}

// Nothing for a job that never started. One that was cancelled while it waited may have the time of
// that as its start.
std::optional<FleetTime> slurm_length(const CsvRow& row) {
  const char* column = row.blank("ElapsedRaw") ? "Elapsed" : "ElapsedRaw";
  const std::string& start = row.text("Start");
  if (row.blank(column) || start == "Unknown" || start == "None" || row.text("State") == "PENDING")
    return std::nullopt;
  const FleetTime length =
      column == std::string_view("Elapsed") ? clock_in(row, column) : seconds_in(row, column);
  if (length.us == 0 && row.text("State").starts_with("CANCELLED")) return std::nullopt;
  return length;
}

// What Slurm calls the end of a job, and what it is here. The cluster stopped those that are
// completed without being called so: but for it they would have gone on, so that no fault of their
// own is known.
struct SlurmEnd {
  std::string_view state;
  JobFate fate;
  bool by_cluster = false;
};
constexpr SlurmEnd slurm_ends[] = {{"COMPLETED", JobFate::completed},
                                   {"RUNNING", JobFate::completed},
                                   {"COMPLETING", JobFate::completed},
                                   {"SUSPENDED", JobFate::completed},
                                   {"STOPPED", JobFate::completed},
                                   {"RESIZING", JobFate::completed},
                                   {"PENDING", JobFate::completed},
                                   {"FAILED", JobFate::failed},
                                   {"TIMEOUT", JobFate::failed},
                                   {"OUT_OF_MEMORY", JobFate::failed},
                                   {"DEADLINE", JobFate::failed},
                                   {"SPECIAL_EXIT", JobFate::failed},
                                   {"CANCELLED", JobFate::cancelled},
                                   {"REVOKED", JobFate::cancelled},
                                   {"NODE_FAIL", JobFate::completed, true},
                                   {"BOOT_FAIL", JobFate::completed, true},
                                   {"PREEMPTED", JobFate::completed, true},
                                   {"REQUEUED", JobFate::completed, true},
                                   {"REQUEUE_HOLD", JobFate::completed, true}};

// Of "CANCELLED by 1000", what stands in front; nothing is a completed job.
const SlurmEnd& slurm_end(const CsvRow& row) {
  const std::string& text = row.text("State");
  const std::string_view state = std::string_view(text).substr(0, text.find(' '));
  if (state.empty()) return slurm_ends[0];
  for (const SlurmEnd& end : slurm_ends)
    if (end.state == state) return end;
  row.fail("State", "a state of Slurm, such as COMPLETED, FAILED or CANCELLED by 1000");
}

}  // namespace

ClusterJobs parse_slurm_jobs(std::string_view text, const std::string& file) {
  const CsvTable table = slurm_table(text, file, slurm_columns());
  require_slurm_columns(table);
  JobListMaker maker(table, "Submit", "JobID");
  std::int64_t steps = 0, without_gpus = 0, not_started = 0, running = 0, by_cluster = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    if (row.text("JobID").find('.') != std::string::npos) {
      ++steps;
      continue;
    }
    const char* column = "ReqTRES";
    std::int64_t gpus = tres_gpus(row, column);
    if (gpus == 0) gpus = tres_gpus(row, column = "AllocTRES");
    if (gpus == 0) {
      ++without_gpus;
      continue;
    }
    const auto length = slurm_length(row);
    if (!length) {
      ++not_started;
      continue;
    }
    if (row.text("State") == "RUNNING") ++running;
    const SlurmEnd& end = slurm_end(row);
    if (end.by_cluster) ++by_cluster;
    maker.add(i,
              {.submit = stamp_in(row, "Submit", 'T'),
               .length = *length,
               .gpus = job_gpus(row, column, gpus),
               .queue = maker.queue_called(row.text("Partition")),
               .user = maker.user_called(row.text("User")),
               .fate = end.fate},
              slurm_limit(row));
  }
  maker.note(steps, "step", "of a job was left out", "of jobs were left out");
  maker.note(without_gpus, "job", "without GPUs was left out", "without GPUs were left out");
  maker.note(not_started, "job", "that never started was left out",
             "that never started were left out");
  maker.note(running, "job", "was still running: what had passed is its length",
             "were still running: what had passed is their length");
  maker.note(by_cluster, "job", "was stopped by the cluster, and counts as completed",
             "were stopped by the cluster, and count as completed");
  return maker.made();
}

}  // namespace orrery
