// SPDX-License-Identifier: Apache-2.0
// Tests what happens to named hosts: who stops, what is lost, and who comes back when.
#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/job_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3600 * second;

ClusterJob job_of(std::int32_t gpus, std::int64_t submit_h, std::int64_t hours) {
  return {
      .submit = {submit_h * hour}, .length = {hours * hour}, .limit = {hours * hour}, .gpus = gpus};
}

// Four hosts in two groups.
FleetQuestion four_hosts() {
  FleetQuestion question;
  question.shape = {.hosts = 4, .gpus_per_host = 8, .last_host_gpus = 8};
  question.shape.levels = {{"leaf group", 2}};
  question.works.front().save_steps = hour;  // steps of a millionth of a second, saved for nothing
  return question;
}

TEST_CASE("an incident stops whoever is on its hosts, and they come back", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(16, 0, 10), job_of(16, 0, 10)};  // hosts 0 and 1, hosts 2 and 3
  FleetQuestion question = four_hosts();
  question.breakdowns.incidents = {{"leaf group 0", {90 * hour / 60}, {6 * hour}, {0, 1}}};
  const FleetRecord record = run_fleet(list, question);
  // It falls back to its save of the first hour, and waits for the group to come back.
  CHECK(record.jobs[0].stops == 1);
  CHECK(record.jobs[0].end == FleetTime{(1 + 6) * hour + hour / 2 + 9 * hour});
  CHECK(record.jobs[1].stops == 0);
  CHECK(record.jobs[1].end == FleetTime{10 * hour});
  REQUIRE(record.incidents.size() == 1);
  const IncidentCount& count = record.incidents.front();
  CHECK(count.happened);
  CHECK(count.gpus == 16);
  CHECK(count.stopped == 1);
  CHECK(count.lost == static_cast<GpuMicros>(16) * hour / 2);
  CHECK(count.waited == static_cast<GpuMicros>(16) * 6 * hour);
  CHECK(record.use.repair == static_cast<GpuMicros>(16) * 6 * hour);
  // Found half an hour later, that half hour is lost as well.
  question.breakdowns.incidents.front().latency = {hour / 2};
  const FleetRecord late = run_fleet(list, question);
  CHECK(late.jobs[0].end == record.jobs[0].end);
  CHECK(late.incidents.front().lost == static_cast<GpuMicros>(16) * hour);
  CHECK(late.incidents.front().waited == static_cast<GpuMicros>(16) * 11 * hour / 2);
}

TEST_CASE("a drain lets nobody start, and whoever runs saves", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(8, 0, 2), job_of(8, 0, 10), job_of(8, 2, 1)};  // hosts 0, 1; the third: 2
  FleetQuestion question = four_hosts();
  question.breakdowns.incidents = {{.name = "hosts 0-1",
                                    .at = {5 * hour + 7},
                                    .length = {3 * hour},
                                    .hosts = {0, 1},
                                    .drain = true,
                                    .announced = {4 * hour}}};
  std::map<FleetTime, std::int32_t> places;
  question.tell = [&](const FleetEvent& event) {
    if (event.kind == FleetEventKind::start) places[event.at] = event.place->front().host;
  };
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[0].end == FleetTime{2 * hour});   // it ends on a host that is to go
  CHECK(places.at({2 * hour}) == 2);                  // though host 0 is free
  CHECK(places.at({5 * hour + 7}) == 2);              // the second goes on elsewhere
  CHECK(record.jobs[1].end == FleetTime{10 * hour});  // and loses nothing
  CHECK(record.incidents.front().stopped == 1);
  CHECK(record.incidents.front().lost == 0);
  CHECK(record.incidents.front().waited == 0);
}

TEST_CASE("a host that is out for two reasons returns when both are over", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(32, 0, 4)};
  FleetQuestion question = four_hosts();
  question.breakdowns.incidents = {{"host 1", {hour}, {3 * hour}, {1}},
                                   {"hosts 0-1", {2 * hour}, {hour}, {0, 1}}};
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[0].end == FleetTime{7 * hour});
  CHECK(record.incidents[0].gpus == 8);
  CHECK(record.incidents[1].gpus == 8);  // host 1 was out
  CHECK(record.use.repair == static_cast<GpuMicros>(8) * 4 * hour);
}

