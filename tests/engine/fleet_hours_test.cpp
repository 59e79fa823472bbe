// SPDX-License-Identifier: Apache-2.0
// Tests what changes for a cluster by the hour: jobs wait for cheap hours, and stop where the limit
// of power falls.
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/decisions/delay_gate.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3'600 * second;

std::vector<std::int64_t> drawn_weights(RandomStream& random, std::size_t hours) {
  std::vector<std::int64_t> weights;
  for (std::size_t i = 0; i < hours; ++i)
    weights.push_back(static_cast<std::int64_t>(random.below(10)) - 2);
  return weights;
}

__int128 cost_of(const std::vector<std::int64_t>& weights, std::int64_t from, std::int64_t length) {
  __int128 sum = 0;
  for (std::int64_t at = from; at < from + length;) {
    const std::int64_t end = std::min((at / hour + 1) * hour, from + length);
    sum += static_cast<__int128>(weights[static_cast<std::size_t>(at / hour)]) * (end - at);
    at = end;
  }
  return sum;
}

// Jobs of hours with deadlines, most of them.
ClusterJobs due_jobs(std::uint64_t seed, std::size_t count, bool with_limits) {
  return drawn_jobs(seed, count, 4, {hour / 2}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(random.below(6 * 3600)) * second;
    job.limit.us =
        job.length.us + (with_limits ? static_cast<std::int64_t>(random.below(hour)) : 0);
    if (random.below(4) > 0)
      job.deadline.us = job.limit.us + static_cast<std::int64_t>(random.below(20 * 3600)) * second;
    job.gpus = drawn_gpus(random, 24);
  });
}

FleetQuestion easy_question(std::int32_t hosts) {
  FleetQuestion question;
  question.shape = small_cluster(hosts);
  question.policy = {JobOrder::fifo, JobFit::easy, JobPlace::pack};
  question.works.front().milliwatts = 700;
  question.idle_milliwatts = 100;
  return question;
}

bool same(const FleetRecord& a, const FleetRecord& b) {
  if (a.jobs.size() != b.jobs.size() || a.events != b.events) return false;
  for (std::size_t i = 0; i < a.jobs.size(); ++i)
    if (a.jobs[i].start != b.jobs[i].start || a.jobs[i].end != b.jobs[i].end ||
        a.jobs[i].delayed != b.jobs[i].delayed)
      return false;
  return a.power.nanojoules == b.power.nanojoules && a.use.work.useful == b.use.work.useful;
}

// Of six hosts, and of an accelerator in use above that: easy_question().
constexpr std::int64_t idle_of_six = 48 * 100, each = 600;

// Follows who runs, and who is stopped at an instant, as it is told.
class StopWatch {
 public:
  StopWatch(const ClusterJobs& list, const std::vector<std::int64_t>& limits)
      : jobs_(list.jobs), limits_(limits), runs_(list.jobs.size()) {}

  void take(const FleetEvent& event) {
    if (event.kind == FleetEventKind::start) runs_[event.job] = 1;
    if (event.kind == FleetEventKind::end) runs_[event.job] = 0;
    if (event.kind != FleetEventKind::stop) return;
    REQUIRE(event.cause == "power");
    if (event.at != at_ || stopped_.empty()) {
      stopped_.clear();
      before_ = runs_;
    }
    at_ = event.at;
    stopped_.push_back(event.job);
    runs_[event.job] = 0;
  }

  void check(FleetTime now, std::int64_t held) const {
    const std::int64_t drawn = idle_of_six + held * each, limit = at_hour(limits_, now);
    if (drawn > limit)  // only of those that nobody may stop
      for (std::size_t i = 0; i < runs_.size(); ++i)
        REQUIRE((runs_[i] == 0 || !jobs_[i].preemptible));
    if (at_ != now || stopped_.empty()) return;
    const std::int64_t excess = idle_of_six + drawn_before(INT16_MAX, true) - limit;
    for (const std::uint32_t job : stopped_) {
      REQUIRE(jobs_[job].preemptible);
      // All of lower priority together would not have sufficed, and without its stop it would be
      // too much.
      REQUIRE(drawn_before(jobs_[job].priority, false) < excess);
      if (runs_[job] == 0) REQUIRE(drawn + jobs_[job].gpus * each > limit);
    }
  }

 private:
  std::int64_t drawn_before(std::int32_t below, bool all) const {
    std::int64_t gpus = 0;
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (before_[i] == 1 && (all || jobs_[i].preemptible) && jobs_[i].priority < below)
        gpus += jobs_[i].gpus;
    return gpus * each;
  }

  const std::vector<ClusterJob>& jobs_;
  const std::vector<std::int64_t>& limits_;
  std::vector<std::uint8_t> runs_, before_;
  std::vector<std::uint32_t> stopped_;
  FleetTime at_;
};

}  // namespace

