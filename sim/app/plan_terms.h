// Knows how a question file's machine, limits and money are read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/plan.h"
#include "sim/base/json.h"

namespace orrery {

// Keys that change the machine, and those that change nothing about a step.
const std::vector<std::string>& machine_keys();
const std::vector<std::string>& money_keys();

// What all choices of a file share while they are read.
struct PlanReading {
  explicit PlanReading(const JsonValue& question);
  // A cluster's name, path, or {"based_on", "name", "overrides", ...}: loaded once.
  void add_cluster(const nlohmann::json& value);
  // Name of the cluster, or of the one that it is based on.
  std::string base_name(const nlohmann::json& value) const;

  JsonValue file;
  std::optional<std::int64_t> start;  // days since 1970-01-01
  PlanObjective objective = PlanObjective::time;
  std::map<std::string, std::int64_t> available;   // cluster: days since 1970-01-01
  std::map<std::string, JsonValue> cluster_files;  // by the value's text in JSON
  std::map<std::string, BillFacts> facts;          // by everything that they depend on
};

// `at`: one value for each key.
Cluster read_plan_cluster(const JsonValue& at, const JsonValue& cluster_file, std::int64_t gpus);
WhatIf read_edit(const JsonValue& at, const Cluster& cluster);
void set_oversubscription(const JsonValue& at, Cluster& cluster);
void read_goal(const PlanReading& reading, const JsonValue& at, PlanChoice& choice);
void read_terms(const PlanReading& reading, const JsonValue& at, PlanChoice& choice);

// Sentences about machines that are not there at the start.
std::vector<std::string> availability_of(const PlanReading& reading, const Plan& plan);

}  // namespace orrery
