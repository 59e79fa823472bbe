// SPDX-License-Identifier: Apache-2.0
// Finds what entries come after among all jobs of a question.
#include "sim/question/rules/entry_dependencies.h"

#include <algorithm>
#include <unordered_map>

#include "sim/base/text/words.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {
namespace {

std::uint32_t place_in(const std::vector<std::string>& ids, const std::string& id) {
  const auto at = std::find(ids.begin(), ids.end(), id);
  return at == ids.end() ? no_place : static_cast<std::uint32_t>(at - ids.begin());
}

}  // namespace

void EntryDependencies::resolve(const std::vector<std::string>& entries,
                                const std::function<bool(const std::string&)>& traced) {
  const auto knows = [&](const std::string& id) {
    return place_in(entries, id) != no_place || traced(id);
  };
  for (const auto& [id, after] : asked_)
    for (const JsonValue& one : after.is_array() ? after.items() : std::vector{after}) {
      const auto read = read_dependencies(one.text(), knows);
      if (!read) one.fail(dependency_words);
      for (const NamedDependency& named : *read) {
        if (!knows(named.after))
          throw Error({.file = one.file(),
                       .path = one.path(),
                       .found = in_quotes(named.after),
                       .expected = "ids of jobs that end: trainings, batches and RL (" +
                                   joined(entries, ", ") +
                                   "), or of a trace (jobs.csv:7, as answers call them)",
                       .nearest = nearest_name(named.after, entries)});
        named_.push_back({id, named.after, named.any});
      }
    }
  check_circles(entries);
}

// Jobs of traces come after no entries.
void EntryDependencies::check_circles(const std::vector<std::string>& entries) const {
  ClusterJobs list;
  list.jobs.resize(entries.size());
  list.ids = entries;
  for (const Named& one : named_)
    if (const std::uint32_t after = place_in(entries, one.after); after != no_place)
      list.dependencies.push_back({place_in(entries, one.id), after});
  const std::vector<std::uint32_t> circle = dependency_circle(list);
  if (circle.empty()) return;
  const auto at = std::find_if(asked_.begin(), asked_.end(), [&](const auto& one) {
    return one.first == entries[circle.front()];
  });
  at->second.fail("jobs that come after others in no circle",
                  "a circle: " + circle_text(list, circle));
}

void EntryDependencies::join(ClusterJobs& list) const {
  if (named_.empty()) return;
  std::unordered_map<std::string, std::uint32_t> places;
  for (const Named& one : named_) {
    places[one.id] = no_place;
    places[one.after] = no_place;
  }
  for (std::uint32_t i = 0; i < list.ids.size(); ++i)
    if (const auto at = places.find(list.ids[i]); at != places.end()) at->second = i;
  for (const Named& one : named_)
    list.dependencies.push_back({places.at(one.id), places.at(one.after), one.any});
}

}  // namespace orrery
