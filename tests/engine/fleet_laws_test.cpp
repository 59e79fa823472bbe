// SPDX-License-Identifier: Apache-2.0
// Tests laws of shared clusters over random jobs: nothing is lost, nobody is delayed beyond a
// promise, queues wait as theory says.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/placer.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

std::vector<FleetQuestion> all_questions(std::int32_t hosts) {
  std::vector<FleetQuestion> out;
  for (const JobOrder order : {JobOrder::fifo, JobOrder::sjf})
    for (const JobFit fit : {JobFit::block, JobFit::easy})
      for (const JobPlace place :
           {JobPlace::pool, JobPlace::pack, JobPlace::spread, JobPlace::least_level,
            JobPlace::fragmentation, JobPlace::random}) {
        FleetQuestion question;
        question.shape = place == JobPlace::pool ? pool_shape(hosts * 8) : small_cluster(hosts);
        question.policy = {order, fit, place};
        out.push_back(question);
      }
  return out;
}

TEST_CASE("law: jobs and accelerator-time of a cluster are conserved", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const ClusterJobs list = random_jobs(seed + round, 300, 96, round % 2 == 1);
    for (FleetQuestion question : all_questions(12)) {
      std::int64_t at_work = 0;
      question.look = [&](FleetTime, const Slots& slots) {
        std::int64_t free = 0;
        for (std::int32_t h = 0; h < slots.shape().hosts; ++h) free += slots.free_of(h);
        REQUIRE(free == slots.free());
        at_work = slots.total() - free;
        REQUIRE(at_work >= 0);
      };
      const FleetRecord record = run_fleet(list, question);
      CHECK(at_work == 0);
      GpuMicros held = 0, waited = 0;
      for (std::size_t i = 0; i < list.jobs.size(); ++i) {
        const JobRecord& r = record.jobs[i];
        REQUIRE(r.start >= list.jobs[i].submit);
        REQUIRE(r.end == r.start + list.jobs[i].length);
        held += static_cast<GpuMicros>(list.jobs[i].gpus) * list.jobs[i].length.us;
        waited += (r.start - list.jobs[i].submit).us;
        if (question.shape.hosts > 1) REQUIRE(r.hosts >= (list.jobs[i].gpus + 7) / 8);
      }
      const FleetUse& use = record.use;
      CHECK(use.held == held);
      CHECK(use.held + use.short_of + use.scattered + use.idle == use.all);
      if (question.policy.place == JobPlace::pool) CHECK(use.scattered == 0);
    }
  }
}

TEST_CASE("law: one promise of easy is kept, and a head starts no later", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::size_t promised = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    const ClusterJobs list = random_jobs(seed + round, 250, 64, round % 2 == 1);
    for (const FleetQuestion& question : all_questions(8)) {
      if (question.policy.fit != JobFit::easy || question.policy.order != JobOrder::fifo) continue;
      for (const JobRecord& r : run_fleet(list, question).jobs)
        if (r.promise != fleet_never) {
          ++promised;
          REQUIRE(r.start <= r.promise);
        }
    }
  }
  CHECK(promised > 1000);
}

// All jobs are there at time 0, and whatever fits is started at once: Graham's bound for gangs.
TEST_CASE("law: what fits is started, and all is done within twice the least time", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 40; ++round) {
    ClusterJobs list = random_jobs(seed + round, 120, 40, false);
    double work = 0, longest = 0;
    for (ClusterJob& job : list.jobs) {
      job.submit = {};
      job.gpus = std::min(job.gpus, 32);  // half of the cluster at most
      work += static_cast<double>(job.length.us) * job.gpus;
      longest = std::max(longest, static_cast<double>(job.length.us));
    }
    FleetQuestion question;
    question.shape = pool_shape(64);
    question.policy = {JobOrder::fifo, JobFit::easy, JobPlace::pool};
    const double span = static_cast<double>(run_fleet(list, question).last_end.us);
    // No gang asks for more than half: while one waits, more than half of the cluster is held.
    CHECK(span <= 2 * work / 64 + longest);
  }
}

// Poisson arrivals, one GPU a job. Means of 20 parts of a long run give the standard error.
struct Queue {
  double mean = 0, error = 0;
};
Queue mean_wait(std::uint64_t seed, int servers, double load, bool exponential, std::size_t parts) {
  RandomStream random(seed, 2);
  ClusterJobs list;
  double at = 0;
  constexpr std::size_t of_part = 20'000;
  for (std::size_t i = 0; i < parts * of_part; ++i) {
    at += random.exponential(1 / (load * servers));
    const double length = exponential ? random.exponential(1) : (random.below(2) == 0 ? 0.5 : 1.5);
    ClusterJob job{.submit = {static_cast<std::int64_t>(at * 1e6)}};
    job.length.us = job.limit.us = static_cast<std::int64_t>(length * 1e6);
    list.jobs.push_back(job);
  }
  FleetQuestion question;
  question.shape = pool_shape(servers);
  question.policy.place = JobPlace::pool;
  const FleetRecord record = run_fleet(list, question);
  std::vector<double> means(parts, 0);
  for (std::size_t i = 0; i < list.jobs.size(); ++i)
    means[i / of_part] +=
        1e-6 * static_cast<double>((record.jobs[i].start - list.jobs[i].submit).us) / of_part;
  Queue out;
  for (const double m : means) out.mean += m / static_cast<double>(parts);
  double squares = 0;
  for (const double m : means) squares += (m - out.mean) * (m - out.mean);
  out.error = std::sqrt(squares / static_cast<double>(parts * (parts - 1)));
  return out;
}

