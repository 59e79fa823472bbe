// SPDX-License-Identifier: Apache-2.0
// Reads by which rule jobs are ordered, may pass others, stop others, and are placed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/engine/fleet/fleet_question.h"
#include "sim/engine/jobs/policy_file.h"

namespace orrery {

// A policy by its short name: order, fit and preemption at once.
struct NamedPolicy {
  const char* name;  // "easy"
  JobOrder order;
  JobFit fit;
  bool preempts = false;
  std::optional<RoundRule> rounds = {};  // JobFit::rounds
};
const std::vector<NamedPolicy>& named_policies();

// These, then the presets of the catalogue.
std::vector<std::string> policy_names();

struct AskedPolicy {
  std::string policy, place;
  std::optional<PolicyPreset> preset;  // of the catalogue
};

// Settings policy, place, round, preempt_after, grace, requeue_delay, requeue_most, defragment,
// first_queue, meeting. Errors: names that are not known, times below 0, a most below the first.
AskedPolicy read_policy(const JsonValue& settings, FleetQuestion& question);

// Settings priority_weights, priority_max_age, priority_half_life, of Slurm's loops.
void read_priorities(const JsonValue& settings, SlurmSettings& slurm);

}  // namespace orrery
