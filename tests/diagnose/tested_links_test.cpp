// SPDX-License-Identifier: Apache-2.0
// Tests that tables of nccl-tests are held against the links that are predicted.
#include <cmath>

#include <catch2/catch.hpp>

#include "sim/diagnose/diagnose.h"
#include "sim/engine/collectives/collectives.h"
#include "tests/diagnose/fault_states.h"

namespace orrery {
namespace {

HealthyRun four_hosts() { return healthy_run({.layout = {.dp = 32, .zero_stage = 3}}, 1); }

// all_reduce_perf on so many hosts of eight, each message `slower` times the predicted.
observe::CollectiveTests test_of(const HealthyRun& run, int hosts, double slower) {
  observe::CollectiveTable table;
  table.line = 7;
  table.kind = CollectiveKind::all_reduce;
  table.program = "all_reduce_perf";
  const int gpus = 8 * hosts;
  for (int rank = 0; rank < gpus; ++rank)
    table.ranks.push_back(
        {.rank = rank, .host = "node" + std::to_string(rank / 8), .device = rank % 8});
  for (const double size : {1e5, 1e7, 1e9}) {
    const Collective call{.kind = CollectiveKind::all_reduce,
                          .group = {.size = gpus, .per_domain = 8, .domains = hosts, .span = gpus},
                          .bytes = Bytes(size)};
    const auto& cluster = run.scenario.cluster;
    // Small messages are ten times as slow: they say nothing of links.
    const double seconds =
        collective_time(call, cluster.fabric, cluster.collective_costs).time.si() *
        (size < 1e6 ? 10 : slower);
    observe::TimedCollective timed{.time = Seconds(seconds)};
    timed.algorithm = BytesPerSecond(size / seconds);
    timed.bus = BytesPerSecond(2.0 * (gpus - 1) / gpus * size / seconds);
    observe::CollectiveRow row{.size = Bytes(size)};
    row.out_of_place = timed;
    table.rows.push_back(row);
  }
  observe::CollectiveTests tests;
  tests.file = "nccl.txt";
  tests.tables.push_back(table);
  return tests;
}

TEST_CASE("a test is held against the same group of the cluster") {
  const HealthyRun run = four_hosts();
  std::vector<std::string> notes;
  const auto read = tested_links({test_of(run, 1, 1.5), test_of(run, 4, 3)}, run.scenario, notes);
  REQUIRE(read.size() == 2);
  CHECK(notes.empty());
  CHECK_FALSE(read[0].leaves_domain);
  CHECK(read[0].ratio == Approx(1.5));
  CHECK(read[1].leaves_domain);
  CHECK(read[1].hosts == 4);
  CHECK(read[1].ratio == Approx(3));
  CHECK(read[1].message.si() == 1e9);
  CHECK(read[1].predicted_bus.si() == Approx(3 * read[1].measured_bus.si()));
  Readings readings = {{.symptom = Symptom::network, .value = 0.1}};
  read_tested_links(read, readings);
  REQUIRE(readings.size() == 2);  // a profile told the network; the test tells links inside
  CHECK(readings[1].symptom == Symptom::link);
  CHECK(readings[1].value == Approx(std::log(1.5)));
}

TEST_CASE("a table that says nothing of the run's links is left out with a reason") {
  const HealthyRun run = four_hosts();
  std::vector<std::string> notes;
  observe::CollectiveTests tests = test_of(run, 4, 1);
  tests.tables[0].kind = CollectiveKind::send_receive;
  tests.tables.push_back(test_of(run, 5, 1).tables[0]);
  tests.tables.push_back(test_of(run, 4, 1).tables[0]);
  tests.tables.back().ranks.clear();
  tests.tables.push_back(test_of(run, 4, 1).tables[0]);
  tests.tables.back().rows.resize(1);
  CHECK(tested_links({tests}, run.scenario, notes).empty());
  REQUIRE(notes.size() == 4);
  CHECK(notes[0].find("line 7 of nccl.txt says nothing of links: its collective") !=
        std::string::npos);
  CHECK(notes[1].find("more GPUs than the run") != std::string::npos);
  CHECK(notes[2].find("does not list its GPUs") != std::string::npos);
  CHECK(notes[3].find("a megabyte") != std::string::npos);
}

TEST_CASE("nccl-tests tell a slow network from what else makes a step long") {
  const HealthyRun run = four_hosts();
  REQUIRE(run.links.network_s.back() > 1.3 * run.links.network_s.front());
  const RunState slow = with_fault(run.state, CauseKind::colliding_flows, 4, 0, run.links);
  Observations seen;
  seen.step_s = slow.step_s;
  const auto probability = [&] {
    double sum = 0;
    for (const Finding& f : diagnose(run.scenario, run.prediction, seen).findings)
      if (f.kind == CauseKind::slow_nic || f.kind == CauseKind::bad_cable ||
          f.kind == CauseKind::colliding_flows)
        sum += f.probability;
    return sum;
  };
  const double before = probability();
  seen.tests = {test_of(run, 4, 5)};
  CHECK(probability() > std::max(0.5, 2 * before));
  seen.tests = {test_of(run, 4, 1)};
  CHECK(probability() < before / 4);
}

}  // namespace
}  // namespace orrery