// Erlang's C: the mean wait of M/M/c with a mean length of 1.
double erlang_wait(int servers, double load) {
  const double offered = load * servers;
  double term = 1, sum = 0;
  for (int k = 0; k < servers; ++k) {
    sum += term;
    term *= offered / (k + 1);
  }
  const double waits = term / (1 - load) / (sum + term / (1 - load));
  return waits / (servers * (1 - load));
}

TEST_CASE("law: queues wait as Erlang and Pollaczek and Khinchine say", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (const auto& [servers, load] : {std::pair{1, 0.5}, {3, 0.8}, {20, 0.9}}) {
    const Queue queue = mean_wait(seed, servers, load, true, 30);
    CHECK(std::abs(queue.mean - erlang_wait(servers, load)) < 4 * queue.error);
  }
  // M/G/1: load x (1 + v) / 2 / (1 - load), v the squared coefficient of variation: 0.25 here.
  const Queue general = mean_wait(seed, 1, 0.6, false, 30);
  CHECK(std::abs(general.mean - 0.6 * 1.25 / 2 / 0.4) < 4 * general.error);
}

// From empty to empty: the sum of waits is the integral of how many wait, exactly.
TEST_CASE("law: Little's law holds to the microsecond", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  const ClusterJobs list = random_jobs(seed, 400, 60, true);
  for (const FleetQuestion& question : all_questions(8)) {
    const FleetRecord record = run_fleet(list, question);
    std::map<std::int64_t, std::int64_t> change;
    std::int64_t waits = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      ++change[list.jobs[i].submit.us];
      --change[record.jobs[i].start.us];
      waits += record.jobs[i].start.us - list.jobs[i].submit.us;
    }
    std::int64_t area = 0, waiting = 0, last = 0, most = 0;
    for (const auto& [at, by] : change) {
      area += waiting * (at - last);
      waiting += by;
      most = std::max(most, waiting);
      last = at;
    }
    CHECK(area == waits);
    CHECK(waiting == 0);
    CHECK(record.most_waiting >= most);
  }
}

TEST_CASE("a run that is stopped keeps what was simulated", "[fleet]") {
  const ClusterJobs list = random_jobs(fresh(3), 20'000, 60, true);
  FleetQuestion question;
  question.shape = small_cluster(8);
  question.policy = {JobOrder::fifo, JobFit::easy, JobPlace::pack};
  int looks = 0;
  question.stop = [&](FleetTime) { return ++looks == 2; };
  const FleetRecord part = run_fleet(list, question);
  REQUIRE(part.stopped);
  question.stop = {};
  const FleetRecord whole = run_fleet(list, question);
  CHECK_FALSE(whole.stopped);
  CHECK(part.last_end < whole.last_end);
  for (std::size_t i = 0; i < list.jobs.size(); ++i)
    if (part.jobs[i].start != fleet_never) REQUIRE(part.jobs[i].start == whole.jobs[i].start);
}

TEST_CASE("gangs go where the rule says", "[fleet]") {
  const SlotShape shape = small_cluster(8);
  Slots slots(shape);
  const auto place = [&](JobPlace rule, std::int32_t gpus) {
    Grants grants;
    Placer placer(rule, 1);
    REQUIRE(placer.find(slots, gpus, grants));
    return grants;
  };
  const HostGrant part{.host = 2, .hosts = 1, .gpus = 5}, whole{.host = 0, .hosts = 1, .gpus = 8};
  slots.take({&part, 1});
  slots.take({&whole, 1});
  // Host 0 is taken, host 2 has 3 free, all others 8.
  CHECK(place(JobPlace::pack, 2) == Grants{{2, 1, 2}});
  CHECK(place(JobPlace::spread, 2) == Grants{{1, 1, 2}});
  CHECK(place(JobPlace::pack, 19) == Grants{{1, 1, 8}, {2, 1, 3}, {3, 1, 8}});
  CHECK(place(JobPlace::pack, 20) == Grants{{1, 1, 8}, {3, 1, 8}, {4, 1, 4}});
  // Two hosts: leaf group {4, 5} or {6, 7}, not 1 and 3. Four: the pod {4 to 7}.
  CHECK(place(JobPlace::least_level, 16) == Grants{{4, 2, 8}});
  CHECK(place(JobPlace::least_level, 8) == Grants{{1, 1, 8}});
  CHECK(place(JobPlace::least_level, 32) == Grants{{4, 4, 8}});
  Grants none;
  CHECK_FALSE(Placer(JobPlace::pack, 0).find(slots, 52, none));
  CHECK(Placer::fits(slots, 51));
}

}  // namespace
}  // namespace orrery
