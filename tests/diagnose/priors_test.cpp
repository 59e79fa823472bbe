// SPDX-License-Identifier: Apache-2.0
// Tests what is thought of causes before a run's files are read.
#include "sim/diagnose/cause/priors.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/diagnose/fault_states.h"

namespace orrery {
namespace {

double prior(const std::vector<double>& priors, CauseKind kind) {
  return priors.at(static_cast<std::size_t>(kind));
}

TEST_CASE("law: the more parts a run has, the sooner one of them is bad") {
  const std::vector<double> one = priors_of(healthy_run({.layout = {.dp = 16}}, 1).scenario);
  REQUIRE(one.size() == cause_count);
  for (const int dp : {32, 64}) {
    const std::vector<double> more = priors_of(healthy_run({.layout = {.dp = dp}}, 1).scenario);
    for (const Cause& cause : causes()) {
      INFO(cause_text[cause.kind] << " " << dp);
      const double ratio = prior(more, cause.kind) / prior(one, cause.kind);
      if (cause.parts.empty()) {
        CHECK(ratio == 1);
        CHECK(prior(more, cause.kind) == *cause.prior.value);
      } else {  // as many as there are parts, while they are few, beside what is judged
        const double judged = cause.prior.value.value_or(0);
        const double grown = (prior(more, cause.kind) - judged) / (prior(one, cause.kind) - judged);
        CHECK(grown > 0.8 * dp / 16);
        CHECK(grown < 1.001 * dp / 16);
      }
    }
  }
}

// On 32 H100: a faulty GPU 6.1 % a year, 1.85 days at work, four times as often asked about as the
// half that is healthy.
TEST_CASE("priors of parts are the catalogue's rates") {
  const std::vector<double> priors = priors_of(healthy_run({.layout = {.dp = 32}}, 1).scenario);
  const double gpu = 4 * 0.5 * 32 * 0.0611 / 365.25 * (0.012 / 0.0065);
  CHECK(prior(priors, CauseKind::slow_gpu) ==
        Approx(0.1 * (1 - std::exp(-gpu / 0.1))).epsilon(0.01));
  CHECK(prior(priors, CauseKind::slow_memory) == Approx(gpu * 2.97 / 6.11).epsilon(0.06));
  // A port is out of order with its NIC or its cable.
  CHECK(prior(priors, CauseKind::slow_nic) ==
        Approx(prior(priors, CauseKind::bad_cable) * (1.4 + 0.289) / 1.4).epsilon(0.02));
}

// Many GPUs always have a bad one; a run of them that is as predicted is healthy all the same.
TEST_CASE("law: a run as it is predicted is healthy on any number of GPUs") {
  for (const ScenarioWords& words : varied_scenarios()) {
    HealthyRun run = healthy_run(words, 2);
    for (const std::int64_t gpus : {1024, 2048, 4096}) {
      Scenario large = run.scenario;
      large.cluster.gpus = gpus;
      run.priors = priors_of(large);
      for (const double prior : run.priors) CHECK(prior <= 0.5);
      const Seen step{.readings = {{.symptom = Symptom::step, .value = 0}}};
      for (const Seen& seen : {shown(run.state), step}) {
        const Finding first = judge(run.state, 0.08, seen, run.links, run.priors).front();
        INFO(gpus);
        CHECK(first.kind == CauseKind::healthy);
        CHECK(first.probability > 0.35);
      }
    }
  }
}

TEST_CASE("a machine whose profile tells no parts has those of the best documented") {
  Scenario scenario = healthy_run({.layout = {.dp = 8}}, 1).scenario;
  scenario.cluster.device.name = "a100-sxm4-80gb";
  CHECK(prior(priors_of(scenario), CauseKind::slow_gpu) > 0);
}

}  // namespace
}  // namespace orrery
