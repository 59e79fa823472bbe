// SPDX-License-Identifier: Apache-2.0
// Tests laws of feeds of power: none carries more than its limit, and one above all is that limit.
#include "sim/engine/power/feed_budget.h"

#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/placer.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/cap_case.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3600 * second;

SlotShape twelve_hosts() {
  return {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 8, .levels = {{"leaf group", 4}}};
}

// Racks of two hosts, rows of four, halls of eight (the second one has four).
FeedTree tree(std::int64_t rack, std::int64_t row, std::int64_t hall) {
  return {{"rack", 2, rack, 0}, {"row", 4, row, 0.6}, {"hall", 8, hall, 0.5}};
}

CapCurve curve(double watts) { return halved_curve(watts, 2.5); }

PowerThresholds thresholds() {
  return {.first = 0.8,
          .second = 0.89,
          .release = 0.05,
          .low = 27,
          .lower = 3,
          .high = 31,
          .high_from = 2};
}

PowerRules rules_of(PowerPolicy policy) {
  return {.idle = 100'000,
          .gpus = 96,
          .policy = policy,
          .feeds = true,
          .drawn = {750'000, 650'000},
          .curves = {curve(700), curve(600)},
          .thresholds = thresholds()};
}

TEST_CASE("feeds are numbered level by level", "[power]") {
  const std::vector<PowerFeed> feeds = feeds_of(tree(1, 2, 3), 12);
  REQUIRE(feeds.size() == 6 + 3 + 2);
  CHECK(feeds[5].name == "rack 5");
  CHECK(feeds[5].from == 10);
  CHECK(feeds[10].name == "hall 1");
  CHECK(feeds[10].to == 12);
  CHECK(feeds_of({{"facility", 12, 7, 0}}, 12).front().name == "facility");
}

// Hosts that are free as a whole and that feeds let a gang have: of a feed as many as it carries,
// and as those below it give.
std::int64_t most_whole(const FeedBudget& budget, const FeedLoads& loads, const Slots& slots,
                        std::int64_t each, const PowerFeed& outer, std::size_t level) {
  constexpr std::int32_t reaches[] = {1, 2, 4, 8, 12};
  std::int64_t sum = 0;
  if (level == 0) {
    sum = slots.free_of(outer.from) == 8 ? 1 : 0;
  } else {
    for (std::int32_t from = outer.from; from < outer.to; from += reaches[level - 1])
      sum += most_whole(budget, loads, slots, each,
                        {.from = from, .to = std::min(outer.to, from + reaches[level - 1])},
                        level - 1);
  }
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const PowerFeed& feed = budget.feeds()[i];
    const bool same = feed.from == outer.from && feed.to == outer.to;
    if (same && feed.limit > 0)
      sum = std::min(sum, std::max<std::int64_t>(0, feed.limit - loads[i]) / each / 8);
  }
  return sum;
}

TEST_CASE("law: what feeds leave of the hosts is all that they can carry", "[power]") {
  const std::uint64_t seed = fresh(61);
  INFO("seed " << seed);
  const PowerBudget power(rules_of(PowerPolicy::admit));
  std::int64_t refused = 0;
  for (std::uint64_t round = 0; round < 400; ++round) {
    RandomStream random(seed + round, 2);
    const auto limit = [&](std::int64_t least, std::uint64_t more) {
      return least + static_cast<std::int64_t>(random.below(more));
    };
    FeedBudget budget(tree(limit(2'000'000, 10'000'000), limit(6'000'000, 16'000'000),
                           limit(12'000'000, 32'000'000)),
                      twelve_hosts(), power);
    Slots slots(twelve_hosts());
    for (std::int32_t host = 0; host < 12; ++host)
      if (random.below(2) == 0) {
        const Grants taken{{host, 1, static_cast<std::int32_t>(1 + random.below(8))}};
        slots.take(taken);
        budget.begin(static_cast<std::uint32_t>(host), {1, 0}, taken);
      }
    const std::int64_t each = power.extra({0, 0}, 1);
    Slots view = slots;
    budget.narrow(budget.loads(), each, view);
    Placer placer(JobPlace::pack, 0);
    // One host is enough.
    for (std::int32_t gpus = 1; gpus <= 8; ++gpus) {
      bool any = false;
      for (std::int32_t host = 0; host < 12; ++host) {
        bool carried = slots.free_of(host) >= gpus;
        for (std::size_t i = 0; i < budget.feeds().size(); ++i) {
          const PowerFeed& feed = budget.feeds()[i];
          if (host >= feed.from && host < feed.to)
            carried = carried && budget.loads()[i] + gpus * each <= feed.limit;
        }
        any = any || carried;
      }
      REQUIRE(Placer::fits(view, gpus) == any);
      refused += Placer::fits(slots, gpus) && !any ? 1 : 0;
    }
    std::int64_t whole = 0;
    for (std::int32_t from = 0; from < 12; from += 8)
      whole += most_whole(budget, budget.loads(), slots, each,
                          {.from = from, .to = std::min(12, from + 8)}, 3);
    if (whole > 0) REQUIRE(Placer::fits(view, static_cast<std::int32_t>(whole) * 8));
    REQUIRE_FALSE(Placer::fits(view, static_cast<std::int32_t>(whole + 1) * 8));
    // A place that is found breaks no feed.
    for (const std::int32_t gpus : {3, 8, 12, 16, 29, 48}) {
      Grants place;
      if (!placer.find(view, gpus, place)) continue;
      FeedLoads loads = budget.loads();
      budget.add(loads, place, each, 1);
      for (std::size_t i = 0; i < loads.size(); ++i)
        REQUIRE((loads[i] <= budget.feeds()[i].limit || loads[i] == budget.loads()[i]));
    }
  }
  CHECK(refused > 50);
}

