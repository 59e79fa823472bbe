// SPDX-License-Identifier: Apache-2.0
// Puts running jobs in front of those that wait, and these in the order of Slurm's priorities.
#include "workloads/job_traces/squeue_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/text/csv.h"
#include "sim/base/text/words.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/cluster_job/job_clock.h"
#include "workloads/cluster_job/job_times.h"
#include "workloads/job_traces/job_list_maker.h"
#include "workloads/job_traces/slurm_table.h"
#include "workloads/job_traces/squeue_stage.h"

namespace orrery {
namespace {

// As squeue heads them; those that it must have are in front.
const std::vector<std::string>& squeue_columns() {
  static const std::vector<std::string> columns = {
      "JOBID",  "STATE",        "TRES_ALLOC",    "TIME_LEFT",     "PENDING_TIME",    "PRIORITY",
      "REASON", "TRES_PER_JOB", "TRES_PER_NODE", "TRES_PER_TASK", "TRES_PER_SOCKET", "NODES",
      "TASKS",  "SUBMIT_TIME",  "PARTITION",     "USER"};
  return columns;
}
constexpr std::size_t needed_columns = 7;

// Where a limit is none, Slurm plans with a year: YEAR_MINUTES in
// src/plugins/sched/backfill/backfill.c of https://github.com/SchedMD/slurm; squeue 22.05 then
// shows 365 days left as the job starts.
constexpr FleetTime unlimited{365 * day_us};

// After those that run, so that no rule lets one pass them.
constexpr FleetTime waiting_submit{1};

constexpr std::int64_t most_tasks = 4'000'001;  // MaxArraySize of slurm.conf(5) is at most that

std::string wants_command() { return fmt::format("what this prints: {}", squeue_command); }

struct QueuedJob {
  std::string id;
  std::size_t row = 0;  // of the table
  SqueueStage stage = SqueueStage::waits;
  std::int64_t gpus = 0;
  FleetTime left;
  double priority = 0;
  FleetTime waited;
  bool runs() const { return stage == SqueueStage::runs || stage == SqueueStage::suspended; }
};

// What the notes say.
struct SqueueCounts {
  std::map<SqueueStage, std::int64_t> of_stage;
  std::int64_t without_gpus = 0, by_socket = 0, without_limit = 0, past_limit = 0, joined = 0,
               throttled = 0;
};

CsvTable squeue_table(std::string_view text, const std::string& file) {
  if (text.find('|') == std::string_view::npos)
    throw Error({.file = file,
                 .path = "line 1",
                 .found = "columns of squeue with no | between them",
                 .expected = wants_command()});
  CsvTable table = slurm_table(text, file, squeue_columns(),
                               fmt::format("as in the header; {}", wants_command()));
  for (std::size_t i = 0; i < needed_columns; ++i)
    if (!table.has(squeue_columns()[i]))
      throw Error({.file = file,
                   .path = "line 1",
                   .found = fmt::format("no column {}", in_quotes(squeue_columns()[i])),
                   .expected = wants_command()});
  return table;
}

// Allocated or requested in all; else what options asked for, each with its multiple.
std::int64_t gpus_of(const CsvRow& row) {
  if (const std::int64_t all = tres_gpus(row, "TRES_ALLOC"); all > 0) return all;
  if (const std::int64_t all = asked_gpus(row, "TRES_PER_JOB"); all > 0) return all;
  const auto times = [&](const char* gpus, const char* count) {
    const std::int64_t each = asked_gpus(row, gpus);
    if (each == 0) return each;
    const std::int64_t many = row.integer(count).value_or(1);
    if (many < 1 || many > most_job_gpus) row.fail(count, "a count between 1 and 10^7");
    return each * many;
  };
  const std::int64_t by_node = times("TRES_PER_NODE", "NODES");
  return by_node > 0 ? by_node : times("TRES_PER_TASK", "TASKS");
}

FleetTime left_of(const CsvRow& row, bool runs, SqueueCounts& counts) {
  const std::string& text = row.text("TIME_LEFT");
  if (text == "INVALID" && runs) {  // below 0
    ++counts.past_limit;
    return {};
  }
  if (text.empty()) row.fail("TIME_LEFT", "a time such as 1-02:03:04, or UNLIMITED");
  if (is_slurm_limit(text)) return clock_in(row, "TIME_LEFT");
  ++counts.without_limit;
  return unlimited;
}

[[noreturn]] void fail_array(const CsvRow& row) {
  row.fail("JOBID", fmt::format("a job, or all tasks of an array, which -r prints one by one: {}",
                                squeue_command));
}

// Takes a number off the text.
std::int64_t number_off(std::string_view& text, const CsvRow& row) {
  std::int64_t number = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= most_tasks) fail_array(row);
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

bool taken_off(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// "123_[1-3,7,10-20:5%8]" as 123_1, 123_2 and so on; any other id as it is.
std::vector<std::string> ids_of(const CsvRow& row, SqueueCounts& counts) {
  const std::string& id = row.text("JOBID");
  const std::size_t open = id.find("_[");
  if (open == std::string::npos) return {id};
  std::vector<std::string> ids;
  std::string_view tasks = std::string_view(id).substr(open + 2);
  do {
    const std::int64_t first = number_off(tasks, row);
    const std::int64_t last = taken_off(tasks, '-') ? number_off(tasks, row) : first;
    const std::int64_t step = taken_off(tasks, ':') ? number_off(tasks, row) : 1;
    if (step < 1 || last < first) fail_array(row);
    for (std::int64_t task = first; task <= last; task += step)
      ids.push_back(fmt::format("{}_{}", id.substr(0, open), task));
    if (static_cast<std::int64_t>(ids.size()) > most_tasks) fail_array(row);
  } while (taken_off(tasks, ','));
  if (taken_off(tasks, '%')) {
    number_off(tasks, row);
    ++counts.throttled;
  }
  if (tasks != "]") fail_array(row);
  return ids;
}

QueuedJob queued_job(const CsvTable& table, std::size_t i) {
  const CsvRow row(table, i);
  const auto stage = squeue_stage(row.text("STATE"), row.text("REASON"));
  if (!stage) row.fail("STATE", "a state of Slurm, such as RUNNING or PENDING");
  QueuedJob job;
  job.row = i;
  job.stage = *stage;
  job.gpus = gpus_of(row);
  const auto priority = row.number("PRIORITY");
  if (!priority) row.fail("PRIORITY", "a number");
  job.priority = *priority;
  if ((job.stage == SqueueStage::waits || job.stage == SqueueStage::limited) && job.priority == 0)
    job.stage = SqueueStage::held;
  return job;
}

// Of "12+3", a part of a heterogeneous job, what stands in front; else nothing.
std::optional<std::string> whole_of(const std::string& id) {
  const std::size_t plus = id.find('+');
  return plus == std::string::npos ? std::nullopt : std::optional(id.substr(0, plus));
}

// Those that run or wait, with GPUs.
std::vector<QueuedJob> queued_jobs(const CsvTable& table, SqueueCounts& counts) {
  std::vector<QueuedJob> jobs;
  std::map<std::string, std::size_t> whole;  // heterogeneous jobs
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    QueuedJob job = queued_job(table, i);
    const bool waits = job.stage == SqueueStage::waits || job.stage == SqueueStage::limited;
    const std::vector<std::string> ids = ids_of(row, counts);
    const auto many = static_cast<std::int64_t>(ids.size());
    if (job.gpus == 0) {
      const bool asks = asked_gpus(row, "TRES_PER_SOCKET") > 0;
      (asks ? counts.by_socket : counts.without_gpus) += many;
      continue;
    }
    if (waits) job.waited = std::max(FleetTime{}, any_seconds_in(row, "PENDING_TIME"));
    if (!job.runs() && !waits) {
      counts.of_stage[job.stage] += many;
      continue;
    }
    job.left = left_of(row, job.runs(), counts);
    if (const auto base = whole_of(ids.front())) {
      const auto [at, fresh] = whole.try_emplace(*base, jobs.size());
      if (!fresh) {
        QueuedJob& leader = jobs[at->second];
        leader.gpus += job.gpus;
        leader.left = std::max(leader.left, job.left);
        leader.priority = std::max(leader.priority, job.priority);
        continue;
      }
      ++counts.joined;
      job.id = *base;
      counts.of_stage[job.stage] += 1;
      jobs.push_back(job);
      continue;
    }
    counts.of_stage[job.stage] += many;
    for (const std::string& id : ids) {
      job.id = id;
      jobs.push_back(job);
    }
  }
  return jobs;
}

// Running ones first, the largest in front, so that whole hosts are free for them as they are
// placed anew; then by priority and time of submission.
void sort_as_slurm(std::vector<QueuedJob>& jobs) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const QueuedJob& a, const QueuedJob& b) {
    if (a.runs() != b.runs()) return a.runs();
    if (a.runs()) return a.gpus > b.gpus;
    return a.priority != b.priority ? a.priority > b.priority : a.waited > b.waited;
  });
}

