// SPDX-License-Identifier: Apache-2.0
// Holds clusters that break to what Meta published of its research clusters (arXiv 2410.21680).
#include <array>
#include <catch2/catch.hpp>

#include "sim/engine/cluster/fleet_run.h"
#include "sim/outcome/fleet/job_months.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

constexpr std::int64_t hour = INT64_C(3'600'000'000);

// So many jobs of so many GPUs for `days`, with 64 spare hosts, hourly saves.
FleetRecord run_jobs(const char* profile_name, int jobs, std::int32_t gpus, std::int64_t days,
                     std::uint64_t seed, const char* lemons_of = nullptr) {
  const ReliabilityProfile profile = load_reliability(profile_name);
  const Cluster cluster = load_cluster("a100-4xhdr200", std::int64_t{jobs} * gpus + 512);
  FleetQuestion question;
  question.shape = slot_shape(cluster.fabric, cluster.gpus, 8);
  question.works = {recorded_work(profile, seconds(3600))};
  question.breakdowns = breakdown_plan(cluster, profile);
  question.breakdowns.spare_hosts = 64;
  if (lemons_of != nullptr)
    question.breakdowns.lemons = lemon_hosts(load_reliability(lemons_of), question.shape.hosts);
  question.horizon.us = days * 24 * hour;
  question.seed = seed;
  ClusterJobs list;
  for (int i = 0; i < jobs; ++i)
    list.jobs.push_back({.length = most_fleet_time, .limit = most_fleet_time, .gpus = gpus});
  return run_fleet(list, question);
}

double hours_between_stops(const FleetRecord& record, std::int32_t gpus) {
  std::int64_t stops = 0;
  for (const JobRecord& job : record.jobs) stops += job.stops;
  return static_cast<double>(record.use.held) / hour / gpus / static_cast<double>(stops);
}

// Published: 7.9 h of jobs of 1,024 GPUs and 47.7 days of 8, a ratio of 145 where hosts alone make
// 128: no rate of a host meets both. The profile is of the larger jobs; the smaller are 13% off.
TEST_CASE("jobs of RSC-1 fail as often as Meta says", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  const double large = hours_between_stops(run_jobs("rsc1-a100-jobs", 8, 1024, 400, seed), 1024);
  INFO("1,024 GPUs: " << large << " h");
  CHECK(large == Approx(7.9).epsilon(0.05));
  const double small = hours_between_stops(run_jobs("rsc1-a100-jobs", 512, 8, 400, seed), 8) / 24;
  INFO("8 GPUs: " << small << " days");
  CHECK(small == Approx(47.7).epsilon(0.18));
}

// Lemons do not bring the ratio of both nearer to Meta's: on the same hosts whoever has more of
// them meets more lemons. Both times grow by a tenth to a third, for lemons that come back from
// repairs stand by as spare hosts, where they stop nobody.
TEST_CASE("lemons of RSC-1 lengthen times between stops of all sizes alike", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::array<double, 2> large{}, small{};
  const std::array<const char*, 2> lemons = {nullptr, "rsc1-a100"};
  for (std::size_t i = 0; i < 2; ++i) {
    large[i] = hours_between_stops(run_jobs("rsc1-a100", 8, 1024, 1600, seed, lemons[i]), 1024);
    small[i] = hours_between_stops(run_jobs("rsc1-a100", 1024, 8, 1600, seed, lemons[i]), 8);
  }
  INFO("1,024 GPUs: " << large[0] << " h, with lemons " << large[1] << "; 8 GPUs: " << small[0] / 24
                      << " days, with lemons " << small[1] / 24);
  CHECK(large[1] > large[0]);
  CHECK(large[1] < 1.5 * large[0]);
  CHECK(small[1] / large[1] == Approx(small[0] / large[0]).epsilon(0.03));
}

// Above 0.9 of runs of 2,048 to 4,096 GPUs with hourly saves, by the rate at which hosts fail.
TEST_CASE("large runs of RSC-1 keep more than nine tenths of their time", "[fleet]") {
  for (const std::int32_t gpus : {2048, 4096}) {
    const FleetRecord record = run_jobs("rsc1-a100", 1, gpus, 365, fresh(23));
    const double ratio = static_cast<double>(record.use.work.useful + record.use.work.slowed) /
                         (1e6 * static_cast<double>(record.use.held));
    INFO(gpus << " GPUs: " << ratio);
    CHECK(ratio > 0.9);
    CHECK(ratio < 0.985);
  }
}

}  // namespace
}  // namespace orrery