TEST_CASE("law: the cheapest start costs no more than any other, and is the first of those",
          "[fleet]") {
  const std::uint64_t seed = fresh(31);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  for (int round = 0; round < 400; ++round) {
    const std::vector<std::int64_t> weights = drawn_weights(random, 24);
    const HourCosts costs(weights);
    REQUIRE(costs.end().us == 24 * hour);
    // In quarters of an hour, so that all starts of interest are tried.
    const std::int64_t step = hour / 4;
    const auto drawn = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(random.below(most)) * step;
    };
    const std::int64_t length = drawn(40), first = drawn(20), last = first + drawn(36);
    const FleetTime start = costs.cheapest({first}, {last}, {length});
    const __int128 cost = cost_of(weights, start.us, length);
    REQUIRE(costs.cost(start, {length}) == cost);
    REQUIRE(start.us >= first);
    REQUIRE(start.us <= last);
    for (std::int64_t at = first; at <= last; at += step) {
      const __int128 other = cost_of(weights, at, length);
      REQUIRE(cost <= other);
      if (cost == other) REQUIRE(start.us <= at);
    }
  }
}

TEST_CASE("law: one job that is delayed emits least of all its starts", "[fleet]") {
  const std::uint64_t seed = fresh(32);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  for (int round = 0; round < 60; ++round) {
    FleetQuestion question = easy_question(2);
    question.hours.energy = true;
    question.horizon = {30 * hour};
    question.hours.weights = drawn_weights(random, 30);
    ClusterJobs list;
    ClusterJob job{.gpus = 4};
    job.submit.us = static_cast<std::int64_t>(random.below(8)) * hour / 2;
    job.length.us = job.limit.us = static_cast<std::int64_t>(1 + random.below(16)) * hour / 2;
    job.deadline.us = job.length.us + static_cast<std::int64_t>(random.below(24)) * hour / 2;
    list.jobs = {job};
    const auto emitted = [&](const FleetRecord& record) {
      __int128 sum = 0;
      for (std::size_t i = 0; i < record.power.hours.size(); ++i)
        sum += record.power.hours[i] * question.hours.weights[i];
      return sum;
    };
    const FleetRecord record = run_fleet(list, question);
    REQUIRE(record.jobs[0].end <= due(job));
    const __int128 least = emitted(record);
    const std::vector<std::int64_t> weights = question.hours.weights;
    for (std::int64_t at = job.submit.us; at + job.length.us <= due(job).us; at += hour / 2) {
      ClusterJobs other = list;
      other.jobs[0].submit.us = at;
      other.jobs[0].deadline = fleet_never;
      REQUIRE(least <= emitted(run_fleet(other, question)));
    }
  }
}

TEST_CASE("law: whoever is kept back and starts at once then meets its deadline", "[fleet]") {
  const std::uint64_t seed = fresh(33);
  INFO("seed " << seed);
  std::int64_t kept_back = 0, at_once = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    RandomStream random(seed + round, 2);
    const ClusterJobs list = due_jobs(seed + round, 120, round % 2 == 1);
    FleetQuestion question = easy_question(6);
    question.hours.weights = drawn_weights(random, 200);
    const FleetRecord record = run_fleet(list, question);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      const JobRecord& r = record.jobs[i];
      REQUIRE(r.start >= job.submit + r.delayed);
      REQUIRE(r.end == r.start + job.length);
      if (r.delayed.us == 0) continue;
      ++kept_back;
      REQUIRE(job.deadline != fleet_never);
      REQUIRE(job.submit + r.delayed + job.limit <= due(job));
      if (r.start != job.submit + r.delayed) continue;
      ++at_once;
      REQUIRE(r.end <= due(job));
    }
  }
  CHECK(kept_back > 500);
  CHECK(at_once > 200);
}

TEST_CASE("law: hours that do not differ change no byte", "[fleet]") {
  const std::uint64_t seed = fresh(34);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const ClusterJobs list = due_jobs(seed + round, 150, round % 2 == 1);
    FleetQuestion question = easy_question(6);
    const FleetRecord plain = run_fleet(list, question);
    question.hours.weights.assign(400, 7);
    REQUIRE(same(plain, run_fleet(list, question)));
    question.hours.weights.clear();
    question.power_limit_milliwatts = 48 * 700;
    question.hours.limits.assign(400, 48 * 700);
    REQUIRE(same(plain, run_fleet(list, question)));
  }
}

