// SPDX-License-Identifier: Apache-2.0
// Tests what theory says of shared clusters: losses of jobs that do not wait, and where faster is
// not sooner.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

FleetQuestion pool_of(std::int32_t gpus, JobFit fit = JobFit::block) {
  FleetQuestion question;
  question.shape = pool_shape(gpus);
  question.policy = {JobOrder::fifo, fit, JobPlace::pool};
  return question;
}

struct JobClass {
  std::int32_t gpus = 1;
  double rate = 1;  // of arrivals; lengths have a mean of 1 s
};

double draw_length(int kind, RandomStream& random) {
  if (kind == 0) return random.exponential(1);
  if (kind == 1) return 1;
  return random.below(10) == 0 ? random.exponential(5.5) : random.exponential(0.5);
}

// Shares of jobs of each class that find no room: whoever would wait is taken out of the list, part
// by part; those that run go on into the next part. Means of parts give the standard error.
struct Losses {
  std::vector<double> share, error;
};
Losses losses(std::int32_t gpus, const std::vector<JobClass>& classes, int kind,
              std::uint64_t seed) {
  constexpr std::size_t parts = 150, of_part = 400;
  RandomStream random(seed, 3);
  double rate = 0, at = 0;
  for (const JobClass& one : classes) rate += one.rate;
  std::vector<std::vector<double>> lost(classes.size());
  ClusterJobs running;
  for (std::size_t part = 0; part < parts; ++part) {
    ClusterJobs list = running;
    std::vector<std::size_t> of(list.jobs.size(), classes.size());
    for (std::size_t i = 0; i < of_part; ++i) {
      at += random.exponential(1 / rate);
      double left = random.uniform() * rate;
      std::size_t which = 0;
      while (which + 1 < classes.size() && left >= classes[which].rate)
        left -= classes[which++].rate;
      ClusterJob job{.submit = {std::llround(at * 1e6)}, .gpus = classes[which].gpus};
      job.length.us = job.limit.us = std::llround(draw_length(kind, random) * 1e6);
      list.jobs.push_back(job);
      of.push_back(which);
    }
    std::vector<double> asked(classes.size(), 0), refused(classes.size(), 0);
    for (const std::size_t which : of)
      if (which < classes.size()) ++asked[which];
    while (true) {
      const FleetRecord record = run_fleet(list, pool_of(gpus));
      std::size_t first = 0;
      while (first < list.jobs.size() && record.jobs[first].start == list.jobs[first].submit)
        ++first;
      if (first == list.jobs.size()) break;
      REQUIRE(of[first] < classes.size());
      ++refused[of[first]];
      list.jobs.erase(list.jobs.begin() + static_cast<std::ptrdiff_t>(first));
      of.erase(of.begin() + static_cast<std::ptrdiff_t>(first));
    }
    // What is left of those that run as the next part begins, as if they came then.
    running.jobs.clear();
    const FleetTime now{std::llround(at * 1e6)};
    for (ClusterJob job : list.jobs) {
      const FleetTime end = job.submit + job.length;
      if (end <= now) continue;
      job.submit = now;
      job.length = job.limit = end - now;
      running.jobs.push_back(job);
    }
    for (std::size_t k = 0; k < classes.size(); ++k)
      if (part >= 5) lost[k].push_back(refused[k] / std::max(1.0, asked[k]));
  }
  Losses out;
  for (const std::vector<double>& of_class : lost) {
    const auto n = static_cast<double>(of_class.size());
    double mean = 0, squares = 0;
    for (const double share : of_class) mean += share / n;
    for (const double share : of_class) squares += (share - mean) * (share - mean);
    out.share.push_back(mean);
    out.error.push_back(std::sqrt(squares / (n * (n - 1))));
  }
  return out;
}

// Kaufman and Roberts: j q(j) = sum of a_k b_k q(j - b_k); of a class that asks for b all states
// with fewer than b free lose. With one class of one GPU it is Erlang's B.
std::vector<double> kaufman_roberts(std::int32_t gpus, const std::vector<JobClass>& classes) {
  std::vector<double> q(static_cast<std::size_t>(gpus) + 1, 0);
  q[0] = 1;
  double sum = 1;
  for (std::int32_t j = 1; j <= gpus; ++j) {
    double& here = q[static_cast<std::size_t>(j)];
    for (const JobClass& one : classes)
      if (j >= one.gpus)
        here += one.rate * one.gpus * q[static_cast<std::size_t>(j - one.gpus)] / j;
    sum += here;
  }
  std::vector<double> out;
  for (const JobClass& one : classes) {
    double lost = 0;
    for (std::int32_t j = gpus - one.gpus + 1; j <= gpus; ++j)
      lost += q[static_cast<std::size_t>(j)] / sum;
    out.push_back(lost);
  }
  return out;
}

