// SPDX-License-Identifier: Apache-2.0
// Reads traces of cluster jobs, each row strictly.
#include "workloads/job_traces/job_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/entry_file.h"
#include "sim/base/errors/check.h"
#include "sim/base/input_file.h"
#include "sim/base/json/json.h"
#include "sim/base/text/csv.h"
#include "sim/base/text/lines.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/job_traces/helios_jobs.h"
#include "workloads/job_traces/job_list_maker.h"
#include "workloads/job_traces/openb_jobs.h"
#include "workloads/job_traces/pai_tasks.h"
#include "workloads/job_traces/slurm_jobs.h"
#include "workloads/job_traces/squeue_jobs.h"
#include "workloads/job_traces/swf_jobs.h"

namespace orrery {
namespace {

ClusterJobs parse_philly(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  require_columns(table, {"timestamp", "duration", "num_gpus", "cluster"}, job_columns_page);
  JobListMaker maker(table, "timestamp", "");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    maker.add(i,
              {.submit = stamp_in(row, "timestamp", ' '),
               .length = seconds_in(row, "duration"),
               .gpus = job_gpus(row, "num_gpus", row.integer("num_gpus")),
               .queue = maker.queue_called(row.text("cluster"))},
              std::nullopt);
  }
  return maker.made();
}

const std::vector<std::string>& own_columns() {
  static const std::vector<std::string> columns = {"submit_s", "length_s",   "gpus",  "id",
                                                   "limit_s",  "deadline_s", "queue", "user",
                                                   "fate",     "after"};
  return columns;
}

constexpr const char* own_columns_text =
    "submit_s, length_s, gpus, and perhaps id, limit_s, deadline_s, queue, user, fate, after";

// Error for a column that our own format does not have.
void check_own_columns(const CsvTable& table) {
  const std::vector<std::string>& known = own_columns();
  for (const std::string& column : table.header)
    if (std::find(known.begin(), known.end(), column) == known.end())
      throw Error({.file = table.file,
                   .path = "line 1",
                   .found = "column " + in_quotes(column),
                   .expected = own_columns_text,
                   .nearest = nearest_name(column, known)});
  require_columns(table, {"submit_s", "length_s", "gpus"}, job_columns_page);
}

// Blank: completed.
JobFate fate_in(const CsvTable& table, std::size_t row) {
  const std::string& text = CsvRow(table, row).text("fate");
  if (text.empty()) return JobFate::completed;
  if (const auto fate = job_fate_text.find(text)) return *fate;
  throw Error({.file = table.file,
               .path = fmt::format("line {}, column fate", table.lines[row]),
               .found = in_quotes(text),
               .expected = "completed, failed or cancelled",
               .nearest = nearest_name(text, job_fate_text.names())});
}

// Column limit_s or deadline_s; blank: nothing. Error below the length: no start keeps it.
std::optional<FleetTime> time_of_at_least_length(const CsvTable& table, std::size_t i,
                                                 const std::string& what, FleetTime length) {
  const CsvRow row(table, i);
  const std::string column = what + "_s";
  if (row.blank(column)) return std::nullopt;
  const FleetTime time = seconds_in(row, column);
  if (time < length)
    throw Error({.file = table.file,
                 .path = fmt::format("line {}, column {}", table.lines[i], column),
                 .found = fmt::format("a {} of {} s below the length of {} s", what,
                                      row.text(column), row.text("length_s")),
                 .expected = fmt::format("a {} of at least the length", what)});
  return time;
}

ClusterJobs own_jobs(const CsvTable& table) {
  JobListMaker maker(table, "submit_s", table.has("id") ? "id" : "");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    ClusterJob job{.submit = seconds_in(row, "submit_s"),
                   .length = seconds_in(row, "length_s"),
                   .queue = maker.queue_called(row.text("queue")),
                   .user = maker.user_called(row.text("user")),
                   .fate = fate_in(table, i)};
    ask_for_gpus(row, "gpus", job);
    const std::optional<FleetTime> limit = time_of_at_least_length(table, i, "limit", job.length);
    job.deadline = time_of_at_least_length(table, i, "deadline", job.length).value_or(fleet_never);
    maker.add(i, job, limit);
    if (!row.blank("after")) maker.depend(i, "after", row.text("after"));
  }
  return maker.made();
}

ClusterJobs parse_own_jobs(std::string_view text, const std::string& file) {
  // First its columns: rows of something else have other errors, which say less.
  check_own_columns(parse_csv(text.substr(0, std::min(text.find('\n'), text.size())), file));
  return own_jobs(parse_csv(text, file));
}

// A text, or a whole number.
std::string id_in(const JsonValue& value) {
  return value.is_string() ? value.text() : fmt::format("{}", value.integer());
}