TEST_CASE("law: a limit that falls stops the fewest of the lowest priority", "[fleet]") {
  const std::uint64_t seed = fresh(35);
  INFO("seed " << seed);
  std::int64_t suspended = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    RandomStream random(seed + round, 2);
    const ClusterJobs list =
        drawn_jobs(seed + round, 120, 4, {hour / 2}, [](RandomStream& draw, ClusterJob& job) {
          job.length.us = job.limit.us = static_cast<std::int64_t>(draw.below(6 * 3600)) * second;
          job.priority = static_cast<std::int16_t>(draw.below(3));
          job.preemptible = draw.below(8) > 0;
          job.gpus = drawn_gpus(draw, 24);
        });
    FleetQuestion question = easy_question(6);
    question.policy.order = JobOrder::priority;
    question.works.front().save_steps = 600 * second;
    for (int i = 0; i < 100; ++i)
      question.hours.limits.push_back(idle_of_six +
                                      each * static_cast<std::int64_t>(random.below(48)) + 1);
    question.hours.limits.push_back(48 * 700);
    question.power_limit_milliwatts = 48 * 700;
    StopWatch watch(list, question.hours.limits);
    question.tell = [&](const FleetEvent& event) { watch.take(event); };
    question.look = [&](FleetTime now, const Slots& slots) { watch.check(now, slots.held()); };
    const FleetRecord record = run_fleet(list, question);
    std::int64_t preemptions = 0;
    for (const JobRecord& job : record.jobs) {
      REQUIRE(job.end != fleet_never);
      preemptions += job.preemptions;
    }
    CHECK(preemptions == record.power.suspended);
    CHECK(record.use.work.all() == static_cast<GpuPicos>(record.use.held) * 1'000'000);
    suspended += preemptions;
  }
  CHECK(suspended > 300);
}

TEST_CASE("what may not be stopped draws more than a limit, and the seconds are told", "[fleet]") {
  FleetQuestion question = easy_question(2);
  question.power_limit_milliwatts = 16 * 700;
  question.hours.limits = {16 * 700, 16 * 100 + 8 * 600, 16 * 700};
  ClusterJobs list;
  for (const bool preemptible : {false, true}) {
    list.jobs = {{.length = {3 * hour}, .limit = {3 * hour}, .gpus = 12}};
    list.jobs[0].preemptible = preemptible;
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.power.over.us == (preemptible ? 0 : hour));
    CHECK(record.power.suspended == (preemptible ? 1 : 0));
    // Nothing was saved, and it begins again when the limit rises.
    CHECK(record.jobs[0].end.us == (preemptible ? 5 * hour : 3 * hour));
    CHECK(record.use.work.preempted == (preemptible ? GpuPicos{12} * hour * 1'000'000 : 0));
  }
}

TEST_CASE("law: every rule keeps jobs back, and limits of the hour where it knows limits",
          "[fleet]") {
  const std::uint64_t seed = fresh(36);
  INFO("seed " << seed);
  std::int64_t suspended = 0, kept_back = 0;
  for (std::uint64_t round = 0; round < 12; ++round)
    for (const JobFit fit : {JobFit::block, JobFit::easy, JobFit::any, JobFit::rounds,
                             JobFit::conservative, JobFit::slurm}) {
      INFO("round " << round << ", " << job_fit_text[fit]);
      RandomStream random(seed + round, 2);
      const ClusterJobs list = due_jobs(seed + round, 60, round % 2 == 1);
      FleetQuestion question = easy_question(6);
      question.policy.fit = fit;
      question.policy.preempts = fit == JobFit::rounds;
      question.works.front().save_steps = 600 * second;
      question.hours.weights = drawn_weights(random, 200);
      const bool limits = fit != JobFit::conservative && fit != JobFit::slurm;
      for (int i = 0; limits && i < 60; ++i)
        question.hours.limits.push_back(idle_of_six +
                                        each * static_cast<std::int64_t>(random.below(48)) + 1);
      if (limits) question.hours.limits.push_back(48 * 700);
      if (limits) question.power_limit_milliwatts = 48 * 700;
      const FleetRecord record = run_fleet(list, question);
      for (std::size_t i = 0; i < list.jobs.size(); ++i) {
        REQUIRE(record.jobs[i].end != fleet_never);
        REQUIRE(record.jobs[i].start >= list.jobs[i].submit + record.jobs[i].delayed);
        kept_back += record.jobs[i].delayed.us > 0 ? 1 : 0;
      }
      CHECK(record.power.over.us == 0);
      suspended += record.power.suspended;
    }
  CHECK(suspended > 100);
  CHECK(kept_back > 500);
}

TEST_CASE("the order of deadlines has those due first, and those without one last", "[fleet]") {
  FleetQuestion question = easy_question(1);
  question.policy.order = JobOrder::deadline;
  ClusterJobs list;
  const auto add = [&](std::int64_t submit, FleetTime deadline) {
    list.jobs.push_back(
        {.submit = {submit}, .length = {hour}, .limit = {hour}, .deadline = deadline, .gpus = 8});
  };
  add(0, fleet_never);
  add(1, fleet_never);
  add(2, {9 * hour});
  add(3, {4 * hour});
  add(4, {9 * hour});
  const FleetRecord record = run_fleet(list, question);
  const std::vector<std::int64_t> starts = {0, 4, 2, 1, 3};
  for (std::size_t i = 0; i < starts.size(); ++i)
    CHECK(record.jobs[i].start.us == starts[i] * hour);
}

}  // namespace orrery