TEST_CASE("law: jobs that do not wait are lost as Erlang, Kaufman and Roberts say", "[fleet]") {
  const std::uint64_t seed = fresh(71);
  INFO("seed " << seed);
  const std::vector<std::pair<std::int32_t, std::vector<JobClass>>> cases = {
      {10, {{1, 8}}}, {32, {{1, 10}, {4, 2}, {8, 1}}}};
  // Lengths matter by their means alone: exponential, all alike, very unlike.
  for (const auto& [gpus, classes] : cases)
    for (const int kind : {0, 1, 2}) {
      const std::vector<double> theory = kaufman_roberts(gpus, classes);
      const Losses seen = losses(gpus, classes, kind, seed);
      for (std::size_t k = 0; k < classes.size(); ++k) {
        INFO(gpus << " GPUs, lengths " << kind << ", jobs of " << classes[k].gpus << ": "
                  << seen.share[k] << " +- " << seen.error[k] << ", theory " << theory[k]);
        CHECK(std::abs(seen.share[k] - theory[k]) < 4 * seen.error[k]);
        CHECK(seen.error[k] < 0.1 * theory[k]);
      }
    }
}

// Nobody passes anybody: whoever is shorter, or comes on faster hosts, lets all others start no
// later.
TEST_CASE("law: without passing, shorter jobs delay nobody", "[fleet]") {
  const std::uint64_t seed = fresh(72);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  std::size_t sooner = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const ClusterJobs list = random_jobs(seed + round, 200, 64, false);
    ClusterJobs faster = list;
    for (ClusterJob& job : faster.jobs)
      if (random.below(3) == 0) job.length.us = job.limit.us = job.length.us / 2;
    const FleetRecord slow = run_fleet(list, pool_of(64)), fast = run_fleet(faster, pool_of(64));
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(fast.jobs[i].start <= slow.jobs[i].start);
      sooner += fast.jobs[i].start < slow.jobs[i].start ? 1 : 0;
    }
  }
  CHECK(sooner > 1000);
}

// Graham's anomaly: where jobs pass, one that is a second shorter ends all later.
TEST_CASE("a shorter job may end all later where others pass it", "[fleet]") {
  const auto list = [](const std::vector<std::array<std::int64_t, 3>>& rows) {
    ClusterJobs jobs;
    for (const auto& [submit, gpus, length] : rows) {
      ClusterJob job{.submit = {submit * 1'000'000}, .gpus = static_cast<std::int32_t>(gpus)};
      job.length.us = job.limit.us = length * 1'000'000;
      jobs.jobs.push_back(job);
    }
    return jobs;
  };
  const auto span = [&](JobFit fit, const std::vector<std::array<std::int64_t, 3>>& rows) {
    return run_fleet(list(rows), pool_of(3, fit)).last_end.us / 1'000'000;
  };
  CHECK(span(JobFit::easy, {{0, 1, 2}, {0, 1, 6}, {2, 3, 4}, {2, 2, 4}}) == 10);
  CHECK(span(JobFit::easy, {{0, 1, 2}, {0, 1, 5}, {2, 3, 4}, {2, 2, 4}}) == 13);
  CHECK(span(JobFit::any, {{0, 1, 3}, {0, 1, 3}, {1, 2, 3}, {2, 1, 4}}) == 6);
  CHECK(span(JobFit::any, {{0, 1, 3}, {0, 1, 2}, {1, 2, 3}, {2, 1, 4}}) == 7);
  // Without passing the same jobs are sooner.
  CHECK(span(JobFit::block, {{0, 1, 2}, {0, 1, 6}, {2, 3, 4}, {2, 2, 4}}) == 14);
  CHECK(span(JobFit::block, {{0, 1, 2}, {0, 1, 5}, {2, 3, 4}, {2, 2, 4}}) == 13);
}

// The same breakdowns, repairs a fifth quicker: what breaks strikes whoever is there, so that
// single runs may be slower. In the mean none is.
TEST_CASE("law: quicker repair helps in the mean, though not in each run", "[fleet]") {
  const std::uint64_t seed = fresh(73);
  INFO("seed " << seed);
  constexpr int runs = 60;
  double mean = 0, squares = 0;
  int slower = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const ClusterJobs list = random_jobs(seed + run, 150, 64, false);
    const auto span = [&](double repair) {
      FleetQuestion question;
      question.shape = small_cluster(8);
      question.works[0].save_steps = 10'000'000;
      question.seed = seed + run;
      question.breakdowns.kinds = {{"host", Hertz(1 / 150.0), 1, 1, seconds(repair), {}, {}}};
      question.breakdowns.repair_crews = 1;
      return static_cast<double>(run_fleet(list, question).last_end.us) * 1e-6;
    };
    const double gain = span(120) - span(96);
    slower += gain < 0 ? 1 : 0;
    mean += gain / runs;
    squares += gain * gain / runs;
  }
  const double error = std::sqrt((squares - mean * mean) / (runs - 1));
  INFO("sooner by " << mean << " +- " << error << " s; slower in " << slower << " of " << runs);
  CHECK(mean > 3 * error);
  CHECK(slower > 0);
}

}  // namespace
}  // namespace orrery
