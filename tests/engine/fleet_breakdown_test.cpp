// SPDX-License-Identifier: Apache-2.0
// Tests laws of clusters that break: nothing is lost uncounted, repairs queue as theory says, and
// what is free of charge changes nothing.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/job_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3600 * second;

SlotShape hosts_of_eight(std::int32_t hosts) {
  SlotShape shape{.hosts = hosts, .gpus_per_host = 8, .last_host_gpus = 8};
  shape.levels = {{"domain", 2}, {"leaf group", 4}};
  return shape;
}

ClusterJobs long_jobs(std::uint64_t seed, std::size_t count, std::size_t works) {
  return drawn_jobs(seed, count, 3000, {second}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(random.below(40'000'000'000));
    job.limit = job.length;
    job.gpus = drawn_gpus(random, 64);
    job.work = static_cast<std::uint16_t>(random.below(works));
    job.fate = random.below(5) == 0 ? JobFate::failed : JobFate::completed;
  });
}

// A step takes longer the more hosts a place has.
class HostPrices final : public PlacePrices {
 public:
  // Above leaf groups, if all their hosts sent as these do.
  explicit HostPrices(double load = 1.5) : load_(load) {}
  PlacePrice price(std::uint16_t, const Grants& place) override {
    std::int64_t hosts = 0;
    for (const HostGrant& grant : place) hosts += grant.hosts;
    return {.step_ps = 777'777'777'777 + hosts * 12'345'678'901,
            .trunks = {{}, {.busy = 0.3, .load = load_}}};
  }

 private:
  double load_;
};

std::vector<JobWork> several_works() {
  JobWork saving;
  saving.save_steps = hour;  // of one millionth of a second each
  saving.save_ps = 20'000'000'000'000;
  saving.write_ps = 90'000'000'000'000;
  saving.start.us = 60 * second;
  saving.restart.us = 300 * second;
  JobWork training;
  training.step_ps = 777'777'777'777;
  training.priced = true;
  training.save_steps = 1000;
  training.save_ps = 3'333'333'333'333;
  training.start_each.us = second / 10;
  training.own_failures = Hertz(1 / 20'000.0);
  training.planned_stops = Hertz(1 / 50'000.0);
  training.stop.us = 600 * second;
  return {JobWork{}, saving, training};
}

BreakdownPlan many_breakdowns() {
  BreakdownPlan plan;
  plan.kinds = {{"process", Hertz(1 / 8000.0), 0, 0, {}, {}, {}},
                {"host", Hertz(1 / 5000.0), 1, 0.7, seconds(20'000), {}, {}},
                {"corruption", Hertz(1 / 30'000.0), 1, 1, seconds(9'000), seconds(4'000), {}},
                {"domain", Hertz(1 / 40'000.0), 2, 1, seconds(30'000), {}, {}},
                {"leaf", Hertz(1 / 90'000.0), 4, 0.5, seconds(10'000), {}, seconds(1'000)}};
  return plan;
}

TEST_CASE("law: accelerator-time of a cluster that breaks adds up in whole numbers", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  HostPrices prices;
  std::int64_t stops = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    const ClusterJobs list = long_jobs(seed + round, 200, 3);
    FleetQuestion question;
    question.shape = hosts_of_eight(12);
    question.policy.fit = round % 2 == 0 ? JobFit::block : JobFit::easy;
    question.policy.place = round % 3 == 0 ? JobPlace::least_level : JobPlace::pack;
    question.seed = seed + round;
    question.works = several_works();
    question.prices = &prices;
    question.breakdowns = many_breakdowns();
    question.breakdowns.spare_hosts = static_cast<std::int32_t>(round % 4);
    question.breakdowns.repair_crews = static_cast<std::int32_t>(round % 3);
    question.look = [&](FleetTime, const Slots& slots) {
      std::int64_t free = 0;
      for (std::int32_t h = 0; h < slots.shape().hosts; ++h) free += slots.free_of(h);
      REQUIRE(free == slots.free());
      REQUIRE(slots.out() >= 0);
      REQUIRE(slots.held() >= 0);
      REQUIRE(slots.free() + slots.held() + slots.out() == slots.total());
    };
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    CHECK(use.held + use.short_of + use.scattered + use.idle + use.spare + use.repair == use.all);
    CHECK(use.work.all() == use.held * 1'000'000);
    TimelinePart sum;
    for (const TimelinePart& part : record.timeline.parts) {
      sum.held += part.held;
      sum.blocked += part.blocked;
      sum.idle += part.idle;
      sum.spare += part.spare;
      sum.repair += part.repair;
    }
    CHECK(record.timeline.parts.size() <= 64);
    CHECK(record.timeline.end == record.last_end);
    CHECK(sum.held == use.held);
    CHECK(sum.blocked == use.short_of + use.scattered);
    CHECK(sum.idle == use.idle);
    CHECK(sum.spare == use.spare);
    CHECK(sum.repair == use.repair);
    CHECK(use.work.lost >= 0);
    // Every step of a job that ended counts once.
    GpuPicos useful = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      const JobWork& work = question.works[job.work];
      if (record.jobs[i].rejected) continue;
      REQUIRE(record.jobs[i].end != fleet_never);
      useful += static_cast<GpuPicos>(steps_of(work, job.length)) * work.step_ps * job.gpus;
      stops += record.jobs[i].stops;
    }
    CHECK(use.work.useful + use.work.in_vain == useful);
  }
  CHECK(stops > 500);
}

TEST_CASE("law: what is free of charge changes nothing", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  const ClusterJobs list = long_jobs(seed, 300, 1);
  ClusterJobs saved = list;
  for (ClusterJob& job : saved.jobs) job.work = 1;
  FleetQuestion plain;
  plain.shape = hosts_of_eight(8);
  plain.policy.fit = JobFit::easy;
  FleetQuestion neutral = plain;
  neutral.works.push_back({.save_steps = 100 * second});  // a save that takes no time
  neutral.breakdowns.kinds = {{"never", Hertz(0), 1, 1, seconds(1), {}, {}}};
  neutral.power_limit_milliwatts = INT64_MAX;
  const FleetRecord one = run_fleet(list, plain), two = run_fleet(saved, neutral);
  CHECK(one.last_end == two.last_end);
  CHECK(one.use.work.useful == two.use.work.useful);
  CHECK(two.use.work.all() == two.use.work.useful + two.use.work.in_vain);
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    REQUIRE(one.jobs[i].start == two.jobs[i].start);
    REQUIRE(one.jobs[i].end == two.jobs[i].end);
  }
}

// Steps are several times as long where a job is placed badly, so that promises to heads cannot be
// kept; all jobs end all the same.
TEST_CASE("law: jobs that take longer than was expected break no count", "[fleet]") {
  class SlowPrices final : public PlacePrices {
   public:
    PlacePrice price(std::uint16_t, const Grants& place) override {
      return {.step_ps = 777'777'777'777 * (1 + std::ssize(place))};
    }
  };
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  SlowPrices prices;
  std::int64_t late = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    ClusterJobs list = long_jobs(seed + round, 300, 1);
    for (ClusterJob& job : list.jobs) {
      job.work = 2;
      job.length.us /= 20;
      job.limit = job.length;
    }
    FleetQuestion question;
    question.shape = hosts_of_eight(10);
    question.policy.fit = JobFit::easy;
    question.policy.place = round % 2 == 0 ? JobPlace::random : JobPlace::spread;
    question.works = several_works();
    question.works[2].own_failures = question.works[2].planned_stops = Hertz(0);
    question.prices = &prices;
    question.seed = seed + round;
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    for (const JobRecord& job : record.jobs)
      if (job.promise != fleet_never && job.start > job.promise) ++late;
  }
  CHECK(late > 10);
}

// No job starts that would pass a limit of power, whatever the policy; without one nothing changes.
TEST_CASE("law: a cluster never draws more than its limit", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 12; ++round) {
    const ClusterJobs list = long_jobs(seed + round, 200, 3);
    HostPrices prices;
    FleetQuestion question;
    question.shape = hosts_of_eight(12);
    question.policy.fit = round % 2 == 0 ? JobFit::block : JobFit::easy;
    question.works = several_works();
    question.works[0].milliwatts = 500'000;
    question.works[1].milliwatts = 700'000;
    question.works[2].milliwatts = 600'000;
    question.prices = &prices;
    question.idle_milliwatts = 100'000;
    question.seed = seed + round;
    if (round % 3 == 0) question.breakdowns = many_breakdowns();
    const FleetRecord open = run_fleet(list, question);
    question.power_limit_milliwatts = 96 * 400'000;
    const FleetRecord limited = run_fleet(list, question);
    CHECK(open.power.most_milliwatts > 96 * 400'000);
    CHECK(limited.power.most_milliwatts <= 96 * 400'000);
    CHECK(limited.use.work.all() == limited.use.held * 1'000'000);
    for (std::size_t i = 0; i < list.jobs.size(); ++i)
      REQUIRE((limited.jobs[i].rejected || limited.jobs[i].end != fleet_never));
  }
}

// Links that are never full change nothing, others slow somebody; shifts lose no more than chance,
// and chance no more than jobs that meet as badly as they can.
TEST_CASE("law: jobs that share links lose only where these are full", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  ClusterJobs list = long_jobs(seed, 150, 3);
  for (ClusterJob& job : list.jobs) job.work = 2;
  FleetQuestion question;
  question.shape = hosts_of_eight(16);
  question.policy.fit = JobFit::easy;
  question.works = several_works();
  const auto slowed = [&](double load, LinkMeeting how) {
    HostPrices prices(load);
    question.prices = &prices;
    question.meeting = how;
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    return record.use.work.slowed;
  };
  const GpuPicos open = slowed(0, LinkMeeting::random);
  CHECK(slowed(0.2, LinkMeeting::aligned) == open);
  // Jobs of one host send nothing above their leaf group.
  ClusterJobs small = list;
  for (ClusterJob& job : small.jobs) job.gpus = std::min(job.gpus, 8);
  std::swap(list, small);
  CHECK(slowed(4, LinkMeeting::aligned) == slowed(0, LinkMeeting::aligned));
  std::swap(list, small);
  const GpuPicos full = slowed(4, LinkMeeting::random);
  CHECK(full > open);
  CHECK(slowed(4, LinkMeeting::aligned) > full);
  CHECK(slowed(4, LinkMeeting::shifted) < full);
}

// Each host has a job that never ends; a host that breaks waits for one of c crews (the machine
// repair model: birth and death with (N - k) a up and min(k, c) m down).
TEST_CASE("law: hosts wait for crews as the machine repair model says", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  constexpr int hosts = 12;
  constexpr double fails = 1 / 50'000.0, mends = 1 / 20'000.0;
  for (const int crews : {1, 2, 4}) {
    std::vector<double> weight = {1};
    double sum = 1, out = 0;
    for (int k = 1; k <= hosts; ++k) {
      weight.push_back(weight.back() * (hosts - k + 1) * fails / (std::min(k, crews) * mends));
      sum += weight.back();
      out += k * weight.back();
    }
    std::vector<double> means;
    for (std::uint64_t part = 0; part < 20; ++part) {
      ClusterJobs list;
      for (int i = 0; i < hosts; ++i)
        list.jobs.push_back({.length = {most_fleet_time}, .limit = {most_fleet_time}, .gpus = 8});
      FleetQuestion question;
      question.shape = hosts_of_eight(hosts);
      question.works[0].save_steps = second;
      question.seed = seed + 100 * part + static_cast<std::uint64_t>(crews);
      question.breakdowns.kinds = {
          {"host", Hertz(hosts * fails), 1, 1, seconds(1 / mends), {}, {}}};
      question.breakdowns.repair_crews = crews;
      question.stop = [](FleetTime now) { return now.us > 10'000 * hour; };
      const FleetRecord record = run_fleet(list, question);
      means.push_back(static_cast<double>(record.use.repair) / static_cast<double>(record.use.all) *
                      hosts);
    }
    double mean = 0, square = 0;
    for (const double m : means) mean += m / 20;
    for (const double m : means) square += (m - mean) * (m - mean);
    const double error = std::sqrt(square / 19 / 20);
    INFO(crews << " crews: " << mean << " out, " << out / sum << " in theory, error " << error);
    CHECK(std::abs(mean - out / sum) < 4 * error + 0.02);  // 0.02: all are up at the start
  }
}

TEST_CASE("a run counts steps and saves", "[fleet]") {
  JobWork work;
  work.step_ps = 2 * 1'000'000'000'000;  // 2 s
  work.save_steps = 10;
  work.save_ps = 3 * 1'000'000'000'000;
  work.write_ps = 5 * 1'000'000'000'000;
  const JobRun run{.begin = {second}, .step_ps = work.step_ps, .done = 4, .saved = 4};
  CHECK(steps_of(work, {100 * second}) == 50);
  CHECK(end_of(work, run, 50) == FleetTime{(1 + 46 * 2 + 5 * 3) * second});
  const auto at = [&](std::int64_t s) { return reach_of(work, run, 50, {s * second}); };
  CHECK(at(0).steps == 4);
  CHECK(at(12).steps == 9);   // 5 whole steps and half of one
  CHECK(at(13).steps == 10);  // the save begins
  CHECK(at(15).saves == 0);
  CHECK(at(16).saves == 1);
  CHECK(at(20).saved == 4);  // written 5 s later
  CHECK(at(21).saved == 10);
  CHECK(at(36).steps == 20);
  CHECK(at(44).saved == 20);
  CHECK(at(1000).steps == 50);
}

// The end of a job whose speed changes at given times, step by step: what is under way ends at the
// old speed.
FleetTime end_by_steps(const JobWork& work, std::int64_t steps, FleetTime begin,
                       const std::vector<std::pair<FleetTime, std::int64_t>>& speeds) {
  GpuPicos now = begin.us * static_cast<GpuPicos>(1'000'000);
  for (std::int64_t step = 1; step <= steps; ++step) {
    std::int64_t step_ps = work.step_ps;
    for (const auto& [at, ps] : speeds)
      if (at.us * static_cast<GpuPicos>(1'000'000) < now || (at == begin && step == 1) ||
          at.us * static_cast<GpuPicos>(1'000'000) == now)
        step_ps = ps;
    now += step_ps;
    if (work.save_steps > 0 && step % work.save_steps == 0) now += work.save_ps;
  }
  return {static_cast<std::int64_t>((now + 999'999) / 1'000'000)};
}

// Speeds change at random; whoever is asked in between gets what the parts add up to.
TEST_CASE("law: a run at changing speeds loses no step and no time", "[fleet]") {
  RandomStream random(fresh(23), 3);
  for (int round = 0; round < 3000; ++round) {
    JobWork work;
    work.step_ps = static_cast<std::int64_t>(1 + random.below(5'000'000'000'000));
    work.save_steps = static_cast<std::int64_t>(random.below(2) * (1 + random.below(20)));
    work.save_ps =
        work.save_steps == 0 ? 0 : static_cast<std::int64_t>(random.below(9'000'000'000'000));
    work.write_ps = static_cast<std::int64_t>(random.below(9'000'000'000'000));
    const auto steps = static_cast<std::int64_t>(20 + random.below(100));
    JobRun run{.begin = {static_cast<std::int64_t>(random.below(10 * second))},
               .step_ps = work.step_ps};
    GpuPicos all = 0, useful = 0, saving = 0, lost = 0;
    const auto count = [&](const RunParts& parts) {
      all += parts.useful + parts.slowed + parts.saving + parts.starting + parts.lost;
      useful += parts.useful;
      saving += parts.saving;
      lost += parts.lost;
    };
    const FleetTime begin = run.begin;
    std::vector<std::pair<FleetTime, std::int64_t>> speeds;
    FleetTime now = run.begin;
    std::int64_t before = 0, saved = 0;
    for (int change = 0; change < 6; ++change) {
      now.us += static_cast<std::int64_t>(random.below(20 * second));
      if (now >= end_of(work, run, steps)) break;
      const RunReach reach = reach_of(work, run, steps, now);
      REQUIRE(reach.steps >= before);
      REQUIRE(reach.saved >= saved);
      REQUIRE(reach.saved <= reach.steps);
      before = reach.steps;
      saved = reach.saved;
      const auto step_ps =
          work.step_ps + static_cast<std::int64_t>(random.below(3'000'000'000'000));
      const JobRun next = at_other_speed(work, run, steps, now, step_ps);
      const RunReach boundary{.steps = next.done,
                              .saves = saves_between(work, run.done, next.done)};
      count(parts_of(work, run, boundary, next.done, now, next.lead_ps));
      // What was counted reaches to the end of what is under way.
      REQUIRE(all == now.us * static_cast<GpuPicos>(1'000'000) + next.lead_ps);
      REQUIRE(lost == 0);
      run = next;
      speeds.emplace_back(now, step_ps);
      REQUIRE(reach_of(work, run, steps, now).steps == before);
    }
    // One that changes at the very instant at which a step begins may fall on either side.
    const std::int64_t apart =
        end_of(work, run, steps).us - end_by_steps(work, steps, begin, speeds).us;
    REQUIRE(std::abs(apart) <= 1);
    if (random.below(2) == 0) {
      const FleetTime end = end_of(work, run, steps);
      count(parts_of(work, run, reach_of(work, run, steps, end), steps, end));
      CHECK(all == end.us * static_cast<GpuPicos>(1'000'000));
      CHECK(lost == 0);
      CHECK(useful == static_cast<GpuPicos>(steps) * work.step_ps);
      CHECK(saving == static_cast<GpuPicos>(saves_between(work, 0, steps)) * work.save_ps);
    } else {  // stopped: what was saved counts
      now.us += static_cast<std::int64_t>(random.below(10 * second));
      const RunReach reach = reach_of(work, run, steps, now);
      count(parts_of(work, run, reach, reach.saved, now));
      CHECK(all == now.us * static_cast<GpuPicos>(1'000'000));
      CHECK(useful == static_cast<GpuPicos>(reach.saved) * work.step_ps);
    }
  }
}

}  // namespace
}  // namespace orrery
