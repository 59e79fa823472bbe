// SPDX-License-Identifier: Apache-2.0
// Reads traces of cluster jobs: of clusters that published theirs, Slurm's two, and ours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// philly: columns timestamp (UTC), duration (s), num_gpus and cluster, which is the queue.
// swf: 18 numbers a line, comments begin with ';'. Processors are GPUs, those requested before
//   those allocated; the queue is field 15, else the partition. Status 0 and 4 are failures, 5 is
//   cancelled, all else completed. The comment UnixStartTime tells the clock. A job comes after
//   that of field 17 however it ends, by the seconds of field 18.
// slurm: what `sacct -P` prints, with its header: JobID, Submit, ElapsedRaw or Elapsed, ReqTRES or
//   AllocTRES (the first that names GPUs), and perhaps Start, State, Timelimit or TimelimitRaw,
//   User and Partition, which is the queue. Steps, jobs without GPUs and jobs that never started
//   are left out. What stopped for the cluster's sake (NODE_FAIL, BOOT_FAIL, PREEMPTED, ...)
//   counts as completed: machines that fail are not in the record but in what is simulated.
// squeue: what squeue_command (squeue_jobs.h) prints, with its header. Running and suspended jobs
//   are submitted at 0, the largest first, with the time left to their limits as length and limit;
//   right after them those that wait for room, by Slurm's priority, then by submission, with their
//   limits as lengths; UNLIMITED is a year. Jobs without GPUs, held ones, those with dependencies
//   and such as begin later are left out. Tasks of an array are jobs; parts of a heterogeneous job
//   are one.
// openb: columns creation_time, scheduled_time, deletion_time (s), num_gpu, gpu_milli (1000: all of
//   it) and perhaps name, pod_phase. Tasks without GPUs and such as were never scheduled are left
//   out.
// helios-acme: columns job_id, gpu_num, state, submit_time, start_time, end_time, and perhaps user,
//   vc, type (helios_jobs.h). Jobs without GPUs, a start or an end are left out.
// pai: the ten columns of pai_task_table.csv (pai_tasks.h), perhaps without their names.
// orrery: columns submit_s (since 1970 where the hour matters), length_s, gpus, and perhaps id,
//   limit_s, deadline_s, queue, user, fate, after (read_dependencies).
// jsonl: a JSON object a line, with the same names. Ids are texts or whole numbers, after may be a
//   list.
enum class JobTraceFormat : std::uint8_t {
  philly,
  swf,
  slurm,
  squeue,
  openb,
  helios,
  pai,
  orrery,
  jsonl
};
inline constexpr auto job_trace_format_text = enum_names<JobTraceFormat>(
    {"philly", "swf", "slurm", "squeue", "openb", "helios-acme", "pai", "orrery", "jsonl"});
constexpr std::string_view to_text(JobTraceFormat f) { return job_trace_format_text[f]; }

// By what the text begins with: a '{', a first line with JOBID in capitals, one with '|', the
// columns timestamp, gpu_milli, gpu_num or plan_gpu, a row of PAI's, a ';' or a digit, anything
// else.
JobTraceFormat job_format_of(std::string_view text);

// Submissions count from the first one. A job without a limit has its length as its limit; one of
// swf or slurm that ran past its limit as well. Error, with file, line and column: times below 0 or
// above most_fleet_time, GPUs that are no whole number between 1 and 10^7 (in our own
// formats a part of one, too), a limit of our own
// formats below the length, an end that is not known, an id twice, columns that are missing or (in
// our own) not known, no jobs, jobs that come after such as are not there or in a circle. `file`
// names the text in errors. Notes count what was left out or set right.
ClusterJobs parse_jobs(std::string_view text, JobTraceFormat format, const std::string& file);

// The same of a file of at most 256 MiB, in the format that it begins with.
ClusterJobs read_jobs(const std::filesystem::path& path);

// An entry of the catalogue of traces of jobs: a file beside its index.
struct JobTraceEntry {
  std::string name, title, file, source;
  JobTraceFormat format = JobTraceFormat::orrery;
};
// Of CATALOG_FOLDER/job_traces/index.json.
std::vector<JobTraceEntry> job_trace_entries(const std::filesystem::path& catalog_folder);
// By the name of an entry, or a path. Error: neither, with the nearest name.
ClusterJobs load_jobs(const std::string& name_or_path, const std::filesystem::path& catalog_folder);

}  // namespace orrery
