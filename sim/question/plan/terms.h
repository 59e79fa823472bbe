// SPDX-License-Identifier: Apache-2.0
// Knows how a question file's machine, limits and money are read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/date.h"
#include "sim/base/json/json.h"
#include "sim/plan/plan.h"

namespace orrery {

// What all choices of a file share while they are read.
struct PlanReading {
  explicit PlanReading(const JsonValue& question);
  // A cluster's name, path, or {"based_on", "name", "overrides", ...}: loaded once.
  void add_cluster(const SortedJson& value);
  // Name of the cluster, or of the one that it is based on.
  std::string base_name(const SortedJson& value) const;

  JsonValue file;
  std::optional<Date> start;
  PlanObjective objective = PlanObjective::time;
  std::map<std::string, Date> available;           // by cluster
  std::map<std::string, JsonValue> cluster_files;  // by the value's text in JSON
  // What many choices share, read once: by everything that it depends on.
  std::map<std::string, PlanChoice> machines;
  std::map<std::string, BillFacts> facts;
  std::map<std::string, ReliabilityProfile> reliability;
};

// `at`: one value for each key.
Cluster read_plan_cluster(const JsonValue& at, const JsonValue& cluster_file, std::int64_t gpus);
// Lays the machine keys over the choice's cluster, and the speed-ups; leaves them in its edit.
void change_machine(const JsonValue& at, PlanChoice& choice);
// Wirings of the catalogue for the choice's machine that join more than its own, where that ends
// before the limits of power, capital, racks and floor do; and the sentence that says so.
// The largest first; `most_wirings` of them are looked at, since each is a search of its own.
inline constexpr std::size_t most_wirings = 3;
std::vector<std::string> wirings_beyond(const PlanChoice& choice);
std::string wirings_text(const Cluster& cluster, const std::vector<std::string>& names);
// Whether layouts are searched by energy: carbon is that of the grid's energy but for a small part.
bool counts_energy(PlanObjective objective);
void read_goal(const PlanReading& reading, const JsonValue& at, PlanChoice& choice);
void read_terms(PlanReading& reading, const JsonValue& at, PlanChoice& choice);

// Error where a key of money means nothing for any choice: prices of what is rented where all is
// bought, or of what is bought where all is rented.
void check_ownership(const JsonValue& file, const Plan& plan);

// What stands for a figure that the question gives: a fact of the question, with no range.
template <class Q>
Sourced<Q> granted(Q value) {
  return {.value = value,
          .low = value,
          .high = value,
          .evidence = Evidence::assumed,
          .source = "orrery-estimate",
          .reason = "the question says so"};
}

// Sentences: from when machines can be had that are not there at the start, and where that is
// known from.
std::vector<std::string> availability_of(const PlanReading& reading, const Plan& plan);
// Sentences: what the hypothetical machines and kernels of a plan take for granted.
std::vector<std::string> premises_of(const Plan& plan);

}  // namespace orrery
