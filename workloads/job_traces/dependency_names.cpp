// SPDX-License-Identifier: Apache-2.0
// Finds jobs by their ids, or by their rows.
#include "workloads/job_traces/dependency_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/errors/check.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {
namespace {

class JobsByName {
 public:
  JobsByName(const CsvTable& table, const ClusterJobs& list, const LineOfId& lines)
      : table_(table), list_(list), lines_(lines) {}

  // Its place; no_place: there is none.
  std::uint32_t find(const std::string& name) {
    if (name != last_) last_place_ = list_.ids.empty() ? called(name) : with_id(name);
    last_ = name;
    return last_place_;
  }

 private:
  std::uint32_t with_id(const std::string& id) const {
    const auto at = lines_.find(id);
    if (at == lines_.end()) return no_place;
    const auto line = std::lower_bound(table_.lines.begin(), table_.lines.end(), at->second);
    return at_row(static_cast<std::uint32_t>(line - table_.lines.begin() + 1));
  }

  std::uint32_t called(const std::string& name) const {
    std::uint32_t row = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data(), end, row);
    return error == std::errc() && stop == end ? at_row(row) : no_place;
  }

  std::uint32_t at_row(std::uint32_t row) const {
    const auto at =
        std::lower_bound(list_.jobs.begin(), list_.jobs.end(), row,
                         [](const ClusterJob& job, std::uint32_t r) { return job.row < r; });
    if (at == list_.jobs.end() || at->row != row) return no_place;
    return static_cast<std::uint32_t>(at - list_.jobs.begin());
  }

  const CsvTable& table_;
  const ClusterJobs& list_;
  const LineOfId& lines_;
  std::string last_;
  std::uint32_t last_place_ = no_place;
};

// Of a long list the first ones.
std::string nearest_id(const std::string& name, const ClusterJobs& list) {
  constexpr std::size_t most = 10'000;
  const auto end = list.ids.begin() + static_cast<std::ptrdiff_t>(std::min(most, list.ids.size()));
  return nearest_name(name, {list.ids.begin(), end});
}

}  // namespace

void DependencyNames::add(std::uint32_t job, std::size_t row, const std::string& column,
                          std::string text, FleetTime think) {
  column_ = column;
  named_.push_back({job, row, std::move(text), think});
}

std::int64_t DependencyNames::resolve(const CsvTable& table, const LineOfId& lines,
                                      ClusterJobs& list) const {
  if (named_.empty()) return 0;
  JobsByName jobs(table, list, lines);
  const auto knows = [&](const std::string& name) {
    return jobs.find(name) != no_place || left_out_.contains(name);
  };
  std::int64_t after_left_out = 0;
  for (const Named& named : named_) {
    const auto path = [&] {
      return fmt::format("line {}, column {}", table.lines[named.row], column_);
    };
    const auto read = read_dependencies(named.text, knows);
    if (!read) CsvRow(table, named.row).fail(column_, dependency_words);
    for (const NamedDependency& one : *read) {
      const std::uint32_t after = jobs.find(one.after);
      if (after != no_place) {
        list.dependencies.push_back({named.job, after, one.any, named.think});
      } else if (left_out_.contains(one.after)) {
        ++after_left_out;
      } else {
        throw Error({.file = table.file,
                     .path = path(),
                     .found = in_quotes(one.after),
                     .expected = list.ids.empty() ? "rows of jobs, counted from 1 below the header"
                                                  : "ids of jobs of the same file",
                     .nearest = nearest_id(one.after, list)});
      }
    }
  }
  check_circles(table, list);
  return after_left_out;
}

void DependencyNames::check_circles(const CsvTable& table, const ClusterJobs& list) const {
  const std::vector<std::uint32_t> circle = dependency_circle(list);
  if (circle.empty()) return;
  const auto at = std::find_if(named_.begin(), named_.end(),
                               [&](const Named& one) { return one.job == circle.front(); });
  throw Error({.file = table.file,
               .path = fmt::format("line {}, column {}", table.lines[at->row], column_),
               .found = "a circle: " + circle_text(list, circle),
               .expected = "jobs that come after others in no circle"});
}

}  // namespace orrery