// As a cell of a table has it; nothing, which is null too, is blank.
std::string cell_of(const JsonValue& job, const std::string& key) {
  const auto value = job.find(key);
  if (!value) return "";
  if (key == "queue" || key == "user" || key == "fate") return value->text();
  if (key == "after" && value->is_array()) {
    std::string all;
    for (const JsonValue& one : value->items()) all += id_in(one) + ";";
    return all;
  }
  if (key == "id" || key == "after") return id_in(*value);
  value->number();  // Error where it is none
  return value->raw().dump();
}

ClusterJobs parse_json_jobs(std::string_view text, const std::string& file) {
  CsvTable table{.file = file, .header = own_columns(), .rows = {}, .lines = {}};
  bool ids = false;
  for (std::size_t number = 0; !text.empty();) {
    const std::string_view line = next_line(text, number);
    if (is_blank(line)) continue;
    const JsonValue job = JsonValue::parse(line, fmt::format("{}: line {}", file, number));
    job.expect_only(own_columns(), own_columns_text);
    for (const char* needed : {"submit_s", "length_s", "gpus"}) (void)job.at(needed);
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const std::string& key : own_columns()) row.push_back(cell_of(job, key));
    table.lines.push_back(number);
    ids = ids || job.has("id");
  }
  // Jobs without ids are named by their rows; where one has an id, all have.
  if (!ids) {
    const auto at = std::find(table.header.begin(), table.header.end(), "id");
    *at = "no id";
  }
  return own_jobs(table);
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  return text;
}

}  // namespace

JobTraceFormat job_format_of(std::string_view text) {
  text = without_mark(text);
  text.remove_prefix(std::min(text.find_first_not_of(blank_characters), text.size()));
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  if (line.starts_with('{')) return JobTraceFormat::jsonl;
  if (line.starts_with(';')) return JobTraceFormat::swf;
  if (line.find("JOBID") != std::string_view::npos) return JobTraceFormat::squeue;
  if (line.find('|') != std::string_view::npos) return JobTraceFormat::slurm;
  if (line.find("plan_gpu") != std::string_view::npos || is_pai_task(line))
    return JobTraceFormat::pai;
  if (!line.empty() && line[0] >= '0' && line[0] <= '9') return JobTraceFormat::swf;
  if (line.find("gpu_milli") != std::string_view::npos) return JobTraceFormat::openb;
  if (line.find("gpu_num") != std::string_view::npos) return JobTraceFormat::helios;
  return line.starts_with("timestamp,") ? JobTraceFormat::philly : JobTraceFormat::orrery;
}

ClusterJobs parse_jobs(std::string_view text, JobTraceFormat format, const std::string& file) {
  text = without_mark(text);
  const auto refuse = [&](const char* found) {
    throw Error({.file = file, .found = found, .expected = "a trace of jobs"});
  };
  if (is_blank(text)) refuse("an empty file");
  if (text.find('\0') != std::string_view::npos) refuse("a zero byte");
  switch (format) {
    case JobTraceFormat::philly:
      return parse_philly(text, file);
    case JobTraceFormat::swf:
      return parse_swf_jobs(text, file);
    case JobTraceFormat::slurm:
      return parse_slurm_jobs(text, file);
    case JobTraceFormat::squeue:
      return parse_squeue_jobs(text, file);
    case JobTraceFormat::openb:
      return parse_openb_jobs(text, file);
    case JobTraceFormat::helios:
      return parse_helios_jobs(text, file);
    case JobTraceFormat::pai:
      return parse_pai_tasks(text, file);
    case JobTraceFormat::jsonl:
      return parse_json_jobs(text, file);
    case JobTraceFormat::orrery:
      break;
  }
  return parse_own_jobs(text, file);
}

ClusterJobs read_jobs(const std::filesystem::path& path) {
  constexpr std::size_t limit = std::size_t{256} << 20U;
  const std::string text = bounded_content(path, limit, "a trace of jobs");
  return parse_jobs(text, job_format_of(text), path.string());
}

std::vector<JobTraceEntry> job_trace_entries(const std::filesystem::path& catalog_folder) {
  const JsonValue index = JsonValue::load(catalog_folder / "job_traces" / "index.json");
  std::vector<JobTraceEntry> entries;
  for (const JsonValue& at : index.at("job_traces").items()) {
    at.expect_only({"name", "title", "file", "format", "source"});
    entries.push_back({.name = at.at("name").text(),
                       .title = at.at("title").text(),
                       .file = at.at("file").text(),
                       .source = at.at("source").text(),
                       .format = job_trace_format_text.from(at.at("format"))});
  }
  return entries;
}

ClusterJobs load_jobs(const std::string& name_or_path,
                      const std::filesystem::path& catalog_folder) {
  ClusterJobs list = read_jobs(
      entry_file(job_trace_entries(catalog_folder), catalog_folder / "job_traces", name_or_path,
                 {.file = "trace", .expected = "a file or a trace of jobs of the catalogue"}));
  list.name = name_or_path;
  return list;
}

}  // namespace orrery
