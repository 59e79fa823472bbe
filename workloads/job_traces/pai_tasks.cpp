// SPDX-License-Identifier: Apache-2.0
// Takes those tasks that had GPUs, from their start to their end, as gangs or as single instances.
#include "workloads/job_traces/pai_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/base/text/lines.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/job_traces/job_list_maker.h"
#include "workloads/job_traces/left_out_jobs.h"

namespace orrery {
namespace {

// As the table is published, its header in a file beside it.
constexpr std::array<const char*, 10> pai_columns = {
    "job_name", "task_name", "inst_num", "status",   "start_time",
    "end_time", "plan_cpu",  "plan_mem", "plan_gpu", "gpu_type"};
constexpr std::size_t status_column = 3;

// "Only 'Terminated' tasks are successful", and times are "translated to Unix time in UTC+8" those
// of the day and of the week as they were
// (https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2020/README.md).
constexpr std::pair<std::string_view, JobFate> fates[] = {{"Terminated", JobFate::completed},
                                                          {"Failed", JobFate::failed},
                                                          {"Running", JobFate::completed},
                                                          {"Waiting", JobFate::completed}};
constexpr FleetTime east_of_greenwich{INT64_C(8) * 3'600 * 1'000'000};

CsvTable bare_table(std::string_view text, const std::string& file) {
  CsvTable table{
      .file = file, .header = {pai_columns.begin(), pai_columns.end()}, .rows = {}, .lines = {}};
  for (std::size_t number = 0; !text.empty();) {
    const std::string_view line = next_line(text, number);
    if (is_blank(line)) continue;
    const std::vector<std::string_view> fields = fields_of(line, ',');
    if (fields.size() != pai_columns.size())
      fail_fields(table, number, fields.size(), "10, as pai_task_table.csv has");
    table.rows.emplace_back(fields.begin(), fields.end());
    table.lines.push_back(number);
  }
  return table;
}

std::optional<JobFate> fate_called(std::string_view status) {
  for (const auto& [name, fate] : fates)
    if (name == status) return fate;
  return std::nullopt;
}

// Thousandths of GPUs that an instance plans; 0: none.
std::int64_t milli_planned(const CsvRow& row) {
  const double percent = row.number("plan_gpu").value_or(0);
  const double milli = percent * whole_gpu / 100;
  if (!(milli >= 0 && milli <= static_cast<double>(most_job_gpus) * whole_gpu))
    row.fail("plan_gpu", "GPUs in percent between 0 and 10^9");
  return percent > 0 ? std::max<std::int64_t>(1, std::llround(milli)) : 0;
}

std::int64_t instances_of(const CsvRow& row) {
  constexpr std::int64_t most = 100'000;
  const std::int64_t instances = row.integer("inst_num").value_or(1);
  if (instances < 1 || instances > most) row.fail("inst_num", "instances between 1 and 10^5");
  return instances;
}

class PaiReader {
 public:
  PaiReader(const CsvTable& table) : table_(table), maker_(table, "start_time", "") {}

  ClusterJobs read() {
    for (std::size_t i = 0; i < table_.rows.size(); ++i) read_task(i);
    left_out_.note(maker_);
    maker_.note(rounded_, "task", "plans parts of several GPUs, and got whole ones",
                "plan parts of several GPUs, and got whole ones");
    maker_.note(split_, "task", "on parts of GPUs is as many jobs as it has instances",
                "on parts of GPUs are as many jobs as they have instances");
    ClusterJobs list = maker_.made();
    list.notes.emplace_back(
        "Submissions are not in the table: a task is submitted when it was launched, so that waits "
        "are those that this cluster adds");
    return list;
  }

 private:
  void read_task(std::size_t i) {
    const CsvRow row(table_, i);
    const std::int64_t milli = milli_planned(row);
    const std::optional<JobFate> fate = fate_called(row.text("status"));
    if (!fate) row.fail("status", "Terminated, Failed, Running or Waiting");
    if (milli == 0) {
      ++left_out_.without_gpus;
      return;
    }
    if (is_unknown(row, "start_time") || is_unknown(row, "end_time")) {
      ++left_out_.without_times;
      return;
    }
    ClusterJob job{.submit = seconds_in(row, "start_time") + east_of_greenwich,
                   .length = length_between(row, "start_time", "end_time", seconds_in),
                   .queue = maker_.queue_called(row.text("gpu_type")),
                   .fate = *fate};
    const std::int64_t instances = instances_of(row);
    if (milli >= whole_gpu) {
      if (milli % whole_gpu != 0) ++rounded_;
      job.gpus = job_gpus(row, "plan_gpu", (milli + whole_gpu - 1) / whole_gpu * instances);
      maker_.add(i, job, std::nullopt, name_of(row));
      return;
    }
    job.milli = static_cast<std::uint16_t>(milli);
    const std::string name = name_of(row);
    if (instances > 1) ++split_;
    for (std::int64_t one = 1; one <= instances; ++one)
      maker_.add(i, job, std::nullopt, instances > 1 ? fmt::format("{}.{}", name, one) : name);
  }

  static bool is_unknown(const CsvRow& row, const char* column) {
    return row.number(column).value_or(0) == 0;
  }

  // The same name again is another one.
  std::string name_of(const CsvRow& row) {
    std::string name = row.text("job_name") + "/" + row.text("task_name");
    const std::int64_t times = ++times_[name];
    return times == 1 ? name : fmt::format("{}#{}", name, times);
  }

  const CsvTable& table_;
  JobListMaker maker_;
  LeftOutJobs left_out_{"task"};
  std::int64_t rounded_ = 0, split_ = 0;
  std::unordered_map<std::string, std::int64_t> times_;
};

}  // namespace

bool is_pai_task(std::string_view line) {
  const auto commas = static_cast<std::size_t>(std::count(line.begin(), line.end(), ','));
  if (commas != pai_columns.size() - 1) return false;
  return fate_called(fields_of(line, ',')[status_column]).has_value();
}

ClusterJobs parse_pai_tasks(std::string_view text, const std::string& file) {
  std::string_view rows = text;
  rows.remove_prefix(std::min(rows.find_first_not_of(blank_characters), rows.size()));
  const bool bare = is_pai_task(rows.substr(0, rows.find('\n')));
  const CsvTable table = bare ? bare_table(text, file) : parse_csv(text, file);
  require_columns(
      table, {"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_gpu"},
      job_columns_page);
  return PaiReader(table).read();
}

}  // namespace orrery
