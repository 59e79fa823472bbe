// SPDX-License-Identifier: Apache-2.0
// Tests that sizes of goodput are the best there are, and that all of them find a place.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/engine/elastic/goodput_sizes.h"
#include "sim/engine/elastic/packed_places.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/elastic_case.h"

namespace orrery {
namespace {

using Choices = std::vector<std::vector<SizeOption>>;

struct ChoiceSum {
  std::int64_t gpus = 0, cost = 0;
};
ChoiceSum sum_of(const Choices& jobs, const std::vector<std::size_t>& chosen) {
  ChoiceSum sum;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    sum.gpus += jobs[j][chosen[j]].gpus;
    sum.cost += jobs[j][chosen[j]].cost;
  }
  return sum;
}

// The least cost of all choices, by trying each.
std::int64_t tried_best(const Choices& jobs, std::int64_t gpus, std::size_t from = 0) {
  if (from == jobs.size()) return 0;
  std::int64_t best = INT64_MAX / 2;
  for (const SizeOption& option : jobs[from])
    if (option.gpus <= gpus)
      best = std::min(best, option.cost + tried_best(jobs, gpus - option.gpus, from + 1));
  return best;
}

// The same by a table over accelerators.
std::int64_t table_best(const Choices& jobs, std::int64_t gpus) {
  std::vector<std::int64_t> least(static_cast<std::size_t>(gpus) + 1, 0);
  for (const std::vector<SizeOption>& job : jobs) {
    std::vector<std::int64_t> next(least.size(), INT64_MAX / 2);
    for (std::size_t g = 0; g < next.size(); ++g)
      for (const SizeOption& o : job)
        if (o.gpus <= static_cast<std::int64_t>(g))
          next[g] = std::min(next[g], least[g - static_cast<std::size_t>(o.gpus)] + o.cost);
    least = std::move(next);
  }
  return least.back();
}

// Costs without any order, so that hulls leave most options out, or falling as they do for jobs.
Choices random_choices(RandomStream& random, std::size_t count, std::int64_t most) {
  Choices out(count);
  const bool falls = random.below(2) == 0, few = random.below(3) == 0;
  for (std::vector<SizeOption>& job : out) {
    std::int64_t cost = 1'000 + static_cast<std::int64_t>(random.below(9'000));
    job.push_back({0, cost});
    const std::uint64_t options = 1 + random.below(5);
    for (std::uint64_t o = 0; o < options; ++o) {
      if (falls) cost = static_cast<std::int64_t>(static_cast<double>(cost) * random.uniform());
      const std::int64_t gpus =
          static_cast<std::int64_t>(few ? std::uint64_t{1} << random.below(4)
                                        : 1 + random.below(static_cast<std::uint64_t>(most)));
      job.push_back({gpus, falls ? cost : static_cast<std::int64_t>(random.below(10'000))});
    }
  }
  return out;
}

TEST_CASE("law: sizes have the least cost of all choices", "[elastic]") {
  const std::uint64_t seed = fresh(21);
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  for (int round = 0; round < 3'000; ++round) {
    const Choices jobs = random_choices(random, 1 + random.below(6), 8);
    const auto gpus = static_cast<std::int64_t>(random.below(24));
    const ChoiceSum sum = sum_of(jobs, choose_sizes(jobs, gpus));
    REQUIRE(sum.gpus <= gpus);
    REQUIRE(sum.cost == tried_best(jobs, gpus));
  }
  for (int round = 0; round < 200; ++round) {
    const Choices jobs = random_choices(random, 20 + random.below(60), 16);
    const auto gpus = static_cast<std::int64_t>(random.below(200));
    const ChoiceSum sum = sum_of(jobs, choose_sizes(jobs, gpus));
    REQUIRE(sum.gpus <= gpus);
    REQUIRE(sum.cost == table_best(jobs, gpus));
  }
}

TEST_CASE("law: more accelerators never cost more", "[elastic]") {
  const std::uint64_t seed = fresh(22);
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  for (int round = 0; round < 100; ++round) {
    const Choices jobs = random_choices(random, 1 + random.below(30), 12);
    std::int64_t before = INT64_MAX;
    for (std::int64_t gpus = 0; gpus < 80; ++gpus) {
      const std::int64_t cost = sum_of(jobs, choose_sizes(jobs, gpus)).cost;
      REQUIRE(cost <= before);
      before = cost;
    }
  }
}

// Jobs of a round in any state that a run may leave.
struct RandomRound {
  std::vector<ElasticApplication> applications;
  std::vector<ElasticJob> jobs;
  std::vector<Grants> places;
  ElasticQuestion question;
  std::unique_ptr<PaceTable> paces;
  std::vector<RoundJob> view;

  RandomRound(std::uint64_t seed, std::size_t count, std::int32_t hosts, std::int32_t host_gpus)
      : applications(random_applications(seed, 4)),
        jobs(random_elastic_jobs(seed, count, applications)),
        places(count),
        paces(std::make_unique<PaceTable>(applications)) {
    RandomStream random(seed, 9);
    question.hosts = hosts;
    question.gpus_per_host = host_gpus;
    question.apart = random.below(2) == 0;
    for (std::size_t i = 0; i < count; ++i)
      view.push_back({.number = static_cast<std::uint32_t>(i),
                      .asked = &jobs[i],
                      .place = &places[i],
                      .age = {static_cast<std::int64_t>(random.below(4'000)) * 1'000'000},
                      .restarts = static_cast<std::int32_t>(random.below(5)),
                      .restart = question.restart,
                      .most_run = static_cast<std::int32_t>(random.below(17)),
                      .ran_across = random.below(2) == 0,
                      .left = elastic_work});
  }
  RoundView round() { return {FleetTime{}, view, question, *paces, question.gpus()}; }
  // Sizes by the policy, and their places; what it decided is what jobs hold next.
  std::vector<std::int32_t> step() {
    const std::vector<std::int32_t> gpus = choose_goodput_sizes(round());
    std::vector<Grants> next(places.size());
    place_packed(round(), gpus, next);
    for (std::size_t i = 0; i < next.size(); ++i) places[i] = next[i];  // jobs point there
    return gpus;
  }
};

std::int64_t cost_of_sizes(RandomRound& one, const std::vector<std::int32_t>& gpus) {
  std::int64_t cost = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const GoodputSizes sizes = goodput_sizes(one.round(), one.view[i]);
    const auto at = std::find(sizes.gpus.begin(), sizes.gpus.end(), gpus[i]);
    REQUIRE(at != sizes.gpus.end());
    cost += sizes.options[static_cast<std::size_t>(at - sizes.gpus.begin())].cost;
  }
  return cost;
}

// Whether pieces fit on hosts, by trying all ways; pieces in falling order.
bool fits(const std::vector<std::int32_t>& pieces, std::vector<std::int32_t>& free,
          std::size_t from) {
  if (from == pieces.size()) return true;
  std::vector<std::int32_t> tried;
  for (std::int32_t& host : free) {
    if (host < pieces[from] || std::find(tried.begin(), tried.end(), host) != tried.end()) continue;
    tried.push_back(host);
    host -= pieces[from];
    const bool all = fits(pieces, free, from + 1);
    host += pieces[from];
    if (all) return true;
  }
  return false;
}

TEST_CASE("law: goodput has the best sizes of all that fit on the hosts", "[elastic]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 150; ++round) {
    RandomRound one(seed + round, 5, 3, 4);
    one.step();
    std::int64_t best = INT64_MAX;
    std::vector<GoodputSizes> sizes;
    for (const RoundJob& job : one.view) sizes.push_back(goodput_sizes(one.round(), job));
    std::vector<std::size_t> at(sizes.size(), 0);
    // All choices, with hosts as they are: a rest of a large job takes a host of its own if apart.
    for (bool more = true; more;) {
      std::vector<std::int32_t> pieces;
      std::int64_t cost = 0;
      for (std::size_t j = 0; j < sizes.size(); ++j) {
        cost += sizes[j].options[at[j]].cost;
        for (std::int64_t left = sizes[j].options[at[j]].gpus; left > 0; left -= 4)
          pieces.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(left, 4)));
      }
      std::sort(pieces.rbegin(), pieces.rend());
      std::vector<std::int32_t> free(3, 4);
      if (cost < best && fits(pieces, free, 0)) best = cost;
      more = false;
      for (std::size_t j = 0; j < at.size() && !more; ++j) {
        more = ++at[j] < sizes[j].options.size();
        if (!more) at[j] = 0;
      }
    }
    REQUIRE(cost_of_sizes(one, choose_goodput_sizes(one.round())) == best);
  }
}

TEST_CASE("law: goodput is no worse than random choices that fit", "[elastic]") {
  const std::uint64_t seed = fresh(24);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 20; ++round) {
    RandomRound one(seed + round, 40, 16, 4);
    RandomStream random(seed + round, 10);
    for (int step = 0; step < 3; ++step) {
      const std::int64_t cost = cost_of_sizes(one, choose_goodput_sizes(one.round()));
      for (int other = 0; other < 50; ++other) {
        std::int64_t left = one.question.gpus(), sum = 0;
        for (const RoundJob& job : one.view) {
          const GoodputSizes sizes = goodput_sizes(one.round(), job);
          std::size_t at = random.below(sizes.options.size());
          if (sizes.options[at].gpus > left) at = 0;
          left -= sizes.options[at].gpus;
          sum += sizes.options[at].cost;
        }
        REQUIRE(cost <= sum);
      }
      one.step();
    }
  }
}

// Of all jobs: what was chosen lies on as few hosts as it can; who keeps its size stays, unless a
// larger piece came to its host.
void check_packed(const RandomRound& one, const std::vector<std::int32_t>& gpus,
                  const std::vector<Grants>& before) {
  const std::int32_t host_gpus = one.question.gpus_per_host;
  std::vector<std::int32_t> held(static_cast<std::size_t>(one.question.hosts), 0);
  std::vector<std::int32_t> largest_new(held.size(), 0);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    REQUIRE(gpus_of_place(one.places[i]) == gpus[i]);
    REQUIRE(static_cast<std::int32_t>(one.places[i].size()) ==
            (gpus[i] + host_gpus - 1) / host_gpus);
    for (const HostGrant& grant : one.places[i]) {
      const auto host = static_cast<std::size_t>(grant.host);
      held[host] += grant.gpus;
      if (one.places[i] != before[i])
        largest_new[host] =
            std::max(largest_new[host], one.question.apart && gpus[i] > host_gpus
                                            ? host_gpus
                                            : set_aside(grant.gpus, host_gpus, true));
    }
  }
  REQUIRE(*std::max_element(held.begin(), held.end()) <= host_gpus);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i] == 0 || gpus_of_place(before[i]) != gpus[i] || one.places[i] == before[i]) continue;
    bool had_to = false;
    for (const HostGrant& grant : before[i])
      had_to = had_to || largest_new[static_cast<std::size_t>(grant.host)] > grant.gpus;
    REQUIRE(had_to);
  }
}

