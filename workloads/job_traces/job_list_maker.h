// SPDX-License-Identifier: Apache-2.0
// Knows how a list of jobs is made of the rows of a table, one after another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/text/csv.h"
#include "workloads/cluster_job/cluster_job.h"
#include "workloads/job_traces/dependency_names.h"

namespace orrery {

// Names become numbers in order of appearance.
class NameNumbers {
 public:
  std::int32_t number_of(const std::string& name);
  std::vector<std::string> names;

 private:
  std::unordered_map<std::string, std::int32_t> known_;
};

// The table must outlive it.
class JobListMaker {
 public:
  // The column of submissions, for errors; that of ids: "" where rows name jobs.
  JobListMaker(const CsvTable& table, std::string submit_column, std::string id_column)
      : table_(table), submit_(std::move(submit_column)), id_(std::move(id_column)) {}

  // Its submission counts from any origin. Nothing for a limit: its length is its limit.
  // Error: an id that an earlier job has, or none. `id`: of a job of a table whose rows say none.
  void add(std::size_t row, ClusterJob job, std::optional<FleetTime> limit, std::string id = "");

  // The job that was added last comes after those that the text in a column of its row names
  // (DependencyNames), so long after their ends.
  void depend(std::size_t row, const std::string& column, std::string text, FleetTime think = {});
  // Of a row that is no job, which others may come after.
  void leave_out(std::string id) { dependencies_.leave_out(std::move(id)); }

  std::int32_t queue_called(const std::string& name);  // "": the queue "default"
  std::int32_t user_called(const std::string& name);   // "": not known

  // "1 row" + one, or "12,345 rows" + many; nothing at a count of 0.
  void note(std::int64_t count, const char* noun, const char* one, const char* many);

  // In order of submission, which counts from the first one. Error: no jobs, or submissions that
  // are more than most_fleet_time apart; jobs that come after such as cannot be.
  ClusterJobs made();

 private:
  void take_id(std::size_t row);

  const CsvTable& table_;
  std::string submit_, id_;
  ClusterJobs list_;
  NameNumbers queues_, users_;
  DependencyNames dependencies_;
  LineOfId line_of_id_;
  std::int64_t without_limit_ = 0, past_limit_ = 0, out_of_order_ = 0;
};

}  // namespace orrery
