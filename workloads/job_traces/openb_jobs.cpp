// SPDX-License-Identifier: Apache-2.0
// Takes those tasks that had GPUs, from their start to their end.
#include "workloads/job_traces/openb_jobs.h"

#include <optional>

#include "sim/base/text/csv.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/job_traces/job_list_maker.h"

namespace orrery {
namespace {

// Phases of a pod that ended otherwise, by the lifecycle of Kubernetes:
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/. Those that run as the record
// ends have an end there.
JobFate openb_fate(const CsvRow& row) {
  return row.text("pod_phase") == "Failed" ? JobFate::failed : JobFate::completed;
}

// GPUs, or a part of one.
void ask(const CsvRow& row, std::int64_t gpus, ClusterJob& job) {
  job.gpus = job_gpus(row, "num_gpu", gpus);
  const std::int64_t milli = row.integer("gpu_milli").value_or(0);
  if (milli < 1 || milli > whole_gpu)
    row.fail("gpu_milli", "thousandths of a GPU between 1 and 1000");
  if (milli == whole_gpu) return;
  if (job.gpus > 1) row.fail("gpu_milli", "1000 where a task asks for several GPUs");
  job.milli = static_cast<std::uint16_t>(milli);
}

}  // namespace

ClusterJobs parse_openb_jobs(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  require_columns(table,
                  {"creation_time", "scheduled_time", "deletion_time", "num_gpu", "gpu_milli"},
                  job_columns_page);
  JobListMaker maker(table, "creation_time", table.has("name") ? "name" : "");
  std::int64_t without_gpus = 0, not_started = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const std::int64_t gpus = row.integer("num_gpu").value_or(0);
    if (gpus == 0) {
      ++without_gpus;
      continue;
    }
    if (row.blank("scheduled_time")) {
      ++not_started;
      continue;
    }
    ClusterJob job{.submit = seconds_in(row, "creation_time"),
                   .length = length_between(row, "scheduled_time", "deletion_time", seconds_in),
                   .queue = maker.queue_called(""),
                   .fate = openb_fate(row)};
    ask(row, gpus, job);
    maker.add(i, job, std::nullopt);
  }
  maker.note(without_gpus, "task", "without GPUs was left out", "without GPUs were left out");
  maker.note(not_started, "task", "that never started was left out",
             "that never started were left out");
  return maker.made();
}

}  // namespace orrery