TEST_CASE("law: all sizes of goodput find a place, and few jobs move", "[elastic]") {
  const std::uint64_t seed = fresh(25);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 60; ++round) {
    RandomStream random(seed + round, 11);
    const std::int32_t host_gpus = std::vector<std::int32_t>{4, 8, 6, 5}[round % 4];
    RandomRound one(seed + round, 30, 12, host_gpus);
    for (int step = 0; step < 12; ++step) {
      for (RoundJob& job : one.view) {
        job.most_run = std::max(job.most_run, gpus_of_place(*job.place));
        job.age.us += 60'000'000 * static_cast<std::int64_t>(random.below(20));
      }
      const std::vector<Grants> before = one.places;
      check_packed(one, one.step(), before);
    }
  }
}

TEST_CASE("costs of sizes are one over speedups, less where a job would restart", "[elastic]") {
  RandomRound one(31, 4, 4, 4);
  one.question.apart = true;
  for (std::size_t i = 0; i < 4; ++i) {
    one.jobs[i].gpus = one.jobs[i].least = 1;
    one.jobs[i].most = 16;
    one.jobs[i].batch = 128;
    one.jobs[i].free_batch = false;
    one.view[i].restarts = 2;
    one.view[i].most_run = 4;
    one.view[i].ran_across = true;
    one.view[i].age.us = 570'000'000;  // 510 s without restarts; with one more of 30 s 600 s
  }
  one.places[0] = {{0, 1, 2}};
  const GoodputSizes sizes = goodput_sizes(one.round(), one.view[0]);
  CHECK(sizes.gpus == std::vector<std::int32_t>{0, 1, 2, 4, 8});
  const ElasticApplication& application = one.applications[one.jobs[0].application];
  const auto step = [&](std::int32_t gpus) {
    return static_cast<double>(application.step_ps(gpus, gpus > 4 ? 2 : 1, 128));
  };
  // An equal share are 4 of the 16 GPUs, and a host has 4.
  const auto cost = [&](double speedup) { return std::llround(1e9 / (speedup + 1e-3)); };
  CHECK(sizes.options[0].cost == cost(0));
  CHECK(sizes.options[1].cost == cost(510.0 / 600 * step(4) / step(1) / 4));
  CHECK(sizes.options[2].cost == cost(step(4) / step(2) / 4));
  CHECK(sizes.options[3].cost == cost(510.0 / 600 / 4));
  CHECK(sizes.options[4].cost == cost(510.0 / 600 * step(4) / step(8) / 4));
  CHECK(sizes.options[4].gpus == 8);
  // What never ran on several hosts is taken to be as fast there as on one.
  one.view[0].ran_across = false;
  const double inside = static_cast<double>(application.step_ps(8, 1, 128));
  CHECK(goodput_sizes(one.round(), one.view[0]).options[4].cost ==
        cost(510.0 / 600 * step(4) / inside / 4));
  // What never ran speeds up in proportion, from one.
  one.view[0].most_run = 0;
  const GoodputSizes first = goodput_sizes(one.round(), one.view[0]);
  CHECK(first.gpus == std::vector<std::int32_t>{0, 1});
  CHECK(first.options[1].cost == cost(510.0 / 600 / 4 / 4));
}

