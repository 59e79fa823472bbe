// SPDX-License-Identifier: Apache-2.0
// Tests how schedule is asked when stopped jobs come back, how long gangs hold, whom deadlines
// stop.
#include <catch2/catch.hpp>

#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SortedJson lab(const SortedJson& more) {
  SortedJson settings = {
      {"cluster", "a100-4xhdr200"}, {"gpus", 256},        {"days", 10},
      {"policy", "preempt"},        {"failure_rate", 20}, {"reliability", "rsc1-a100"}};
  settings["jobs"] = SortedJson::array();
  settings["jobs"].push_back({{"mix", "acme-kalos"}, {"per_day", 300}});
  settings.update(more);
  return settings;
}

const SchedulePoint& point(const Scheduled& s) { return s.points.front(); }

FleetTime seconds_of(std::int64_t s) { return {s * 1'000'000}; }

}  // namespace

TEST_CASE("delays after stops are those of the question, or the preset's", "[schedule]") {
  const auto rule = [](const SortedJson& more) {
    return point(scheduled(lab(more))).asked.question.policy.requeue;
  };
  CHECK(rule(SortedJson::object()).first == FleetTime{});
  CHECK(rule({{"requeue_delay", "90 s"}}).first == seconds_of(90));
  CHECK(rule({{"requeue_delay", "90 s"}}).most == FleetTime{});
  CHECK(rule({{"requeue_delay", "90 s"}, {"requeue_most", "1 h"}}).most == seconds_of(3600));
  CHECK(rule({{"policy", "rsc"}}).first == seconds_of(120));
  CHECK(rule({{"policy", "rsc"}}).most == FleetTime{});
  CHECK(rule({{"policy", "rsc"}, {"requeue_delay", "0 s"}}).first == FleetTime{});
  CHECK(rule({{"policy", "kueue-tas"}}).first == seconds_of(10));
  CHECK(rule({{"policy", "kueue-tas"}}).most == seconds_of(360));
  CHECK(rule({{"policy", "kueue-tas"}, {"requeue_most", "10 s"}}).most == seconds_of(10));
  CHECK(rule({{"policy", "slurm-default"}}).first == seconds_of(120));
}

TEST_CASE("a delay after stops lengthens waits for places again", "[schedule]") {
  const auto again = [](const char* delay) {
    const Scheduled s = scheduled(lab({{"requeue_delay", delay}}));
    REQUIRE(point(s).measures.front().stops > 20);
    return point(s).measures.front().waited_again.si();
  };
  CHECK(again("2 h") > again("0 s") + 3600);
}

TEST_CASE("grace is that of the question, and none by itself", "[schedule]") {
  const auto grace = [](const SortedJson& more) {
    return point(scheduled(lab(more))).asked.question.policy.grace;
  };
  CHECK_FALSE(grace(SortedJson::object()));
  CHECK(grace({{"grace", "30 s"}}) == seconds_of(30));
  CHECK(grace({{"grace", "0 s"}}) == FleetTime{});
  const Scheduled list = scheduled(lab({{"grace", {"0 s", "1 h"}}}));
  REQUIRE(list.points.size() == 2);
  CHECK(list.points[1].asked.question.policy.grace == seconds_of(3600));
  // Rounds decide by themselves who leaves.
  const Scheduled rounds = scheduled(lab({{"policy", {"preempt", "goodput"}}, {"grace", "30 s"}}));
  CHECK_FALSE(rounds.points[1].asked.question.policy.grace);
}

TEST_CASE("gangs that are not whole hold accelerators until their timeout", "[schedule]") {
  SortedJson without = lab({{"policy", "gang-timeout"}, {"gang_timeout", "1 h"}});
  without.erase("reliability");
  without.erase("failure_rate");
  const Scheduled s = scheduled(without);
  CHECK(point(s).asked.question.policy.gang_timeout == seconds_of(3600));
  CHECK(point(s).record.gangs.held > 0);
  CHECK(point(s).record.gangs.given_up > 0);
  CHECK(point(s).record.gangs.held <= point(s).record.use.short_of);
}

TEST_CASE("deadlines may stop jobs that have none", "[schedule]") {
  const auto met = [](const char* policy) {
    SortedJson settings = lab({{"policy", policy}});
    settings.erase("reliability");
    settings.erase("failure_rate");
    settings["jobs"] = SortedJson::array();
    settings["jobs"].push_back({{"mix", "acme-kalos"}, {"per_day", 400}});
    settings["jobs"].push_back({{"mix", "acme-seren"}, {"per_day", 200}, {"slack", "1 h"}});
    const Scheduled s = scheduled(settings);
    return point(s).measures.front().deadlines;
  };
  const FleetDeadlines waits = met("deadline"), stops = met("deadline-preempt");
  REQUIRE(waits.jobs == stops.jobs);
  CHECK(stops.met > waits.met);
}

TEST_CASE("delays, timeouts and deadlines that mean nothing are refused", "[schedule]") {
  const auto fails = [](const SortedJson& more, const char* why) {
    const std::string text = schedule_failure(lab(more));
    INFO(text);
    CHECK(text.find(why) != std::string::npos);
  };
  fails({{"requeue_delay", "-1 s"}}, "0 or more");
  fails({{"requeue_delay", "fast"}}, "requeue_delay");
  fails({{"requeue_most", "1 h"}}, "nothing without requeue_delay");
  fails({{"requeue_delay", "2 min"}, {"requeue_most", "1 min"}}, "at least the 120 s");
  fails({{"policy", "goodput"}, {"requeue_delay", "2 min"}}, "rounds");
  fails({{"grace", "-1 s"}}, "0 or more");
  fails({{"policy", "easy"}, {"grace", "30 s"}}, "nothing without a policy that stops jobs");
  fails({{"policy", "goodput"}, {"grace", "30 s"}}, "not in rounds");
  fails({{"gang_timeout", "1 h"}}, "nothing without gang-timeout");
  fails({{"policy", "gang-timeout"}, {"gang_timeout", "0 s"}}, "from 1 s on");
  fails({{"policy", "gang-timeout"}, {"power_limit", "1 MW"}}, "power_limit");
  fails({{"policy", "gang-timeout"}, {"defragment", "pays"}}, "defragment");
  fails({{"policy", "deadline-preempt"}}, "none has one");
  SortedJson healthy = lab({{"policy", "easy"}, {"requeue_delay", "2 min"}});
  healthy.erase("reliability");
  healthy.erase("failure_rate");
  CHECK(schedule_failure(healthy).find("nothing without reliability") != std::string::npos);
}

}  // namespace orrery