struct Running {
  PowerUser user;
  Grants place;
};

std::int64_t level_of(const PowerBudget& power, std::uint32_t number, const Running& job) {
  const CapCurve& of = job.user.work == 0 ? curve(700) : curve(600);
  for (std::size_t level = 0; level <= cap_steps; ++level)
    if (of[level].slower == power.slower(number)) return static_cast<std::int64_t>(level);
  FAIL("no such level");
  return 0;
}

TEST_CASE("law: caps keep every feed, and one above all is the limit of all", "[power]") {
  const std::uint64_t seed = fresh(61);
  INFO("seed " << seed);
  std::int64_t capped = 0;
  for (const PowerPolicy policy :
       {PowerPolicy::proportional, PowerPolicy::priority, PowerPolicy::thresholds})
    for (const bool one : {false, true}) {
      RandomStream random(seed, 3);
      PowerBudget power(rules_of(policy));
      PowerRules alone_rules = rules_of(policy);
      alone_rules.feeds = false;
      alone_rules.limit = 45'000'000;
      PowerBudget alone(alone_rules);
      const FeedTree single = {{"facility", 12, 45'000'000, 0}};
      FeedBudget feeds(one ? single : tree(9'000'000, 17'000'000, 33'000'000), twelve_hosts(),
                       power);
      Slots slots(twelve_hosts());
      std::map<std::uint32_t, Running> jobs;
      for (std::uint32_t step = 0; step < 2000; ++step) {
        if (!jobs.empty() && random.below(2) == 0) {
          auto job = jobs.begin();
          std::advance(job, static_cast<std::ptrdiff_t>(random.below(jobs.size())));
          const std::int32_t gpus = gpus_of_place(job->second.place);
          power.end(job->first, job->second.user, gpus);
          alone.end(job->first, job->second.user, gpus);
          feeds.end(job->first, job->second.user, job->second.place);
          slots.give(job->second.place);
          jobs.erase(job);
        } else {
          Running job{{static_cast<std::uint16_t>(random.below(2)),
                       static_cast<std::int32_t>(random.below(3))},
                      {}};
          const std::int32_t gpus = drawn_gpus(random, 40);
          Placer placer(JobPlace::spread, 0);
          Slots view = slots;
          feeds.narrow(feeds.loads(), power.extra(job.user, 1), view);
          if (!placer.find(view, gpus, job.place)) continue;
          slots.take(job.place);
          power.begin(step, job.user, gpus);
          alone.begin(step, job.user, gpus);
          feeds.begin(step, job.user, job.place);
          jobs[step] = job;
        }
        for (const auto& [job, level] : feeds.settle()) power.set_ceiling(job, level);
        static_cast<void>(power.settle());
        static_cast<void>(alone.settle());
        REQUIRE_FALSE(feeds.is_over());
        std::vector<std::int64_t> drawn;
        std::int64_t all = 0;
        for (const PowerFeed& feed : feeds.feeds()) {
          const std::int64_t idle = std::int64_t{feed.to - feed.from} * 800'000;
          drawn.push_back(idle);
        }
        for (const auto& [number, job] : jobs) {
          const std::int64_t level = level_of(power, number, job);
          capped += level < cap_steps ? 1 : 0;
          if (one) REQUIRE(power.slower(number) == alone.slower(number));
          FeedLoads more(drawn.size());
          feeds.add(more, job.place, power.at(job.user.work, level) - 100'000, 1);
          for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] += more[i];
          all += (power.at(job.user.work, level) - 100'000) * gpus_of_place(job.place);
        }
        for (std::size_t i = 0; i < drawn.size(); ++i) REQUIRE(drawn[i] <= feeds.feeds()[i].limit);
        REQUIRE(power.drawn() == all + 96 * 100'000);
        if (one) REQUIRE(power.drawn() == alone.drawn());
      }
    }
  CHECK(capped > 1000);
}

ClusterJobs jobs_of(std::uint64_t seed) {
  return drawn_jobs(seed, 250, 2500, {second}, [](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(random.below(20'000'000'000));
    job.limit = job.length;
    job.gpus = drawn_gpus(random, 48);
    job.work = static_cast<std::uint16_t>(random.below(2));
    job.priority = static_cast<std::int16_t>(random.below(3));
  });
}

FleetQuestion limited(PowerPolicy policy) {
  FleetQuestion question;
  question.shape = twelve_hosts();
  question.policy.fit = JobFit::easy;
  question.policy.place = JobPlace::least_level;
  question.works = {{.save_steps = hour, .milliwatts = 750'000},
                    {.save_steps = hour, .milliwatts = 650'000}};
  question.idle_milliwatts = 100'000;
  question.power_policy = policy;
  question.thresholds = thresholds();
  if (policy != PowerPolicy::admit) question.cap_curves = {curve(700), curve(600)};
  return question;
}

TEST_CASE("law: a feed above all is the limit of power", "[fleet]") {
  const std::uint64_t seed = fresh(61);
  INFO("seed " << seed);
  const ClusterJobs list = jobs_of(seed);
  for (const PowerPolicy policy : {PowerPolicy::admit, PowerPolicy::proportional,
                                   PowerPolicy::priority, PowerPolicy::thresholds}) {
    FleetQuestion whole = limited(policy), feed = limited(policy), open = limited(policy),
                  free = limited(policy);
    whole.power_limit_milliwatts = 50'000'000;
    feed.feeds = {{"facility", 12, 50'000'000, 0}};
    free.feeds = {{"facility", 12, 0, 0}};
    const auto same = [&](const FleetRecord& a, const FleetRecord& b) {
      CHECK(a.power.nanojoules == b.power.nanojoules);
      CHECK(a.power.most_milliwatts == b.power.most_milliwatts);
      CHECK(a.use.work.capped == b.use.work.capped);
      for (std::size_t i = 0; i < list.jobs.size(); ++i) {
        REQUIRE(a.jobs[i].start == b.jobs[i].start);
        REQUIRE(a.jobs[i].end == b.jobs[i].end);
      }
    };
    const FleetRecord limit = run_fleet(list, whole);
    same(limit, run_fleet(list, feed));
    CHECK(limit.power.most_milliwatts <= 50'000'000);
    const FleetRecord none = run_fleet(list, open);
    same(none, run_fleet(list, free));
    CHECK(none.power.most_milliwatts > 50'000'000);
  }
}

Incident lost(RandomStream& random, const FeedTree& feeds) {
  const std::vector<PowerFeed> all = feeds_of(feeds, 12);
  const std::size_t feed = 6 + random.below(5);  // a row or a hall
  return {.name = all[feed].name,
          .at = {static_cast<std::int64_t>(random.below(250'000)) * second},
          .length = {static_cast<std::int64_t>(1 + random.below(20'000)) * second},
          .feed = static_cast<std::int32_t>(feed),
          .limit_left = all[feed].limit * (feed < 9 ? 6 : 5) / 10};
}

TEST_CASE("law: no feed carries more than its limit, lost ones included", "[fleet]") {
  const std::uint64_t seed = fresh(61);
  INFO("seed " << seed);
  std::int64_t stopped = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    RandomStream random(seed + round, 5);
    constexpr PowerPolicy policies[] = {PowerPolicy::admit, PowerPolicy::proportional,
                                        PowerPolicy::priority, PowerPolicy::thresholds};
    const PowerPolicy policy = policies[round / 6];
    FleetQuestion question = limited(policy);
    question.feeds = tree(9'000'000, 19'000'000, 34'000'000);
    question.policy.preempts = round % 2 == 0;
    if (round % 2 == 0) question.policy.order = JobOrder::priority;
    if (round % 3 == 0) question.policy.fit = JobFit::block;
    if (round % 4 == 1)
      question.breakdowns.kinds = {{"host", Hertz(1 / 9000.0), 1, 0.7, seconds(20'000), {}, {}}};
    for (int i = 0; i < 12; ++i)
      question.breakdowns.incidents.push_back(lost(random, question.feeds));
    const ClusterJobs list = jobs_of(seed + round);
    std::map<std::uint32_t, Grants> held;
    question.tell = [&](const FleetEvent& event) {
      using enum FleetEventKind;
      if (event.kind == start) held[event.job] = *event.place;
      if (event.kind == end || event.kind == stop || event.kind == cut) held.erase(event.job);
    };
    const std::vector<PowerFeed> feeds = feeds_of(question.feeds, 12);
    question.look = [&](FleetTime now, const Slots&) {
      std::vector<std::int64_t> on(12, 800'000);
      for (const auto& [job, place] : held)
        for (const HostGrant& grant : place)
          for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
            on[static_cast<std::size_t>(host)] +=
                grant.gpus * (question.works[list.jobs[job].work].milliwatts - 100'000);
      for (std::size_t i = 0; i < feeds.size(); ++i) {
        std::int64_t limit = feeds[i].limit, drawn = 0;
        for (const Incident& one : question.breakdowns.incidents)
          if (one.feed == static_cast<std::int32_t>(i) && one.at <= now &&
              now < one.at + one.length)
            limit = one.limit_left;
        for (std::int32_t host = feeds[i].from; host < feeds[i].to; ++host)
          drawn += on[static_cast<std::size_t>(host)];
        // What caps leave of it is told by the run alone.
        if (policy == PowerPolicy::admit) REQUIRE(drawn <= limit);
      }
    };
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.power.over.us == 0);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    CHECK((record.use.work.capped > 0) == (policy != PowerPolicy::admit));
    for (std::size_t i = 0; i < list.jobs.size(); ++i)
      REQUIRE((record.jobs[i].rejected || record.jobs[i].end != fleet_never));
    for (const IncidentCount& count : record.incidents) stopped += count.stopped;
  }
  CHECK(stopped > 40);
}

// Who may not be stopped runs on, and the time above the limit is told.
TEST_CASE("a feed that lost a supply caps jobs, stops some, or is above its limit", "[fleet]") {
  ClusterJobs list;
  for (int i = 0; i < 4; ++i)
    list.jobs.push_back({.length = {10 * hour},
                         .limit = {10 * hour},
                         .gpus = 8,
                         .priority = static_cast<std::int16_t>(i)});
  FleetQuestion question = limited(PowerPolicy::proportional);
  question.policy.place = JobPlace::pack;
  question.feeds = {{"row", 4, 24'000'000, 0.6}};
  const auto with_left = [&](std::int64_t left) {
    question.breakdowns.incidents = {
        {.name = "row 0", .at = {hour}, .length = {2 * hour}, .feed = 0, .limit_left = left}};
    return run_fleet(list, question);
  };
  // 24 MW for four times six; at their least caps (400 W) they draw 12.8 MW.
  const FleetRecord capped = with_left(13'000'000);
  CHECK(capped.incidents.front().stopped == 0);
  CHECK(capped.use.work.capped > 0);
  CHECK(capped.jobs[0].end > FleetTime{10 * hour});
  CHECK(capped.power.over.us == 0);
  // 800 W idle a host: the lowest priority goes, and is placed elsewhere at once.
  const FleetRecord fewer = with_left(12'000'000);
  CHECK(fewer.incidents.front().stopped == 1);
  CHECK(fewer.jobs[0].preemptions == 1);
  CHECK(fewer.jobs[1].preemptions == 0);
  CHECK(fewer.power.over.us == 0);
  for (ClusterJob& job : list.jobs) job.preemptible = false;
  const FleetRecord over = with_left(12'000'000);
  CHECK(over.incidents.front().stopped == 0);
  CHECK(over.power.over == FleetTime{2 * hour});
}

}  // namespace
}  // namespace orrery
