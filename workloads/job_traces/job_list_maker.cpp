// SPDX-License-Identifier: Apache-2.0
// Makes a list of jobs: ids once each, in order of submission, with notes.
#include "workloads/job_traces/job_list_maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {

std::int32_t NameNumbers::number_of(const std::string& name) {
  const auto [at, fresh] = known_.try_emplace(name, static_cast<std::int32_t>(names.size()));
  if (fresh) names.push_back(name);
  return at->second;
}

void JobListMaker::take_id(std::size_t row) {
  const CsvRow at(table_, row);
  const std::string& id = at.text(id_);
  if (id.empty()) at.fail(id_, "the id of a job");
  const std::size_t line = table_.lines[row];
  const auto [known, fresh] = line_of_id_.try_emplace(id, line);
  if (!fresh)
    throw Error({.file = table_.file,
                 .path = fmt::format("line {}, column {}", line, id_),
                 .found = fmt::format("{}, as in line {}", in_quotes(id), known->second),
                 .expected = "every id once"});
  list_.ids.push_back(id);
}

void JobListMaker::add(std::size_t row, ClusterJob job, std::optional<FleetTime> limit,
                       std::string id) {
  if (!id_.empty()) take_id(row);
  if (!id.empty()) list_.ids.push_back(std::move(id));
  job.row = static_cast<std::uint32_t>(row + 1);
  if (!limit) ++without_limit_;
  if (limit && *limit < job.length) ++past_limit_;
  job.limit = std::max(job.length, limit.value_or(job.length));
  if (!list_.jobs.empty() && job.submit < list_.jobs.back().submit) ++out_of_order_;
  list_.jobs.push_back(job);
}

void JobListMaker::depend(std::size_t row, const std::string& column, std::string text,
                          FleetTime think) {
  dependencies_.add(static_cast<std::uint32_t>(list_.jobs.size() - 1), row, column, std::move(text),
                    think);
}

std::int32_t JobListMaker::queue_called(const std::string& name) {
  return queues_.number_of(name.empty() ? "default" : name);
}

std::int32_t JobListMaker::user_called(const std::string& name) {
  return name.empty() ? -1 : users_.number_of(name);
}

void JobListMaker::note(std::int64_t count, const char* noun, const char* one, const char* many) {
  if (count > 0)
    list_.notes.push_back(fmt::format("{} {}", plural(count, noun), count == 1 ? one : many));
}

ClusterJobs JobListMaker::made() {
  if (list_.jobs.empty()) {
    const std::string why = list_.notes.empty() ? "" : ": " + joined(list_.notes, ", ");
    throw Error({.file = table_.file, .found = "no jobs" + why, .expected = "at least one"});
  }
  const auto jobs = static_cast<std::int64_t>(list_.jobs.size());
  note(past_limit_, "job", "ran past its limit, which was raised to its length",
       "ran past their limits, which were raised to their lengths");
  if (without_limit_ < jobs)
    note(without_limit_, "job", "has no limit: its length stands for it",
         "have no limits: their lengths stand for them");
  note(out_of_order_, "row", "was not in order of submission, and was sorted",
       "were not in order of submission, and were sorted");
  note(dependencies_.resolve(table_, line_of_id_, list_), "job",
       "comes after one that was left out", "come after such as were left out");
  if (out_of_order_ > 0) sort_by_submission(list_);
  const FleetTime first = list_.jobs.front().submit;
  if (list_.jobs.back().submit - first > most_fleet_time)
    CsvRow(table_, list_.jobs.back().row - 1)
        .fail(submit_, "a submission at most 1,000 years after the first");
  for (ClusterJob& job : list_.jobs) job.submit = job.submit - first;
  list_.began = first;
  list_.name = table_.file;
  list_.queues = std::move(queues_.names);
  list_.users = std::move(users_.names);
  return std::move(list_);
}

}  // namespace orrery
