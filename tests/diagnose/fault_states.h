// SPDX-License-Identifier: Apache-2.0
// Makes healthy states and what they show, for tests of diagnoses.
#pragma once

#include <numeric>

#include "sim/base/random.h"
#include "sim/diagnose/cause/priors.h"
#include "sim/diagnose/judge.h"
#include "sim/outcome/simulate.h"
#include "tests/explain/whole_scenarios.h"

namespace orrery {

// A run of several ranks that is predicted, and what a fault makes of it.
struct HealthyRun {
  Scenario scenario;
  Prediction prediction;
  RunState state;
  LinkSteps links;
  std::vector<double> priors;
};

inline HealthyRun healthy_run(const ScenarioWords& words, std::size_t ranks) {
  HealthyRun run{.scenario = whole_scenario(words)};
  run.prediction = simulate(run.scenario, {.with_assumptions = false});
  run.state = healthy_state(run.scenario, run.prediction, ranks);
  run.links = simulate_links(run.scenario);
  run.priors = priors_of(run.scenario);
  return run;
}

// All that a state shows, a run that is profiled on every rank; with noise where it is drawn.
inline Seen shown(const RunState& state, RandomStream* noise = nullptr) {
  Seen seen{.can_name = true, .ranks = std::vector<int>(state.ranks.size())};
  std::iota(seen.ranks.begin(), seen.ranks.end(), 0);
  for (std::size_t i = 0; i < symptom_count; ++i) {
    const auto symptom = static_cast<Symptom>(i);
    if ((symptom == Symptom::saves || symptom == Symptom::stalls) && state.occasional_s <= 0)
      continue;
    const double mean = expected(state, symptom, -1);
    if (mean < -15) continue;  // the run has no kernels of this class
    if (!is_of_each_rank(symptom)) seen.readings.push_back({.symptom = symptom, .value = mean});
    if (symptom < Symptom::products) continue;
    for (std::size_t r = 0; r < state.ranks.size(); ++r)
      seen.readings.push_back({.symptom = symptom,
                               .rank = static_cast<int>(r),
                               .value = expected(state, symptom, static_cast<int>(r))});
  }
  for (Reading& reading : seen.readings)
    if (noise != nullptr && reading.symptom != Symptom::step)
      reading.value += noise->normal(0, deviation_of(reading, reading.value, 0, state));
  return seen;
}

}  // namespace orrery
