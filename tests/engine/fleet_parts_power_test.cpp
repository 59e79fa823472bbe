// SPDX-License-Identifier: Apache-2.0
// Tests parts of accelerators under a limit of power: each is admitted by its share of what a busy
// accelerator draws above idle.
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/parts_case.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3600 * second;
constexpr std::int64_t idle = 100'000, busy = 700'000;

// A limit under which so many thousandths of accelerators may be busy.
FleetQuestion limited(FleetQuestion question, std::int64_t milli) {
  question.idle_milliwatts = idle;
  for (JobWork& work : question.works) work.milliwatts = busy;
  question.power_limit_milliwatts =
      idle * question.shape.gpus() + (busy - idle) * milli / whole_gpu;
  return question;
}

// There is room for all, and power for so many: they wait as on so many servers.
TEST_CASE("law: where power is short equal parts wait as on the servers that it feeds",
          "[fleet][parts]") {
  const std::uint64_t seed = fresh(44);
  INFO("seed " << seed);
  for (const std::int32_t k : {2, 4, 5, 8})
    for (const JobOrder order : {JobOrder::fifo, JobOrder::sjf, JobOrder::priority})
      for (const JobFit fit : {JobFit::block, JobFit::easy, JobFit::any}) {
        const std::int32_t servers = k + 1;
        const ClusterJobs whole =
            jobs_for_servers(seed + static_cast<std::uint64_t>(k), 500, servers);
        FleetQuestion other = sharing(order, fit, JobPlace::pack);
        other.shape = {.hosts = 4, .gpus_per_host = 2, .last_host_gpus = 2};
        other = limited(other, servers * whole_gpu / k);
        const FleetRecord plain = run_fleet(whole, with_servers(order, fit, servers));
        const FleetRecord fed = run_fleet(with_parts(whole, k), other);
        check_same_waits(whole, plain, fed);
        CHECK(fed.power.most_milliwatts == other.power_limit_milliwatts);
      }
}

TEST_CASE("law: parts and gangs keep a limit of power, and their time adds up", "[fleet][parts]") {
  const std::uint64_t seed = fresh(45);
  INFO("seed " << seed);
  std::int64_t later = 0, stopped = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    ClusterJobs list = jobs_with_parts(seed + round, 250);
    for (ClusterJob& job : list.jobs) job.preemptible = true;
    FleetQuestion open =
        sharing(round % 2 == 0 ? JobOrder::priority : JobOrder::fifo,
                std::vector{JobFit::block, JobFit::easy, JobFit::any}[round % 3], JobPlace::pack);
    open.policy.preempts = round % 4 == 0;
    open.works[0].save_steps = 30 * second;
    FleetQuestion question = limited(open, 20'000 + static_cast<std::int64_t>(round % 10) * 700);
    if (round % 5 == 0) {  // the limit falls by the hour, and jobs are stopped
      const std::int64_t high = question.power_limit_milliwatts;
      const std::int64_t low = limited(open, 20'000).power_limit_milliwatts;
      question.hours.limits = {high, low, high, low, high};
    }
    const FleetRecord record = run_fleet(list, question), free = run_fleet(list, open);
    REQUIRE(record.use.work.all() == record.use.held * 1'000'000);
    REQUIRE(record.power.most_milliwatts <= question.power_limit_milliwatts);
    REQUIRE(record.power.over == FleetTime{});
    for (const JobRecord& job : record.jobs) REQUIRE(job.end != fleet_never);
    later += record.last_end > free.last_end ? 1 : 0;
    stopped += record.power.suspended;
  }
  CHECK(later > 20);
  CHECK(stopped > 10);
}

TEST_CASE("law: a limit that is above all changes nothing for parts", "[fleet][parts]") {
  const std::uint64_t seed = fresh(46);
  INFO("seed " << seed);
  for (const JobFit fit : {JobFit::block, JobFit::easy, JobFit::any}) {
    const ClusterJobs list = jobs_with_parts(seed, 300);
    FleetQuestion question = sharing(JobOrder::priority, fit, JobPlace::pack);
    question.policy.preempts = true;
    question.works[0].save_steps = 30 * second;
    question = limited(question, 0);
    question.power_limit_milliwatts = 0;
    const FleetRecord open = run_fleet(list, question);
    question.power_limit_milliwatts = busy * question.shape.gpus();
    const FleetRecord wide = run_fleet(list, question);
    CHECK(open.power.nanojoules == wide.power.nanojoules);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(open.jobs[i].start == wide.jobs[i].start);
      REQUIRE(open.jobs[i].end == wide.jobs[i].end);
    }
  }
}

TEST_CASE("law: a promise of easy is kept where parts wait for power", "[fleet][parts]") {
  const std::uint64_t seed = fresh(47);
  INFO("seed " << seed);
  std::size_t promised = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    ClusterJobs list = jobs_with_parts(seed + round, 250);
    for (ClusterJob& job : list.jobs) {
      job.gpus = std::min(job.gpus, 2);
      job.submit.us /= 8;
    }
    const FleetRecord record =
        run_fleet(list, limited(sharing(JobOrder::fifo, JobFit::easy, JobPlace::pack), 3'500));
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      if (record.jobs[i].promise == fleet_never || !list.jobs[i].is_part()) continue;
      ++promised;
      REQUIRE(record.jobs[i].start <= record.jobs[i].promise);
    }
  }
  CHECK(promised > 100);
}

TEST_CASE("a part is stopped for the power of another one that has room", "[fleet][parts]") {
  ClusterJobs list;
  for (const int milli : {500, 400}) {
    ClusterJob job{.length = {hour}, .limit = {hour}};
    job.milli = static_cast<std::uint16_t>(milli);
    list.jobs.push_back(job);
  }
  list.jobs[1].submit.us = second;
  list.jobs[1].priority = 1;
  FleetQuestion question = sharing(JobOrder::priority, JobFit::easy, JobPlace::pack);
  question.policy.preempts = true;
  const FleetRecord record = run_fleet(list, limited(question, 600));
  CHECK(record.jobs[0].preemptions == 1);
  CHECK(record.jobs[1].start.us == second);
}

// Two halves have the power of one accelerator; with one of their own each has that of two.
TEST_CASE("a part that shares has power by its share, one that may not as a whole accelerator",
          "[fleet][parts]") {
  ClusterJobs list;
  for (int i = 0; i < 2; ++i) {
    ClusterJob job{.length = {hour}, .limit = {hour}};
    job.milli = 500;
    list.jobs.push_back(job);
  }
  for (const GpuShare share : {GpuShare::never, GpuShare::best_fit}) {
    FleetQuestion question = sharing(JobOrder::fifo, JobFit::easy, JobPlace::pack);
    question.policy.share = share;
    const FleetRecord record = run_fleet(list, limited(question, whole_gpu));
    CHECK(record.jobs[1].start.us == (share == GpuShare::never ? hour : 0));
  }
  list.jobs.front().milli = 501;
  const FleetRecord record =
      run_fleet(list, limited(sharing(JobOrder::fifo, JobFit::easy, JobPlace::pack), whole_gpu));
  CHECK(record.jobs[1].start.us == hour);
}

}  // namespace
}  // namespace orrery
