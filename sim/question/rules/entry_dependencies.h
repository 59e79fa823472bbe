// SPDX-License-Identifier: Apache-2.0
// Reads which jobs of a question come after others.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/json/json.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// "after" of entries: a text or a list of texts (read_dependencies), ids of entries or of jobs of
// traces.
class EntryDependencies {
 public:
  void add(std::string id, const JsonValue& after) { asked_.emplace_back(std::move(id), after); }
  // `entries`: ids of all that end; `traced`: whether a trace has a job of that id. Errors: ids
  // that neither has, a circle.
  void resolve(const std::vector<std::string>& entries,
               const std::function<bool(const std::string&)>& traced);
  // Adds them to a list that has these jobs, behind its own: sort_by_submission puts them in order.
  void join(ClusterJobs& list) const;

 private:
  struct Named {
    std::string id, after;
    bool any = false;
  };
  void check_circles(const std::vector<std::string>& entries) const;

  std::vector<std::pair<std::string, JsonValue>> asked_;
  std::vector<Named> named_;
};

}  // namespace orrery
