// SPDX-License-Identifier: Apache-2.0
// Tests laws of a store that jobs share: nothing is read twice or not at all, nobody is faster than
// its hosts, and jobs that never meet notice nothing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/job_run.h"
#include "sim/engine/losses/shared_reads.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3600 * second;
constexpr std::int64_t gigabyte = 1'000'000'000;

StoreRead read_of(std::int64_t seconds, std::int64_t bytes_per_s) {
  return {.alone = {seconds * second}, .after = {0}, .bytes_per_s = bytes_per_s};
}

// Runs reads to their ends: (begin, read) each.
std::map<std::uint32_t, FleetTime> ends_of(
    std::int64_t store, const std::vector<std::pair<FleetTime, StoreRead>>& asked) {
  SharedReads reads(store);
  std::map<std::uint32_t, FleetTime> ends;
  for (std::size_t i = 0; i < asked.size(); ++i)
    reads.ask(static_cast<std::uint32_t>(i), asked[i].first, asked[i].second);
  while (reads.next() != fleet_never) {
    for (const SharedReads::Read& read : reads.pass_to(reads.next())) ends[read.job] = read.end;
    reads.share();
  }
  return ends;
}

TEST_CASE("law: shares of a store are max-min fair", "[fleet]") {
  RandomStream random(fresh(41), 0);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> most(1 + random.below(12));
    for (std::int64_t& m : most) m = static_cast<std::int64_t>(1 + random.below(1000));
    const auto all = static_cast<std::int64_t>(most.size() + random.below(6000));
    const std::vector<std::int64_t> shares = fair_shares(most, all);
    std::int64_t sum = 0, asked = 0, largest = 0;
    for (std::size_t i = 0; i < most.size(); ++i) {
      REQUIRE(shares[i] >= 1);
      REQUIRE(shares[i] <= most[i]);
      sum += shares[i];
      asked += most[i];
      largest = std::max(largest, shares[i]);
    }
    REQUIRE(sum == std::min(all, asked));
    // Whoever gets less than it can take has as much as anybody, but for what a division leaves.
    for (std::size_t i = 0; i < most.size(); ++i)
      REQUIRE((shares[i] == most[i] || shares[i] >= largest - 1));
  }
}