TEST_CASE("spare hosts stand in, but for those that an incident took", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(24, 0, 4)};
  FleetQuestion question = four_hosts();
  question.breakdowns.kinds = {{"never", Hertz(0), 1, 1, seconds(1), {}, {}}};
  question.breakdowns.spare_hosts = 1;
  question.breakdowns.incidents = {{"host 0", {hour}, {10 * hour}, {0}}};
  CHECK(run_fleet(list, question).jobs[0].end == FleetTime{4 * hour});  // host 3 stands in
  question.breakdowns.incidents.push_back({"host 3", {hour / 2}, {2 * hour}, {3}});
  std::swap(question.breakdowns.incidents[0], question.breakdowns.incidents[1]);
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.incidents[0].gpus == 0);  // it stood by
  // It is back after two and a half hours, and works at once.
  CHECK(record.jobs[0].end == FleetTime{5 * hour + hour / 2});
}

class SlowPlaces final : public PlacePrices {
 public:
  PlacePrice price(std::uint16_t, const Grants&) override { return {.step_ps = 2'000'000'000'000}; }
};

TEST_CASE("Slurm's loops start nobody on hosts of a job that runs past its limit", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(32, 0, 1), job_of(32, 0, 1), job_of(8, 1, 1)};
  list.jobs[2].submit += FleetTime{hour / 2};  // the loops run
  FleetQuestion question = four_hosts();
  SlowPlaces prices;
  question.policy.fit = JobFit::slurm;
  question.prices = &prices;
  question.works[0].step_ps = 1'000'000'000'000;
  question.works[0].priced = true;
  for (ClusterJob& job : list.jobs) job.limit = job.length = {hour};
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[0].end >= FleetTime{2 * hour});
  CHECK(record.jobs[1].start >= record.jobs[0].end);
  CHECK(record.jobs[1].end != fleet_never);
}

TEST_CASE("law: incidents that do nothing change nothing", "[fleet]") {
  const std::uint64_t seed = fresh(47);
  INFO("seed " << seed);
  const ClusterJobs list = random_jobs(seed, 300, 64, true);
  FleetQuestion plain;
  plain.shape = small_cluster(8);
  plain.policy.fit = JobFit::easy;
  FleetQuestion neutral = plain;
  neutral.breakdowns.incidents = {{"host 2", {1000 * second}, {}, {2}},
                                  {"nowhere", {0}, {hour}, {}}};
  const FleetRecord one = run_fleet(list, plain), two = run_fleet(list, neutral);
  CHECK(one.events == two.events);
  CHECK(one.use.held == two.use.held);
  CHECK_FALSE(two.incidents.front().happened);
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    REQUIRE(one.jobs[i].start == two.jobs[i].start);
    REQUIRE(one.jobs[i].end == two.jobs[i].end);
    REQUIRE(one.jobs[i].promise == two.jobs[i].promise);
  }
}