TEST_CASE("a larger job moves one smaller job out of its way", "[elastic]") {
  RandomRound one(32, 7, 2, 8);
  one.question.apart = true;
  for (std::size_t i = 0; i < 6; ++i) one.places[i] = {{i < 3 ? 0 : 1, 1, 2}};
  const std::vector<Grants> before = one.places;
  const std::vector<std::int32_t> gpus = {2, 2, 2, 2, 2, 2, 4};
  std::vector<Grants> next(7);
  place_packed(one.round(), gpus, next);
  CHECK(next[6] == Grants{{0, 1, 4}});
  CHECK(next[0] == Grants{{1, 1, 2}});
  for (std::size_t i = 1; i < 6; ++i) CHECK(next[i] == before[i]);
}

TEST_CASE("what is set aside for a size divides the next larger one", "[elastic]") {
  const auto row = [](std::int32_t host, bool apart) {
    std::vector<std::int32_t> out;
    for (std::int32_t g = 1; g <= 2 * host; ++g) out.push_back(set_aside(g, host, apart));
    return out;
  };
  using Row = std::vector<std::int32_t>;
  CHECK(row(4, true) == Row{1, 2, 4, 4, 8, 8, 8, 8});
  CHECK(row(4, false) == Row{1, 2, 4, 4, 5, 6, 8, 8});
  CHECK(row(8, true) == Row{1, 2, 4, 4, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16});
  CHECK(row(6, false) == Row{1, 3, 3, 6, 6, 6, 7, 9, 9, 12, 12, 12});
  CHECK(row(5, true) == Row{1, 5, 5, 5, 5, 10, 10, 10, 10, 10});
  CHECK(row(1, true) == Row{1, 2});
}

}  // namespace
}  // namespace orrery
