// SPDX-License-Identifier: Apache-2.0
// Tests policies of the catalogue: each reads, and does what its rules say.
#include <catch2/catch.hpp>

#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/policy_file.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

FleetRecord run_preset(const char* name, const ClusterJobs& list) {
  const PolicyPreset preset = load_policy_preset(name);
  FleetQuestion question;
  question.shape = small_cluster(8);
  question.policy = preset.rules;
  question.loops.slurm.blocks = preset.rules.blocks;
  return run_fleet(list, question);
}

TEST_CASE("policies of the catalogue say what they leave out, and run all jobs", "[fleet]") {
  const ClusterJobs list = random_jobs(5, 200, 64, true);
  REQUIRE(policy_preset_names().size() >= 6);
  for (const std::string& name : policy_preset_names()) {
    INFO(name);
    CHECK_FALSE(load_policy_preset(name).not_modelled.empty());
    for (const JobRecord& job : run_preset(name.c_str(), list).jobs)
      REQUIRE(job.end != fleet_never);
  }
}

// A job of low priority holds the cluster as one of high priority comes.
TEST_CASE("policies of the catalogue stop jobs as their releases do", "[fleet]") {
  ClusterJobs list;
  const std::int64_t hour = INT64_C(3'600'000'000);
  list.jobs.push_back({.length = {10 * hour}, .limit = {10 * hour}, .gpus = 64});
  list.jobs.push_back(
      {.submit = {hour}, .length = {hour}, .limit = {hour}, .gpus = 64, .priority = 1});
  CHECK(run_preset("kai", list).jobs[1].start.us == hour);
  for (const char* name : {"kueue-tas", "volcano", "slurm-default", "slurm-block"})
    CHECK(run_preset(name, list).jobs[1].start.us >= 10 * hour);
  // Not before it has run for two hours.
  const FleetRecord young = run_preset("rsc", list);
  CHECK(young.jobs[1].start.us >= 2 * hour);
  list.jobs[1].submit.us = 3 * hour;
  CHECK(run_preset("rsc", list).jobs[1].start.us == 3 * hour);
}

TEST_CASE("Slurm's blocks are the innermost groups of hosts", "[slurm]") {
  SlotShape shape = small_cluster(8);
  shape.levels = {{"domain", 2}, {"leaf group", 4}};
  for (const bool blocks : {false, true}) {
    SlurmPasses passes(shape, {.blocks = blocks});
    passes.submit(0, 40, 600);  // hosts 0 to 4
    passes.submit(1, 8, 600);
    const auto starts = passes.main_pass(0, true);
    REQUIRE(starts.size() == 2);
    // Three are left under the second leaf, one in its first block.
    CHECK(starts[1].hosts == std::vector<std::int32_t>{5});
    passes.submit(2, 16, 600);
    CHECK(passes.main_pass(1, true).front().hosts == std::vector<std::int32_t>{6, 7});
    passes.release(0);
    passes.submit(3, 24, 600);
    const auto third = passes.main_pass(2, true).front().hosts;
    // Of blocks that are too small the largest, then the one that suffices; of leaves the first.
    CHECK(third ==
          (blocks ? std::vector<std::int32_t>{0, 1, 4} : std::vector<std::int32_t>{0, 1, 2}));
  }
}

}  // namespace
}  // namespace orrery