TEST_CASE("law: n equal reads at once take n times as long where the store binds", "[fleet]") {
  RandomStream random(fresh(42), 0);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<std::int64_t>(1 + random.below(40));
    const auto rate = static_cast<std::int64_t>(1 + random.below(500)) * gigabyte;
    const auto alone = static_cast<std::int64_t>(1 + random.below(900));
    const FleetTime begin{static_cast<std::int64_t>(random.below(1'000'000'000))};
    const std::vector<std::pair<FleetTime, StoreRead>> asked(static_cast<std::size_t>(n),
                                                             {begin, read_of(alone, rate)});
    for (const auto& [job, end] : ends_of(n * rate, asked))  // enough for all
      REQUIRE(end == begin + FleetTime{alone * second});
    // Shares are whole bytes a second, and ends whole microseconds.
    const auto near = [&](FleetTime end, std::int64_t times, std::int64_t store) {
      const std::int64_t us = times * alone * second;
      return std::abs((end - begin).us - us) <= 1 + us / (store / n - 1);
    };
    for (const auto& [job, end] : ends_of(rate, asked))  // as much as one can take
      REQUIRE(near(end, n, rate));
    for (const auto& [job, end] : ends_of(rate / 2, asked))  // less: one alone is slower, too
      REQUIRE(near(end, 2 * n, rate / 2));
  }
}

// At random times of random sizes: whoever reads never gets more than its hosts take, all together
// never more than the store gives, and all get all of their bytes, though they end at other times.
TEST_CASE("law: bytes of a shared store are conserved", "[fleet]") {
  RandomStream random(fresh(43), 0);
  int slower = 0, dropped = 0;
  for (int round = 0; round < 300; ++round) {
    const std::int64_t store = static_cast<std::int64_t>(1 + random.below(400)) * gigabyte;
    SharedReads reads(store);
    std::map<std::uint32_t, __int128> bytes;  // times 10^6, by job
    std::map<std::uint32_t, StoreRead> asked;
    std::map<std::uint32_t, FleetTime> begins;
    std::map<std::uint32_t, std::int64_t> rates;
    for (std::uint32_t job = 0; job < 30; ++job) {
      asked[job] = read_of(static_cast<std::int64_t>(1 + random.below(300)),
                           static_cast<std::int64_t>(1 + random.below(200)) * gigabyte);
      begins[job] = {static_cast<std::int64_t>(random.below(600'000'000))};
      reads.ask(job, begins[job], asked[job]);
    }
    FleetTime now;
    std::set<std::uint32_t> over;
    const auto look = [&](const SharedReads::Read& read) {
      REQUIRE(read.bytes_per_s <= read.asked.bytes_per_s);
      rates[read.job] = read.bytes_per_s;
    };
    while (reads.next() != fleet_never) {
      const FleetTime at = reads.next();
      std::int64_t sum = 0;
      for (const auto& [job, rate] : rates) {
        bytes[job] += static_cast<__int128>(rate) * (at - now).us;
        sum += rate;
      }
      REQUIRE(sum <= store);
      now = at;
      for (const SharedReads::Read& read : reads.pass_to(at)) {
        over.insert(read.job);
        rates.erase(read.job);
        REQUIRE(read.end == at);
        const FleetTime took = read.end - read.begin;
        REQUIRE(took >= read.asked.alone);
        slower += took > read.asked.alone ? 1 : 0;
        // All of its bytes, and no more than a microsecond rounds up.
        const __int128 size = static_cast<__int128>(read.asked.bytes_per_s) * read.asked.alone.us;
        REQUIRE(bytes[read.job] >= size);
        REQUIRE(bytes[read.job] < size + read.asked.bytes_per_s);
      }
      if (random.below(10) == 0) {  // one is stopped
        const auto job = static_cast<std::uint32_t>(random.below(30));
        dropped += over.contains(job) ? 0 : 1;
        reads.forget(job);
        rates.erase(job);
        over.insert(job);
      }
      reads.share();
      reads.each(look);
    }
    REQUIRE(over.size() == 30);
  }
  CHECK(slower > 1000);
  CHECK(dropped > 100);
}

// The first reads nothing, the second as it starts, the third once it was stopped.
std::vector<JobWork> works_that_read() {
  JobWork replica;
  replica.save_steps = 1;
  replica.start.us = 200 * second;
  replica.first_read = {{150 * second}, {50 * second}, 20 * gigabyte};
  JobWork training;
  training.step_ps = 777'777'777'777;
  training.save_steps = 1000;
  training.save_ps = 3'333'333'333'333;
  training.write_ps = 60'000'000'000'000;
  training.start_each.us = second / 10;
  training.restart.us = 900 * second;
  training.later_read = {{600 * second}, {100 * second}, 50 * gigabyte};
  training.own_failures = Hertz(1 / 20'000.0);
  training.planned_stops = Hertz(1 / 50'000.0);
  training.stop.us = 600 * second;
  return {JobWork{.save_steps = hour}, replica, training};
}

FleetQuestion question_of(std::uint64_t round) {
  FleetQuestion question;
  question.seed = round;
  question.shape = {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 8};
  question.shape.levels = {{"domain", 2}, {"leaf group", 4}};
  question.works = works_that_read();
  question.policy.fit =
      std::vector{JobFit::easy, JobFit::block, JobFit::conservative, JobFit::rounds}[round % 4];
  if (round % 8 == 0) question.policy.order = JobOrder::priority;
  if (round % 8 == 0) question.policy.preempts = true;
  question.breakdowns.kinds = {{"process", Hertz(1 / 8000.0), 0, 0, {}, {}, {}},
                               {"host", Hertz(1 / 5000.0), 1, 0.7, seconds(20'000), {}, {}},
                               {"leaf", Hertz(1 / 9000.0), 4, 0.5, seconds(10'000), {}, {}}};
  question.breakdowns.spare_hosts = static_cast<std::int32_t>(round % 3);
  if (round % 5 == 0) question.horizon.us = 60 * hour;
  return question;
}

bool same(const FleetRecord& a, const FleetRecord& b) {
  const auto of = [](const JobRecord& j) {
    return std::tuple(j.start, j.end, j.promise, j.stops, j.preemptions, j.waited_again);
  };
  return a.events == b.events && a.last_end == b.last_end && a.use.held == b.use.held &&
         a.use.work.useful == b.use.work.useful && a.use.work.lost == b.use.work.lost &&
         a.use.work.starting == b.use.work.starting &&
         std::equal(a.jobs.begin(), a.jobs.end(), b.jobs.begin(), b.jobs.end(),
                    [&](const JobRecord& x, const JobRecord& y) { return of(x) == of(y); });
}

TEST_CASE("law: a store that has enough for all changes no byte", "[fleet]") {
  const std::uint64_t seed = fresh(44);
  INFO("seed " << seed);
  std::int64_t reads = 0;
  for (std::uint64_t round = 0; round < 16; ++round) {
    FleetQuestion question = question_of(round);
    const ClusterJobs list = jobs_of_works(seed + round, 200, 64, 3);
    const FleetRecord alone = run_fleet(list, question);
    CHECK(alone.reads.count == 0);
    question.store_bytes_per_s = 12'000 * gigabyte;
    const FleetRecord shared = run_fleet(list, question);
    CHECK(same(alone, shared));
    CHECK(shared.reads.took == shared.reads.alone);
    CHECK(shared.reads.waited == 0);
    reads += shared.reads.count;
  }
  CHECK(reads > 1000);
}

// Also one that binds, if no two read at a time.
TEST_CASE("law: jobs that read one at a time notice no other", "[fleet]") {
  ClusterJobs list;
  for (std::int64_t i = 0; i < 5; ++i)
    list.jobs.push_back({.submit = {i * 250 * second},
                         .length = {hour},
                         .limit = {hour},
                         .gpus = 8,
                         .row = static_cast<std::uint32_t>(i + 1),
                         .work = 1});
  FleetQuestion question = question_of(1);
  question.breakdowns = {};
  const FleetRecord alone = run_fleet(list, question);
  question.store_bytes_per_s = 20 * gigabyte;
  const FleetRecord shared = run_fleet(list, question);
  CHECK(same(alone, shared));
  CHECK(shared.reads.count == 5);
  CHECK(shared.reads.most == 1);
  // All at once they read for five times as long: 600 s more of what is held.
  for (ClusterJob& job : list.jobs) job.submit = {};
  const FleetRecord storm = run_fleet(list, question);
  CHECK(storm.reads.most == 5);
  CHECK(storm.reads.longest == FleetTime{5 * 150 * second});
  CHECK(storm.reads.waited == 5 * 8 * 600 * second);
  CHECK(storm.last_end == FleetTime{(200 + 600 + 3600) * second});
  CHECK(storm.use.work.starting == static_cast<GpuPicos>(5) * 8 * 800 * second * 1'000'000);
}

// A job of higher priority has its accelerators for an hour. Then it saves, starts, reads for 600
// s, twice as long where the store gives half of what it could take, and warms up.
TEST_CASE("whoever was stopped by another job reads its state before it goes on", "[fleet]") {
  ClusterJobs list;
  list.jobs = {{.length = {10 * hour}, .limit = {10 * hour}, .gpus = 96, .work = 2},
               {.submit = {hour}, .length = {hour}, .limit = {hour}, .gpus = 96, .priority = 1}};
  FleetQuestion question = question_of(0);
  question.breakdowns = {};
  question.horizon = fleet_never;
  question.works[2].own_failures = question.works[2].planned_stops = {};
  for (const std::int64_t store : {std::int64_t{0}, 50 * gigabyte, 25 * gigabyte}) {
    question.store_bytes_per_s = store;
    const FleetRecord record = run_fleet(list, question);
    REQUIRE(record.jobs[0].preemptions == 1);
    const std::int64_t read = store == 25 * gigabyte ? 1200 : 600;
    CHECK(record.reads.count == (store > 0 ? 1 : 0));
    // Twice it starts, in a tenth of a second for each; a save takes 3.333333 s.
    const GpuPicos us = 2 * 9'600'000 + (read + 100) * second + 3'333'333;
    CHECK(record.use.work.starting / 96 / 1'000'000 == us);
  }
}

// Alone that is a part of the stop: a store that gives half of what its hosts take makes it longer
// by as much.
TEST_CASE("a training reads its state after a planned stop, too", "[fleet]") {
  ClusterJobs list;
  list.jobs = {{.length = {100 * hour}, .limit = {100 * hour}, .gpus = 96, .work = 2}};
  FleetQuestion question = question_of(1);
  question.breakdowns = {};
  question.works[2].own_failures = {};
  question.works[2].stop.us = 900 * second;
  std::int64_t stops = 0;
  question.tell = [&](const FleetEvent& event) {
    if (event.kind == FleetEventKind::restart) stops += event.cause == "planned stop" ? 1 : 0;
  };
  const FleetRecord alone = run_fleet(list, question);
  REQUIRE(stops > 3);
  question.store_bytes_per_s = 50 * gigabyte;
  CHECK(same(alone, run_fleet(list, question)));
  stops = 0;
  question.store_bytes_per_s = 25 * gigabyte;
  const FleetRecord shared = run_fleet(list, question);
  CHECK(shared.reads.count == stops);
  CHECK(shared.reads.took == FleetTime{stops * 1200 * second});
  CHECK(shared.use.work.starting >= alone.use.work.starting);
}

TEST_CASE("law: accelerator-time adds up where jobs share a store", "[fleet]") {
  const std::uint64_t seed = fresh(45);
  INFO("seed " << seed);
  std::int64_t reads = 0, waited = 0, late = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    FleetQuestion question = question_of(round);
    const ClusterJobs list = jobs_of_works(seed + round, 200, 64, 3);
    const FleetRecord alone = run_fleet(list, question);
    question.store_bytes_per_s = 25 * gigabyte;
    GpuMicros held = 0;
    std::map<std::uint32_t, FleetTime> since;
    question.tell = [&](const FleetEvent& event) {
      using enum FleetEventKind;
      if (event.kind == start) since[event.job] = event.at;
      if (event.kind == stop || event.kind == end || event.kind == cut)
        held += static_cast<GpuMicros>(event.gpus) * (event.at - since.at(event.job)).us;
    };
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    CHECK(held == use.held);
    CHECK(use.work.all() == use.held * 1'000'000);
    CHECK(use.held + use.short_of + use.scattered + use.idle + use.spare + use.repair == use.all);
    CHECK(record.reads.took >= record.reads.alone);
    CHECK(use.work.lost >= 0);
    reads += record.reads.count;
    waited += static_cast<std::int64_t>(record.reads.waited / hour);
    late += record.last_end > alone.last_end ? 1 : 0;
    if (question.horizon != fleet_never) continue;
    GpuPicos useful = 0;  // every step of a job that ended counts once
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      const JobWork& work = question.works[job.work];
      REQUIRE((record.jobs[i].rejected || record.jobs[i].end != fleet_never));
      if (!record.jobs[i].rejected)
        useful += static_cast<GpuPicos>(steps_of(work, job.length)) * work.step_ps * job.gpus;
    }
    CHECK(use.work.useful + use.work.in_vain == useful);
  }
  CHECK(reads > 1000);
  CHECK(waited > 100);
  CHECK(late > 10);
}

}  // namespace
}  // namespace orrery
