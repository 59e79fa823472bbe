// SPDX-License-Identifier: Apache-2.0
// Tests conservative backfilling: nobody starts after a promise, and nobody who comes later
// matters.
#include <catch2/catch.hpp>

#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

std::vector<FleetQuestion> conservative_questions(std::int32_t hosts) {
  std::vector<FleetQuestion> out;
  for (const JobPlace place : {JobPlace::pool, JobPlace::pack, JobPlace::spread,
                               JobPlace::least_level, JobPlace::random}) {
    FleetQuestion question;
    question.shape = place == JobPlace::pool ? pool_shape(hosts * 8) : small_cluster(hosts);
    question.policy = {JobOrder::fifo, JobFit::conservative, place};
    out.push_back(question);
  }
  return out;
}

TEST_CASE("law: conservative breaks no promise, and jobs and time are conserved", "[fleet]") {
  const std::uint64_t seed = fresh(51);
  INFO("seed " << seed);
  std::size_t promised = 0, earlier = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const ClusterJobs list = random_jobs(seed + round, 250, 64, round % 2 == 1);
    for (const FleetQuestion& question : conservative_questions(8)) {
      const FleetRecord record = run_fleet(list, question);
      GpuMicros held = 0;
      for (std::size_t i = 0; i < list.jobs.size(); ++i) {
        const JobRecord& r = record.jobs[i];
        REQUIRE(r.start >= list.jobs[i].submit);
        REQUIRE(r.end == r.start + list.jobs[i].length);
        held += static_cast<GpuMicros>(list.jobs[i].gpus) * list.jobs[i].length.us;
        if (r.promise == fleet_never) continue;
        ++promised;
        REQUIRE(r.start <= r.promise);
        earlier += r.start < r.promise ? 1 : 0;
      }
      CHECK(record.use.held == held);
    }
  }
  CHECK(promised > 5000);
  CHECK(earlier > 1000);
}

// Where limits are exact an older job starts as if no younger one came.
TEST_CASE("law: nobody is delayed by jobs that come later, under conservative", "[fleet]") {
  const std::uint64_t seed = fresh(52);
  INFO("seed " << seed);
  std::size_t passed = 0;
  for (std::uint64_t round = 0; round < 10; ++round) {
    const ClusterJobs all = random_jobs(seed + round, 200, 64, false);
    for (const FleetQuestion& question : conservative_questions(8)) {
      const FleetRecord record = run_fleet(all, question);
      for (const std::size_t count : {60U, 120U, 180U}) {
        ClusterJobs first = all;
        first.jobs.resize(count);
        const FleetRecord alone = run_fleet(first, question);
        for (std::size_t i = 0; i < count; ++i)
          REQUIRE(alone.jobs[i].start == record.jobs[i].start);
      }
      for (std::size_t i = 1; i < all.jobs.size(); ++i)
        passed += record.jobs[i].start < record.jobs[i - 1].start ? 1 : 0;
    }
  }
  CHECK(passed > 500);
}

// Each starts at the first instant at which older ones leave it room, as a search over all
// instants finds it.
TEST_CASE("conservative gives each job the first start that older ones leave it", "[fleet]") {
  const std::uint64_t seed = fresh(53);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 10; ++round) {
    ClusterJobs list = random_jobs(seed + round, 120, 40, false);
    for (ClusterJob& job : list.jobs) job.length.us += 1, job.limit = job.length;
    FleetQuestion question;
    question.shape = pool_shape(48);
    question.policy = {JobOrder::fifo, JobFit::conservative, JobPlace::pool};
    const FleetRecord record = run_fleet(list, question);
    const auto used = [&](std::int64_t at, std::size_t before) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < before; ++i)
        if (record.jobs[i].start.us <= at && at < record.jobs[i].end.us) sum += list.jobs[i].gpus;
      return sum;
    };
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      std::vector<std::int64_t> instants{job.submit.us};
      for (std::size_t k = 0; k < i; ++k) instants.push_back(record.jobs[k].end.us);
      std::int64_t first = INT64_MAX;
      for (const std::int64_t at : instants) {
        if (at < job.submit.us || at >= first) continue;
        bool fits = used(at, i) + job.gpus <= 48;
        for (std::size_t k = 0; k < i && fits; ++k) {
          const std::int64_t begin = record.jobs[k].start.us;
          if (begin > at && begin < at + job.length.us) fits = used(begin, i) + job.gpus <= 48;
        }
        if (fits) first = at;
      }
      REQUIRE(record.jobs[i].start.us == first);
    }
  }
}

}  // namespace
}  // namespace orrery
