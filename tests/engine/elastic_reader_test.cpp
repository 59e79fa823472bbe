// SPDX-License-Identifier: Apache-2.0
// Tests how elastic jobs and their measured steps are read, and steps between measured ones.
#include <catch2/catch.hpp>

#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "workloads/cluster_job/elastic_job.h"

namespace orrery {
namespace {

const std::string speed_header =
    "application,gpus,nodes,batch_size,micro_steps,pass_s,sync_s,steps_to_target\n";

// A pass of 10 ms and 1 ms a sample, at most 16 of them; reductions of 2 ms inside, 20 ms across.
const std::string speed_rows =
    "a,1,1,16,1,0.026,0,4000\n"
    "a,1,1,64,4,0.026,0,1000\n"
    "a,2,1,16,1,0.02,0.002,4000\n"
    "a,2,1,32,1,0.028,0.002,2000\n"
    "a,4,1,64,1,0.028,0.002,1000\n"
    "a,8,2,64,1,0.038,0.020,1000\n"
    "a,16,4,64,1,0.044,0.030,1000\n";

std::vector<ElasticApplication> speeds(const ScratchFolder& folder, const std::string& text) {
  return read_elastic_speeds(folder.add("speeds.csv", text));
}

TEST_CASE("steps between measured placements are read on straight lines", "[elastic]") {
  const ScratchFolder folder("elastic_steps");
  const ElasticApplication a = speeds(folder, speed_header + speed_rows).at(0);
  CHECK(a.name() == "a");
  constexpr std::int64_t ms = 1'000'000'000;
  CHECK(a.step_ps(1, 1, 16) == 26 * ms);
  CHECK(a.step_ps(1, 1, 64) == 4 * 26 * ms);  // four passes
  CHECK(a.step_ps(2, 1, 32) == 28 * ms);
  CHECK(a.step_ps(2, 1, 24) == 24 * ms);  // a share between two
  CHECK(a.step_ps(2, 1, 64) == 54 * ms);  // two passes, one reduction
  CHECK(a.step_ps(3, 1, 48) == 28 * ms);  // GPUs between two
  CHECK(a.step_ps(8, 2, 64) == 38 * ms);
  // A share of 6: 18 * 6 / 8 and 14 * 6 / 4 ms, and half of 20 and 30.
  CHECK(a.step_ps(12, 3, 64) == 42'250 * ms / 1'000);
  CHECK(a.step_ps(16, 5, 64) == a.step_ps(16, 4, 64));
  CHECK(a.step_ps(2, 2, 32) == a.step_ps(8, 2, 128));  // the fewest across stand in
  CHECK(a.most_gpus(64) == 16);
  CHECK(a.most_gpus(16) == 4);  // no share below 4 was measured
  CHECK(a.has_batch(16));
  CHECK(!a.has_batch(65));
}

TEST_CASE("steps to the target lie between those of measured batches", "[elastic]") {
  const ScratchFolder folder("elastic_batches");
  const ElasticApplication a = speeds(folder, speed_header + speed_rows).at(0);
  CHECK(a.batches() == std::vector<std::int64_t>{16, 19, 23, 27, 32, 38, 45, 54, 64});
  CHECK(a.steps_to_target(16) == 4000);
  CHECK(a.steps_to_target(32) == 2000);
  CHECK(a.steps_to_target(24) == 2667);  // 64,000 samples in all, whatever the batch
  // A fixed batch takes exactly its steps.
  for (const std::int64_t batch : a.batches()) {
    const std::int64_t steps = a.steps_to_target(batch), worth = step_worth(a, batch);
    CHECK((steps - 1) * worth < elastic_work);
    CHECK(steps * worth >= elastic_work);
  }
}

TEST_CASE("measured steps that cannot be are refused", "[elastic]") {
  const ScratchFolder folder("elastic_bad_speeds");
  const auto refused = [&](const std::string& row) {
    const std::string text =
        error_text([&] { speeds(folder, speed_header + speed_rows + row + "\n"); });
    return text.substr(text.find("speeds.csv"));
  };
  const auto found = [](const std::string& column, const std::string& value) {
    return "speeds.csv: line 9, column " + column + ": found \"" + value + "\"";
  };
  CHECK(refused("a,0,1,16,1,0.1,0,4000").starts_with(found("gpus", "0")));
  CHECK(refused("a,1.5,1,16,1,0.1,0,4000").starts_with(found("gpus", "1.5")));
  CHECK(refused("a,2,3,16,1,0.1,0,4000").starts_with(found("nodes", "3")));
  CHECK(refused("a,32,8,16,1,0.1,0,4000").starts_with(found("batch_size", "16")));
  CHECK(refused("a,2,1,16,0,0.1,0,4000").starts_with(found("micro_steps", "0")));
  CHECK(refused("a,2,1,16,1,-1,0,4000").starts_with(found("pass_s", "-1")));
  CHECK(refused("a,2,1,16,1,1e12,0,4000").starts_with(found("pass_s", "1e12")));
  CHECK(refused("a,2,1,16,1,0.1,0.1,4000").starts_with(found("sync_s", "0.1")));
  CHECK(refused("a,2,1,16,1,x,0.1,4000").starts_with(found("pass_s", "x")));
  CHECK(refused("a,2,1,16,1,0.1,0,4001").starts_with(found("steps_to_target", "4001")));
  CHECK(refused(",2,1,16,1,0.1,0,4000").starts_with(found("application", "")));
  CHECK(refused("b,8,2,16,1,0.1,0,4000") ==
        "speeds.csv: b: found no step on one node; expected one at least");
  CHECK(refused("a,1,1,128,8,0.026,0,1001") ==
        "speeds.csv: a: found more steps at a batch of 128 than at 64; expected no more steps as "
        "the batch grows");
  CHECK(error_text([&] { speeds(folder, "application,gpus\na,1\n"); }).find("nodes") !=
        std::string::npos);
}

TEST_CASE("elastic jobs are read as gangs, and get ranges", "[elastic]") {
  const ScratchFolder folder("elastic_jobs");
  const auto applications = speeds(folder, speed_header + speed_rows);
  const std::string header = "workload,job,submit_s,application,gpus,batch_size\n";
  const auto read = [&](const std::string& rows) {
    return read_elastic_jobs(folder.add("jobs.csv", header + rows), "2", applications);
  };
  auto jobs = read("2,x,7,a,4,32\n1,y,3,a,1,16\n2,z,5.5,a,1,64\n");
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].id == "z");
  CHECK(jobs[0].submit.us == 5'500'000);
  CHECK(jobs[1].gpus == 4);
  CHECK(jobs[1].least == 4);
  CHECK(jobs[1].most == 4);
  CHECK(!jobs[1].free_batch);
  free_sizes(jobs, applications, 12, false);
  CHECK(jobs[0].most == 1);
  CHECK(jobs[1].least == 1);
  CHECK(jobs[1].most == 8);
  free_sizes(jobs, applications, 12, true);
  CHECK(jobs[1].most == 12);
  CHECK(jobs[1].free_batch);
  const auto refused = [&](const std::string& rows) {
    const std::string text = error_text([&] { read(rows); });
    return text.substr(text.find("jobs.csv"));
  };
  const auto found = [](const std::string& column, const std::string& value) {
    return "jobs.csv: line 2, column " + column + ": found \"" + value + "\"";
  };
  CHECK(refused("2,x,7,b,4,32\n").starts_with(found("application", "b")));
  CHECK(refused("2,x,7,a,4,65\n").starts_with(found("batch_size", "65")));
  CHECK(refused("2,x,7,a,17,64\n").starts_with(found("gpus", "17")));
  CHECK(refused("2,x,-7,a,4,64\n").starts_with(found("submit_s", "-7")));
  CHECK(refused("2,,7,a,4,64\n").starts_with(found("job", "")));
  const std::string twice = refused("2,x,7,a,4,64\n2,x,8,a,4,64\n");
  CHECK(twice.starts_with("jobs.csv: line 3, column job: found \"x\""));
  CHECK(refused("1,x,7,a,4,64\n") == "jobs.csv: found no jobs; expected jobs of 2");
}

}  // namespace
}  // namespace orrery
