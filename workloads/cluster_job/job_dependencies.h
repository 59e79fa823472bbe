// SPDX-License-Identifier: Apache-2.0
// Knows which jobs of a list come after which: how that is written, and whether it can be.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// A job that another one comes after, as it is named; `any`: however it ends.
struct NamedDependency {
  std::string after;
  bool any = false;
};

// What is written: "a;b", "afterany:a", or Slurm's "afterok:a:b,afterany:c"; without a word it is
// afterok. Ids may have a ':' in them where `knows` holds them. Nothing: a word of Slurm's that is
// neither of the two.
std::optional<std::vector<NamedDependency>> read_dependencies(
    std::string_view text, const std::function<bool(const std::string&)>& knows);
inline constexpr const char* dependency_words =
    "ids with ';' between them, behind afterok: (which is meant without a word) or afterany:";

// The dependencies of a list by the jobs that others come after. The list must outlive it.
class Dependants {
 public:
  explicit Dependants(const ClusterJobs& list);
  // Places in ClusterJobs::dependencies.
  std::span<const std::uint32_t> of(std::uint32_t job) const {
    return {places_.data() + first_[job], first_[job + 1] - first_[job]};
  }
  const JobDependency& at(std::uint32_t place) const { return list_->dependencies[place]; }

 private:
  const ClusterJobs* list_;
  std::vector<std::uint32_t> first_, places_;
};

// A circle: each comes after the next one, and the last after the first. Empty: there is none.
std::vector<std::uint32_t> dependency_circle(const ClusterJobs& list);
// "a after b after a"; of a long one the first few.
std::string circle_text(const ClusterJobs& list, const std::vector<std::uint32_t>& circle);

// What a job comes after, in the order in which that is written.
std::vector<std::string> ids_before(const ClusterJobs& list, std::size_t job);

inline constexpr std::uint32_t no_place = UINT32_MAX;
// The list has the jobs that stood at `order`, each once, in that order. Others are gone, with the
// dependencies of either side.
void rearrange(ClusterJobs& list, const std::vector<std::uint32_t>& order);
// Jobs of one instant stay in their order.
void sort_by_submission(ClusterJobs& list);

// Keeps the first jobs of a list, but for those that come after such as are gone: how many these
// are.
std::int64_t keep_first(ClusterJobs& list, std::size_t count);

// Jobs that never run, by their places: one that they come after does not complete, as it is
// recorded or since it is rejected. Empty where no job comes after others.
std::vector<bool> cancelled_jobs(const ClusterJobs& list,
                                 const std::function<bool(const ClusterJob&)>& is_rejected);

}  // namespace orrery