void note_left_out(JobListMaker& maker, const SqueueCounts& counts) {
  const auto left_out = [&](std::int64_t count, const char* which) {
    maker.note(count, "job", fmt::format("{} was left out", which).c_str(),
               fmt::format("{} were left out", which).c_str());
  };
  const auto of = [&](SqueueStage stage) {
    const auto at = counts.of_stage.find(stage);
    return at == counts.of_stage.end() ? std::int64_t{0} : at->second;
  };
  left_out(counts.without_gpus, "without GPUs");
  left_out(counts.by_socket, "with GPUs by socket, whose number is not known,");
  left_out(of(SqueueStage::held), "on hold");
  left_out(of(SqueueStage::depends), "depending on another one");
  left_out(of(SqueueStage::later), "to begin later, or in a reservation");
  left_out(of(SqueueStage::never), "asking for what Slurm does not give");
  left_out(of(SqueueStage::ends), "ending or ended");
  maker.note(of(SqueueStage::limited), "job",
             "waits for a limit of its account, QOS or array, which is not kept here",
             "wait for limits of their accounts, QOS or arrays, which are not kept here");
  maker.note(of(SqueueStage::suspended), "job",
             "is suspended: it holds its GPUs and is taken to go on at once",
             "are suspended: they hold their GPUs and are taken to go on at once");
  maker.note(counts.throttled, "array", "runs only so many tasks at once, which is not kept here",
             "run only so many tasks at once, which is not kept here");
  maker.note(counts.joined, "heterogeneous job", "counts as one gang", "count as one gang each");
  maker.note(counts.past_limit, "job", "has run past its limit, and is taken to end now",
             "have run past their limits, and are taken to end now");
  maker.note(counts.without_limit, "row", "has no limit: Slurm's year stands for it",
             "have no limits: Slurm's year stands for them");
}

