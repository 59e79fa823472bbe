// SPDX-License-Identifier: Apache-2.0
// Reads the fields of the Standard Workload Format that say what a job needs.
#include "workloads/job_traces/swf_jobs.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/base/text/lines.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/cluster_job/job_times.h"
#include "workloads/job_traces/job_list_maker.h"

namespace orrery {
namespace {

// A field of the Standard Workload Format that counts here: its place, and how errors name it.
struct SwfField {
  std::size_t number;
  const char* name;
};
constexpr const char *swf_job = "1 (job)", *swf_submit = "2 (submit time)",
                     *swf_run = "4 (run time)", *swf_held = "5 (allocated processors)",
                     *swf_asked = "8 (requested processors)", *swf_limit = "9 (requested time)",
                     *swf_status = "11 (status)", *swf_user = "12 (user)",
                     *swf_queue = "15 (queue)", *swf_partition = "16 (partition)",
                     *swf_before = "17 (preceding job)", *swf_think = "18 (think time)";
constexpr SwfField swf_fields[] = {{1, swf_job},        {2, swf_submit},  {4, swf_run},
                                   {5, swf_held},       {8, swf_asked},   {9, swf_limit},
                                   {11, swf_status},    {12, swf_user},   {15, swf_queue},
                                   {16, swf_partition}, {17, swf_before}, {18, swf_think}};

CsvTable swf_table(std::string_view text, const std::string& file) {
  constexpr std::size_t all_fields = 18;
  CsvTable table{.file = file, .header = {}, .rows = {}, .lines = {}};
  for (const SwfField& field : swf_fields) table.header.emplace_back(field.name);
  std::vector<std::string_view> fields;
  for (std::size_t number = 0; !text.empty();) {
    std::string_view line = next_line(text, number);
    line.remove_prefix(std::min(line.find_first_not_of(blank_characters), line.size()));
    if (line.empty() || line.starts_with(';')) continue;
    fields.clear();
    while (!line.empty()) {
      const std::size_t end = std::min(line.find_first_of(blank_characters), line.size());
      fields.push_back(line.substr(0, end));
      line.remove_prefix(std::min(line.find_first_not_of(blank_characters, end), line.size()));
    }
    if (fields.size() != all_fields)
      fail_fields(table, number, fields.size(), "18, as the Standard Workload Format has");
    std::vector<std::string>& row = table.rows.emplace_back();
    row.reserve(std::size(swf_fields));
    for (const SwfField& field : swf_fields) row.emplace_back(fields[field.number - 1]);
    table.lines.push_back(number);
  }
  return table;
}

// Unknown numbers are -1.
bool is_known(const CsvRow& row, const char* column) {
  return row.integer(column).value_or(-1) >= 0;
}

std::string swf_queue_name(const CsvRow& row) {
  if (is_known(row, swf_queue)) return row.text(swf_queue);
  return is_known(row, swf_partition) ? "partition " + row.text(swf_partition) : "";
}

// 2, 3 and 4 are parts of a job: to be continued, the last one, the last one, which failed.
JobFate swf_fate(const CsvRow& row) {
  const auto status = row.integer(swf_status);
  if (!status || *status < -1 || *status > 5) row.fail(swf_status, "a status from -1 to 5");
  if (*status == 5) return JobFate::cancelled;
  return *status == 0 || *status == 4 ? JobFate::failed : JobFate::completed;
}

// A job starts after the end of its preceding one, and is submitted by its think time after that
// (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).
void read_preceding(const CsvRow& row, std::size_t i, JobListMaker& maker) {
  if (row.integer(swf_before).value_or(-1) <= 0) return;
  const FleetTime think = any_seconds_in(row, swf_think);
  maker.depend(i, swf_before, "afterany:" + row.text(swf_before),
               think.us > 0 ? allowed_time(row, swf_think, think) : FleetTime{});
}

// Of the comment "; UnixStartTime: 1000000000", which says when the clock of submissions began.
std::optional<FleetTime> swf_start(std::string_view text) {
  constexpr std::string_view key = "UnixStartTime:";
  for (std::size_t number = 0; !text.empty();) {
    std::string_view line = next_line(text, number);
    if (is_blank(line)) continue;
    if (!line.starts_with(';')) return std::nullopt;
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos) continue;
    line.remove_prefix(at + key.size());
    const auto start = fleet_seconds(trimmed(line));
    if (start && start->us > 0 && *start <= most_fleet_time) return start;
  }
  return std::nullopt;
}

}  // namespace

ClusterJobs parse_swf_jobs(std::string_view text, const std::string& file) {
  const CsvTable table = swf_table(text, file);
  JobListMaker maker(table, swf_submit, swf_job);
  std::int64_t left_out = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const FleetTime run = any_seconds_in(row, swf_run);
    const char* processors = row.integer(swf_asked).value_or(0) > 0 ? swf_asked : swf_held;
    const std::int64_t gpus = row.integer(processors).value_or(0);
    if (run.us < 0 || gpus <= 0) {
      ++left_out;
      maker.leave_out(row.text(swf_job));
      continue;
    }
    std::optional<FleetTime> limit = any_seconds_in(row, swf_limit);
    if (limit->us > 0)
      allowed_time(row, swf_limit, *limit);
    else
      limit.reset();
    maker.add(i,
              {.submit = seconds_in(row, swf_submit),
               .length = allowed_time(row, swf_run, run),
               .gpus = job_gpus(row, processors, gpus),
               .queue = maker.queue_called(swf_queue_name(row)),
               .user = maker.user_called(is_known(row, swf_user) ? row.text(swf_user) : ""),
               .fate = swf_fate(row)},
              limit);
    read_preceding(row, i, maker);
  }
  maker.note(left_out, "row", "without run time or processors was left out",
             "without run time or processors were left out");
  ClusterJobs list = maker.made();
  const auto start = swf_start(text);
  list.began = start ? std::optional(*start + *list.began) : std::nullopt;
  list.notes.emplace_back("Processors of the trace count as GPUs");
  return list;
}

}  // namespace orrery