Incident drawn_incident(RandomStream& random, std::int32_t hosts) {
  Incident one{.name = "incident",
               .at = {static_cast<std::int64_t>(random.below(400'000)) * second},
               .length = {static_cast<std::int64_t>(1 + random.below(30'000)) * second}};
  const auto first = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(hosts)));
  const auto many = static_cast<std::int32_t>(1 + random.below(6));
  for (std::int32_t host = first; host < std::min(hosts, first + many); ++host)
    one.hosts.push_back(host);
  one.drain = random.below(2) == 0;
  if (one.drain)
    one.announced = {static_cast<std::int64_t>(random.below(20'000)) * second};
  else
    one.latency = {
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(one.length.us)))};
  return one;
}

// Whoever decides, whatever breaks besides.
FleetQuestion drawn_question(std::uint64_t round, RandomStream& random) {
  FleetQuestion question;
  question.shape = {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 5};
  question.shape.levels = {{"domain", 2}, {"leaf group", 4}};
  question.seed = round;
  question.works.front().save_steps = hour;
  question.policy.place = round % 3 == 0 ? JobPlace::least_level : JobPlace::spread;
  const auto fit = round % 6;
  question.policy.fit = fit == 0   ? JobFit::block
                        : fit == 1 ? JobFit::conservative
                        : fit == 2 ? JobFit::rounds
                        : fit == 5 ? JobFit::slurm
                                   : JobFit::easy;
  if (fit == 4) question.policy.order = JobOrder::priority;
  question.policy.preempts = fit == 4 || fit == 2;
  if (round / 6 % 2 == 0) {
    question.breakdowns.kinds = {{"host", Hertz(1 / 9000.0), 1, 0.7, seconds(20'000), {}, {}},
                                 {"leaf", Hertz(1 / 90'000.0), 4, 1, seconds(9'000), {}, {}}};
    question.breakdowns.spare_hosts = static_cast<std::int32_t>(round / 6 % 3);
  }
  for (int i = 0; i < 40; ++i) question.breakdowns.incidents.push_back(drawn_incident(random, 12));
  return question;
}

TEST_CASE("law: with incidents accelerators are free, held or out, and all jobs end", "[fleet]") {
  const std::uint64_t seed = fresh(47);
  INFO("seed " << seed);
  std::int64_t stopped = 0, by_slurm = 0;
  for (std::uint64_t round = 0; round < 36; ++round) {
    RandomStream random(seed + round, 9);
    FleetQuestion question = drawn_question(round, random);
    const ClusterJobs list =
        drawn_jobs(seed + round, 200, 3000, {second}, [&](RandomStream& r, ClusterJob& job) {
          job.length.us = static_cast<std::int64_t>(r.below(40'000'000'000));
          job.limit = job.length;
          job.gpus = drawn_gpus(r, 60);
          job.priority = static_cast<std::int16_t>(r.below(3));
        });
    std::map<std::uint32_t, Grants> held;
    const auto out_now = [&](FleetTime now, std::int32_t host) {
      return std::any_of(question.breakdowns.incidents.begin(), question.breakdowns.incidents.end(),
                         [&](const Incident& one) {
                           return one.at + one.latency <= now && now < one.at + one.length &&
                                  std::find(one.hosts.begin(), one.hosts.end(), host) !=
                                      one.hosts.end();
                         });
    };
    question.tell = [&](const FleetEvent& event) {
      using enum FleetEventKind;
      if (event.kind == start) held[event.job] = *event.place;
      if (event.kind == end || event.kind == stop || event.kind == cut) held.erase(event.job);
    };
    question.look = [&](FleetTime now, const Slots& slots) {
      std::vector<std::int32_t> on(12);
      std::int64_t sum = 0, free = 0;
      for (const auto& [job, place] : held)
        for (const HostGrant& grant : place)
          for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
            on[static_cast<std::size_t>(host)] += grant.gpus;
      for (std::int32_t host = 0; host < 12; ++host) {
        const std::int32_t here = on[static_cast<std::size_t>(host)];
        sum += here;
        free += slots.free_of(host);
        REQUIRE(here + slots.free_of(host) <= slots.shape().gpus_of(host));
        if (!out_now(now, host)) continue;
        REQUIRE(here == 0);
        REQUIRE(slots.is_out(host));
      }
      REQUIRE(sum == slots.held());
      REQUIRE(free == slots.free());
      REQUIRE(slots.free() + slots.held() + slots.out() == slots.total());
    };
    const FleetRecord record = run_fleet(list, question);
    INFO("round " << round);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    GpuMicros useful = 0, lost = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      if (record.jobs[i].rejected) continue;
      REQUIRE(record.jobs[i].end != fleet_never);
      useful += static_cast<GpuMicros>(list.jobs[i].gpus) * list.jobs[i].length.us;
    }
    CHECK(record.use.work.useful == useful * 1'000'000);
    for (const IncidentCount& count : record.incidents) {
      stopped += count.stopped;
      if (question.policy.fit == JobFit::slurm) by_slurm += count.stopped;
      lost += count.lost;
      CHECK(count.waited >= 0);
    }
    CHECK(lost * 1'000'000 <= record.use.work.lost + record.use.work.preempted);
  }
  CHECK(stopped > 300);
  CHECK(by_slurm > 50);
}

}  // namespace
}  // namespace orrery