// How many run and wait, in front of all other notes.
void note_now(ClusterJobs& list, const std::vector<QueuedJob>& jobs) {
  const auto running =
      std::count_if(jobs.begin(), jobs.end(), [](const auto& j) { return j.runs(); });
  const auto waiting = static_cast<std::ptrdiff_t>(jobs.size()) - running;
  std::vector<std::string> notes;
  if (running > 0)
    notes.push_back(fmt::format(
        "{} {} now. Nobody knows when {}: {} the whole time to {}. {} placed anew, not where {}",
        plural(running, "job"), running == 1 ? "runs" : "run",
        running == 1 ? "it ends" : "they end", running == 1 ? "it takes" : "they take",
        running == 1 ? "its limit" : "their limits", running == 1 ? "It is" : "They are",
        running == 1 ? "it runs" : "they run"));
  if (waiting > 0) {
    FleetTime longest;
    for (const QueuedJob& job : jobs) longest = std::max(longest, job.waited);
    notes.push_back(
        fmt::format("{} {} now, the oldest for {}. Waits count from now, and lengths are limits",
                    plural(waiting, "job"), waiting == 1 ? "waits" : "wait", to_text(longest)));
  }
  list.notes.insert(list.notes.begin(), notes.begin(), notes.end());
}

// By the cluster's clock: as long after a submission as that job has waited; nothing where nobody
// waits or the column is not there.
std::optional<FleetTime> now_of(const CsvTable& table, const std::vector<QueuedJob>& jobs) {
  for (const QueuedJob& job : jobs)
    if (!job.runs())
      if (const auto submit = fleet_stamp(CsvRow(table, job.row).text("SUBMIT_TIME"), 'T'))
        return *submit + job.waited;
  return std::nullopt;
}

}  // namespace

ClusterJobs parse_squeue_jobs(std::string_view text, const std::string& file) {
  const CsvTable table = squeue_table(text, file);
  SqueueCounts counts;
  std::vector<QueuedJob> jobs = queued_jobs(table, counts);
  sort_as_slurm(jobs);
  CsvTable in_order{.file = file, .header = {"JOBID"}, .rows = {}, .lines = {}};
  for (const QueuedJob& job : jobs) {
    in_order.rows.push_back({job.id});
    in_order.lines.push_back(table.lines[job.row]);
  }
  JobListMaker maker(in_order, "JOBID", "JOBID");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const QueuedJob& job = jobs[i];
    const CsvRow row(table, job.row);
    maker.add(i,
              {.submit = job.runs() ? FleetTime{} : waiting_submit,
               .length = job.left,
               .gpus = job_gpus(row, "TRES_ALLOC", job.gpus),
               .queue = maker.queue_called(row.text("PARTITION")),
               .user = maker.user_called(row.text("USER")),
               .runs_now = job.runs()},
              job.left);
  }
  note_left_out(maker, counts);
  ClusterJobs list = maker.made();
  list.began = now_of(table, jobs);
  note_now(list, jobs);
  return list;
}

}  // namespace orrery
