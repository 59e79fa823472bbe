// SPDX-License-Identifier: Apache-2.0
// Tests that faults are found by what they show, over random cases.
#include "sim/diagnose/judge.h"

#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/diagnose/gap.h"
#include "sim/diagnose/observed/observations.h"
#include "tests/base/fresh_seed.h"
#include "tests/diagnose/fault_states.h"

namespace orrery {
namespace {

constexpr double model_noise = 0.08;

std::vector<Finding> findings_of(const HealthyRun& run, const RunState& state,
                                 RandomStream* noise = nullptr) {
  return judge(run.state, model_noise, shown(state, noise), run.links, run.priors);
}

bool is_of_network(CauseKind kind) {
  return kind == CauseKind::slow_nic || kind == CauseKind::bad_cable ||
         kind == CauseKind::colliding_flows;
}

// Whether the run has what the fault touches: hosts that meet over a network, links inside a
// domain, buckets smaller than the model.
bool touches(const HealthyRun& run, CauseKind kind) {
  if (is_of_network(kind)) return run.links.network_s.back() > 1.3 * run.links.network_s.front();
  if (kind == CauseKind::slow_scale_up)
    return run.links.scale_up_s.back() > 1.3 * run.links.scale_up_s.front();
  return true;
}

TEST_CASE("law: faults that show themselves through noise are found") {
  RandomStream random(fresh(20261126), 1);
  int runs = 0, first = 0, three = 0, ranks = 0, right_ranks = 0;
  for (const ScenarioWords& words : varied_scenarios()) {
    const HealthyRun run = healthy_run(words, 4);
    for (const Cause& cause : causes()) {
      if (!is_fault(cause.kind) || !touches(run, cause.kind)) continue;
      const double low = std::max(0.3, cause.least), high = std::min(2.0, cause.most);
      const double strength = low * std::pow(high / low, random.uniform());
      const auto rank = static_cast<std::size_t>(4 * random.uniform());
      const RunState state = with_fault(run.state, cause.kind, strength, rank, run.links);
      const std::vector<Finding> found = findings_of(run, state, &random);
      ++runs;
      first += found[0].kind == cause.kind;
      for (int i = 0; i < 3; ++i) {
        if (found[static_cast<std::size_t>(i)].kind != cause.kind) continue;
        ++three;
        if (!cause.of_rank) continue;
        ++ranks;
        right_ranks += found[static_cast<std::size_t>(i)].rank == static_cast<int>(rank);
      }
    }
  }
  CHECK(runs > 180);
  CHECK(first > 0.8 * runs);
  CHECK(three > 0.95 * runs);
  CHECK(right_ranks > 0.95 * ranks);
}

TEST_CASE("law: a healthy run is healthy, and probabilities add up to one") {
  for (const ScenarioWords& words : varied_scenarios()) {
    const HealthyRun run = healthy_run(words, 3);
    const std::vector<Finding> found = findings_of(run, run.state);
    CHECK(found.front().kind == CauseKind::healthy);
    const double sum =
        std::accumulate(found.begin(), found.end(), 0.0,
                        [](double all, const Finding& f) { return all + f.probability; });
    CHECK(sum == Approx(1));
    for (std::size_t i = 1; i < found.size(); ++i)
      CHECK(found[i].probability <= found[i - 1].probability);
  }
}

// A step of another model or batch, or one in another unit.
TEST_CASE("law: a step that is far from the predicted, either way, is another run's") {
  const auto first_of = [](const HealthyRun& run, double ratio) {
    const Seen seen{.readings = {{.symptom = Symptom::step, .value = std::log(ratio)}}};
    return judge(run.state, model_noise, seen, run.links, run.priors).front();
  };
  for (const ScenarioWords& words : varied_scenarios()) {
    const HealthyRun run = healthy_run(words, 1);
    for (const double ratio : {1e-6, 1e-3, 0.1, 60.0, 1e3, 1e6}) {
      const Finding first = first_of(run, ratio);
      INFO(ratio);
      CHECK(first.kind == CauseKind::another_run);
      CHECK(first.probability > 0.9);
      CHECK(first.strength == Approx(ratio).epsilon(0.01));
      CHECK(first.healthy_s == first.faulty_s);  // it costs nothing
    }
    // Runs differ from predictions by a few tens of percent, and faults make steps longer.
    for (const double ratio : {0.9, 1.0, 1.1})
      CHECK(first_of(run, ratio).kind == CauseKind::healthy);
    for (const double ratio : {1.5, 2.0, 4.0})
      CHECK(first_of(run, ratio).kind != CauseKind::another_run);
  }
}

// Whatever a cause does at its most to the step of the run.
double most_reached(const HealthyRun& run) {
  double most = 1;
  for (const Cause& cause : causes()) {
    if (!is_fault(cause.kind) || !is_possible(cause.kind, run.state, run.links)) continue;
    for (int form = 0; form < forms_of(cause.kind, run.state); ++form)
      most =
          std::max(most, with_fault(run.state, cause.kind, cause.most, 0, run.links, form).step_s /
                             run.state.healthy_s);
  }
  return most;
}

TEST_CASE("law: a step alone beyond what any cause reaches is another run's") {
  for (const ScenarioWords& words : varied_scenarios()) {
    const HealthyRun run = healthy_run(words, 1);
    const double most = most_reached(run);
    // Of the prediction's own error a step may be longer.
    for (const double beyond : {1.2, 1.5, 2.0, 4.0}) {
      const Seen seen{.readings = {{.symptom = Symptom::step, .value = std::log(beyond * most)}}};
      INFO(most << " " << beyond);
      CHECK(judge(run.state, model_noise, seen, run.links, run.priors).front().kind ==
            CauseKind::another_run);
    }
  }
}

// Its profile is another one, too: kernels, waits and idle times are none of the predicted.
TEST_CASE("a profile of another run is told, and none of a fault of this one") {
  for (const double times : {0.02, 50.0}) {
    const HealthyRun run = healthy_run(varied_scenarios().front(), 2);
    RunState other = run.state;
    other.step_s *= times;
    for (RankState& r : other.ranks) {
      r.products_s *= 1.4 * times;
      r.attention_s *= 0.5 * times;
      r.memory_bound_s *= 0.8 * times;
      r.optimizer_s *= times;
      r.idle_s += 0.05 * other.step_s;
    }
    Finding first = findings_of(run, other).front();
    INFO(times);
    CHECK(first.kind == CauseKind::another_run);
    CHECK(first.probability > 0.9);
  }
}

TEST_CASE("law: the stronger a fault, the less a run looks healthy") {
  const HealthyRun run = healthy_run(varied_scenarios().front(), 2);
  for (const CauseKind kind :
       {CauseKind::straggling_host, CauseKind::busy_gpu, CauseKind::data_stall,
        CauseKind::checkpoint, CauseKind::imbalance}) {
    double before = 1;
    for (const double strength : {0.05, 0.1, 0.2, 0.4, 0.8}) {
      const std::vector<Finding> found =
          findings_of(run, with_fault(run.state, kind, strength, 1, run.links));
      double healthy = 0;
      for (const Finding& f : found)
        if (f.kind == CauseKind::healthy) healthy = f.probability;
      INFO(cause_text[kind] << " " << strength);
      CHECK(healthy <= before * (1 + 1e-9));
      before = healthy;
    }
    CHECK(before < 0.01);
  }
}

TEST_CASE("the strength of a fault is found, and with it what it costs") {
  const HealthyRun run = healthy_run(varied_scenarios().front(), 2);
  const RunState state = with_fault(run.state, CauseKind::straggling_host, 0.3, 1, run.links);
  const Finding first = findings_of(run, state).front();
  CHECK(first.kind == CauseKind::straggling_host);
  CHECK(first.rank == 1);
  CHECK(first.strength == Approx(0.3).epsilon(0.03));
  CHECK(first.faulty_s - first.healthy_s == Approx(0.3 * run.state.healthy_s).epsilon(0.05));
}

// Launches that block leave nothing beside a kernel, so that products are faster than in the same
// run without them: the run without the fault was no faster.
TEST_CASE("kernels that a fault frees of collectives beside them do not make it dearer") {
  const HealthyRun run = healthy_run(varied_scenarios().front(), 2);
  const auto healthy_s = [&](CauseKind kind, double strength, double faster) {
    RunState state = with_fault(run.state, kind, strength, 1, run.links);
    for (RankState& r : state.ranks) {
      state.step_s -= faster * r.products_s / static_cast<double>(state.ranks.size());
      r.products_s *= 1 - faster;
    }
    const Finding first = findings_of(run, state).front();
    CHECK(first.kind == kind);
    return first.healthy_s;
  };
  const double before = healthy_s(CauseKind::launch_blocking, 0.6, 0);
  CHECK(before == Approx(run.state.healthy_s).epsilon(0.02));
  CHECK(healthy_s(CauseKind::launch_blocking, 0.6, 0.1) == Approx(before).epsilon(0.02));
  // A host that is late leaves collectives beside kernels: that run's kernels are faster ones.
  CHECK(healthy_s(CauseKind::straggling_host, 0.6, 0.1) < 0.97 * before);
}

// Collectives on slow links run beside few kernels, which are shorter then: as far as that is
// predicted it is the fault's, and no sign of a faster run.
TEST_CASE("kernels that slow links free are given back, and only where they were seen shorter") {
  int tried = 0;
  for (const int dp : {16, 32, 64}) {
    const HealthyRun run = healthy_run({.layout = {.dp = dp, .zero_stage = 3}}, 2);
    const RunState slow = with_fault(run.state, CauseKind::colliding_flows, 3, 0, run.links);
    UNSCOPED_INFO(dp << ": " << slow.unknown.freed_s / run.state.healthy_s << ", "
                     << slow.step_s / run.state.healthy_s);
    if (slow.unknown.freed_s < 0.01 * run.state.healthy_s) continue;
    ++tried;
    const auto healthy_s = [&](double shorter_s) {
      RunState state = slow;
      state.step_s -= shorter_s;
      for (RankState& r : state.ranks) r.products_s -= shorter_s;
      const Finding first = findings_of(run, state).front();
      CHECK(first.kind == CauseKind::colliding_flows);
      return first.healthy_s / run.state.healthy_s;
    };
    CHECK(healthy_s(0) == Approx(1).epsilon(0.02));
    CHECK(healthy_s(slow.unknown.freed_s) == Approx(1).epsilon(0.02));
    // Kernels that are shorter by more are those of a faster run.
    CHECK(healthy_s(3 * slow.unknown.freed_s) <
          1 - 1.5 * slow.unknown.freed_s / run.state.healthy_s);
  }
  CHECK(tried > 0);
}

// A prediction counts what hidden collectives cost as communication that shows; a profile shows it
// in the kernels beside them.
TEST_CASE("time that kernels have in place of communication is counted once") {
  int tried = 0;
  for (const ScenarioWords& words : varied_scenarios()) {
    const HealthyRun run = healthy_run(words, 2);
    RunState state = run.state;
    const double moved_s =
        std::min(0.5 * state.ranks[0].exposed_s, 0.2 * state.ranks[0].products_s);
    if (moved_s < 0.02 * state.step_s) continue;
    ++tried;
    for (RankState& r : state.ranks) {
      r.products_s += moved_s;
      r.exposed_s -= moved_s;
    }
    const std::vector<Finding> found = findings_of(run, state);
    CHECK(found.front().kind == CauseKind::healthy);
    CHECK(found.front().healthy_s == Approx(state.step_s).epsilon(0.005));
  }
  CHECK(tried > 3);
}

TEST_CASE("lines of a log name a cause that times alone do not tell") {
  const HealthyRun run = healthy_run(varied_scenarios().front(), 1);
  Seen seen{.readings = {{.symptom = Symptom::step, .value = 0.4}}, .can_name = true};
  const auto probability = [&](CauseKind kind) {
    for (const Finding& f : judge(run.state, model_noise, seen, run.links, run.priors))
      if (f.kind == kind) return f.probability;
    return 0.0;
  };
  const double before = probability(CauseKind::launch_blocking);
  seen.troubles = {"CUDA_LAUNCH_BLOCKING"};
  CHECK(probability(CauseKind::launch_blocking) > 0.5);
  CHECK(before < 0.1);
}

// What a port of `gbit` a second counts: so many wrong symbols in a minute.
std::vector<NamedTrouble> symbol_errors(double errors, double gbit, bool has_clock = true) {
  const observe::CounterSeries series{
      .counter = observe::Counter::port_symbol_errors,
      .host = "host1",
      .device = "mlx5_3/1",
      .readings = {{.time_s = 0, .value = 7}, {.time_s = 60, .value = 7 + errors}}};
  return troubles_of({{.has_clock = has_clock, .series = {series}}},
                     BytesPerSecond(gbit * 1e9 / 8));
}

TEST_CASE("ports with more wrong symbols than a link is allowed are named with how many") {
  // 400 Gb/s for a minute are 2.4e13 bits, of which 24 may be wrong.
  CHECK(symbol_errors(0, 400).empty());
  const std::vector<NamedTrouble> few = symbol_errors(23, 400);
  REQUIRE(few.size() == 1);
  CHECK(few[0].trouble == "port errors");
  CHECK(few[0].sentence == "host1 mlx5_3/1: port symbol errors rose by 23 in 60.0 s");
  const std::vector<NamedTrouble> many = symbol_errors(2400, 400);
  REQUIRE(many.size() == 2);
  CHECK(many[1].trouble == port_beyond_allowed);
  CHECK(many[1].sentence.find("mlx5_3/1: 100 times the wrong symbols") != std::string::npos);
  CHECK(symbol_errors(23, 100).size() == 2);
  CHECK(symbol_errors(2400, 400, false).size() == 1);  // samples without times tell no rate
}

TEST_CASE("a port that is out of order says more than one that counts errors") {
  int tried = 0;
  for (const ScenarioWords& words : varied_scenarios()) {
    const HealthyRun run = healthy_run(words, 1);
    if (!touches(run, CauseKind::bad_cable)) continue;
    ++tried;
    Seen seen{.readings = {{.symptom = Symptom::step, .value = 0.06}}, .can_name = true};
    const auto odds = [&](std::vector<std::string> troubles) {
      seen.troubles = std::move(troubles);
      for (const Finding& f : judge(run.state, model_noise, seen, run.links, run.priors))
        if (f.kind == CauseKind::bad_cable) return f.probability / (1 - f.probability);
      return 0.0;
    };
    CHECK(odds({"port errors"}) > 10 * odds({}));
    CHECK(odds({port_beyond_allowed}) == Approx(10 * odds({"port errors"})));
  }
  CHECK(tried > 3);
}

// Kernels of one rank say themselves how much longer they are; the rest of a step that is longer
// than predicted is no more of the fault.
TEST_CASE("what slow kernels of a rank cost is told by these, whatever else the step has") {
  for (const CauseKind kind : {CauseKind::slow_gpu, CauseKind::imbalance}) {
    const HealthyRun run = healthy_run(varied_scenarios().front(), 4);
    RunState state = with_fault(run.state, kind, 0.3, 1, run.links);
    const auto cost = [&] {
      const Finding first = findings_of(run, state).front();
      CHECK(first.kind == kind);
      return 1 - first.healthy_s / first.faulty_s;
    };
    const double before = cost();
    state.step_s *= 1.05;
    CHECK(cost() == Approx(before).epsilon(0.01));
  }
}

TEST_CASE("sends and receives of a pipeline are told from other communication") {
  HealthyRun run = healthy_run({.layout = {.pp = 4, .dp = 2}}, 1);
  const RankState& plan = run.state.ranks.front();
  REQUIRE(plan.bubble_s > 0);
  const auto part = [](const Gap& gap, const std::string& key) {
    for (const GapPart& one : gap.parts)
      if (one.key == key) return one.seconds;
    return 0.0;
  };
  const double other = plan.exposed_s - plan.exchange_s;
  run.state.ranks.front().exposed_s += plan.bubble_s;
  const double planned = plan.bubble_s + plan.exchange_s;
  for (const double longer : {1.0, 1.5}) {
    const double waited = longer * planned;
    Readings readings = {{.symptom = Symptom::step, .value = 0.2}};
    readings.push_back(
        {.symptom = Symptom::exposed, .value = (waited + other + 0.01) / run.state.healthy_s});
    const Gap gap = gap_of(run.state, readings, waited);
    CHECK(part(gap, "bubble") == Approx((longer - 1) * planned).margin(1e-9));
    CHECK(part(gap, "communication") == Approx(0.01));
    CHECK(gap.bubble_s == Approx(plan.bubble_s));
  }
  // Rings of context parallelism send and receive, too: nobody knows which is which.
  std::vector<observe::Profile> profiles(1);
  profiles[0].mean.by_collective[static_cast<std::size_t>(CollectiveKind::send_receive)] =
      Seconds(0.1);
  CHECK(exchanged_of(profiles, run.scenario) == 0.1);
  run.scenario.layout.cp = 2;
  CHECK_FALSE(exchanged_of(profiles, run.scenario));
  run.scenario.layout = {.tp = 1, .pp = 1};
  CHECK_FALSE(exchanged_of(profiles, run.scenario));
}

TEST_CASE("law: parts of a gap add up to it") {
  RandomStream random(fresh(20261126), 1);
  for (const ScenarioWords& words : varied_scenarios()) {
    const HealthyRun run = healthy_run(words, 3);
    for (const Cause& cause : causes()) {
      const RunState state =
          with_fault(run.state, cause.kind, 0.2 + random.uniform(), 1, run.links);
      const Gap gap = gap_of(run.state, shown(state).readings);
      double sum = 0;
      for (const GapPart& part : gap.parts) sum += part.seconds;
      CHECK(sum == Approx(gap.seconds()).margin(1e-9 * gap.measured_s));
      CHECK(gap.usual_s == Approx(state.step_s));
      CHECK(gap.measured_s == Approx(state.step_s + state.occasional_s));
    }
  }
}

}  // namespace
}  // namespace orrery
