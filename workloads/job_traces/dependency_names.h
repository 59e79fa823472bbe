// SPDX-License-Identifier: Apache-2.0
// Knows how jobs of a table name others that they come after.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/base/text/csv.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

using LineOfId = std::unordered_map<std::string, std::size_t>;

class DependencyNames {
 public:
  // A job comes after those that `text` names (read_dependencies), so long after their ends.
  // `job`: its place in the list.
  void add(std::uint32_t job, std::size_t row, const std::string& column, std::string text,
           FleetTime think);
  // Of a row that is no job here. Who comes after it comes after nobody.
  void leave_out(std::string id) { left_out_.insert(std::move(id)); }
  // Puts them into a list whose jobs stand in order of rows: how many named a row that was left
  // out. Errors: an id that no row has, a word that is not known, a circle.
  std::int64_t resolve(const CsvTable& table, const LineOfId& lines, ClusterJobs& list) const;

 private:
  struct Named {
    std::uint32_t job = 0;
    std::size_t row = 0;
    std::string text;
    FleetTime think;
  };
  void check_circles(const CsvTable& table, const ClusterJobs& list) const;

  std::string column_;
  std::vector<Named> named_;
  std::unordered_set<std::string> left_out_;
};

}  // namespace orrery
