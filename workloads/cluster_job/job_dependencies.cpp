// SPDX-License-Identifier: Apache-2.0
// Walks lists of jobs by what they come after.
#include "workloads/cluster_job/job_dependencies.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "sim/base/text/lines.h"

namespace orrery {
namespace {

// Slurm's words for other dependencies: https://slurm.schedmd.com/sbatch.html, --dependency.
constexpr std::array<std::string_view, 5> other_words = {"after", "afternotok", "aftercorr",
                                                         "afterburstbuffer", "singleton"};

// Jobs in an order in which each comes behind all that it comes after; fewer than all where there
// is a circle.
std::vector<std::uint32_t> in_order(const ClusterJobs& list, const Dependants& dependants) {
  std::vector<std::uint32_t> open(list.jobs.size());
  for (const JobDependency& one : list.dependencies) ++open[one.job];
  std::vector<std::uint32_t> order;
  order.reserve(list.jobs.size());
  for (std::uint32_t job = 0; job < list.jobs.size(); ++job)
    if (open[job] == 0) order.push_back(job);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::uint32_t place : dependants.of(order[i]))
      if (--open[dependants.at(place).job] == 0) order.push_back(dependants.at(place).job);
  return order;
}

// The list has those that stood at these places, in their order.
template <class T>
void take(std::vector<T>& list, const std::vector<std::uint32_t>& places) {
  if (list.empty()) return;
  std::vector<T> taken;
  taken.reserve(places.size());
  for (const std::uint32_t place : places) taken.push_back(std::move(list[place]));
  list = std::move(taken);
}

}  // namespace

std::optional<std::vector<NamedDependency>> read_dependencies(
    std::string_view text, const std::function<bool(const std::string&)>& knows) {
  std::vector<NamedDependency> out;
  while (!text.empty()) {
    const std::string_view part = trimmed(next_part(text, ";,"));
    if (part.empty()) continue;
    if (knows(std::string(part))) {
      out.push_back({std::string(part)});
      continue;
    }
    std::string_view rest = part;
    const std::string_view word = trimmed(next_part(rest, ":"));
    if (std::find(other_words.begin(), other_words.end(), word) != other_words.end())
      return std::nullopt;
    const bool any = word == "afterany";
    if (!any && word != "afterok") {
      out.push_back({std::string(part)});
      continue;
    }
    if (knows(std::string(rest))) {
      out.push_back({std::string(rest), any});
      continue;
    }
    do out.push_back({std::string(trimmed(next_part(rest, ":"))), any});
    while (!rest.empty());
  }
  return out;
}

Dependants::Dependants(const ClusterJobs& list)
    : list_(&list), first_(list.jobs.size() + 2), places_(list.dependencies.size()) {
  for (const JobDependency& one : list.dependencies) ++first_[one.after + 2];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  for (std::uint32_t place = 0; place < places_.size(); ++place)
    places_[first_[list.dependencies[place].after + 1]++] = place;
  first_.pop_back();
}

std::vector<std::uint32_t> dependency_circle(const ClusterJobs& list) {
  const std::vector<std::uint32_t> order = in_order(list, Dependants(list));
  if (order.size() == list.jobs.size()) return {};
  std::vector<bool> open(list.jobs.size(), true);
  for (const std::uint32_t job : order) open[job] = false;
  // Whoever is left comes after another one that is: some job comes twice.
  std::vector<std::uint32_t> after(list.jobs.size(), no_place);
  for (const JobDependency& one : list.dependencies)
    if (open[one.job] && open[one.after] && after[one.job] == no_place) after[one.job] = one.after;
  auto job = static_cast<std::uint32_t>(std::find(open.begin(), open.end(), true) - open.begin());
  for (; open[job]; job = after[job]) open[job] = false;
  std::vector<std::uint32_t> circle;
  do circle.push_back(std::exchange(job, after[job]));
  while (job != circle.front());
  std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
  return circle;
}

std::string circle_text(const ClusterJobs& list, const std::vector<std::uint32_t>& circle) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(circle.size(), most); ++i)
    text += list.id_of(circle[i]) + " after ";
  if (circle.size() > most) text += ".. after ";
  return text + list.id_of(circle.front());
}

std::vector<std::string> ids_before(const ClusterJobs& list, std::size_t job) {
  std::vector<std::string> ids;
  for (const JobDependency& one : list.dependencies)
    if (one.job == job) ids.push_back(list.id_of(one.after));
  return ids;
}

void rearrange(ClusterJobs& list, const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> places(list.dependencies.empty() ? 0 : list.jobs.size(), no_place);
  if (!places.empty())
    for (std::uint32_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  take(list.jobs, order);
  take(list.ids, order);
  for (JobDependency& one : list.dependencies) {
    one.job = places[one.job];
    one.after = places[one.after];
  }
  std::erase_if(list.dependencies, [](const JobDependency& one) {
    return one.job == no_place || one.after == no_place;
  });
  std::stable_sort(list.dependencies.begin(), list.dependencies.end(),
                   [](const JobDependency& a, const JobDependency& b) { return a.job < b.job; });
}

void sort_by_submission(ClusterJobs& list) {
  std::vector<std::uint32_t> order(list.jobs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return list.jobs[a].submit < list.jobs[b].submit;
  });
  rearrange(list, order);
}

std::int64_t keep_first(ClusterJobs& list, std::size_t count) {
  const std::size_t all = list.jobs.size();
  if (count >= all) return 0;
  std::vector<bool> gone(all, false);
  std::fill(gone.begin() + static_cast<std::ptrdiff_t>(count), gone.end(), true);
  if (!list.dependencies.empty()) {
    const Dependants dependants(list);
    for (const std::uint32_t job : in_order(list, dependants))
      for (const std::uint32_t place : dependants.of(job))
        if (gone[job]) gone[dependants.at(place).job] = true;
  }
  std::vector<std::uint32_t> kept;
  for (std::uint32_t job = 0; job < count; ++job)
    if (!gone[job]) kept.push_back(job);
  rearrange(list, kept);
  return static_cast<std::int64_t>(count - kept.size());
}

std::vector<bool> cancelled_jobs(const ClusterJobs& list,
                                 const std::function<bool(const ClusterJob&)>& is_rejected) {
  if (list.dependencies.empty()) return {};
  std::vector<bool> cancelled(list.jobs.size(), false);
  const Dependants dependants(list);
  for (const std::uint32_t job : in_order(list, dependants)) {
    const ClusterJob& one = list.jobs[job];
    // Whoever is rejected is so as it comes, whatever it comes after.
    if (is_rejected(one)) cancelled[job] = false;
    if (!cancelled[job] && one.fate == JobFate::completed && !is_rejected(one)) continue;
    for (const std::uint32_t place : dependants.of(job))
      if (!dependants.at(place).any) cancelled[dependants.at(place).job] = true;
  }
  return cancelled;
}

}  // namespace orrery
