// SPDX-License-Identifier: Apache-2.0
// Tests a cluster as it is now: no rule lets a job that waits pass one that runs.
#include <catch2/catch.hpp>

#include <map>
#include <string>

#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

const std::string now = ORRERY_SOURCE_DIR "/tests/schedule/squeue.txt";
constexpr std::int64_t second = 1'000'000;

SortedJson on_64(const SortedJson& more) {
  SortedJson settings = {{"cluster", "dgx-h100"}, {"gpus", 64}};
  settings.update(more);
  return settings;
}

std::map<std::string, JobRecord> records(const SchedulePoint& point, std::size_t jobs) {
  std::map<std::string, JobRecord> out;
  for (std::size_t i = 0; i < jobs; ++i) out[point.list->id_of(i)] = point.record.jobs[i];
  return out;
}

}  // namespace

TEST_CASE("jobs that run go on, whatever the rule", "[now]") {
  const Scheduled out =
      scheduled(on_64({{"trace", now},
                       {"policy",
                        {"fifo", "sjf", "easy", "sjf-easy", "conservative", "priority",
                         "priority-easy", "preempt", "las", "slurm-default", "max-min"}}}));
  REQUIRE(out.points.size() == 11);
  for (const SchedulePoint& point : out.points) {
    REQUIRE(point.list->jobs.size() == 18);
    std::int64_t running = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      INFO(point.list->id_of(i));
      CHECK(point.record.jobs[i].start == FleetTime{});
      running += point.list->jobs[i].gpus;
    }
    CHECK(running == 60);
    for (std::size_t i = 8; i < 18; ++i) CHECK(point.record.jobs[i].start > FleetTime{});
  }
}

TEST_CASE("a waiting job starts as running ones reach their limits", "[now]") {
  const Scheduled out = scheduled(on_64({{"trace", now}, {"policy", "easy"}, {"job", "91204"}}));
  REQUIRE(out.points.size() == 1);
  auto record = records(out.points[0], 18);
  // 4 GPUs are free and 32 wanted; at 12,000 s the last but one of the running jobs has ended.
  CHECK(record.at("91204").start.us == 12'000 * second);
  CHECK(record.at("91204").end.us == (12'000 + 43'200) * second);
  CHECK(record.at("91188_7").start.us == 751 * second);  // as the first one ends
  CHECK(out.watches);
}

TEST_CASE("jobs that come stand behind those that are there", "[now]") {
  const Scheduled out =
      scheduled(on_64({{"days", 2},
                       {"policy", "fifo"},
                       {"jobs", {{{"trace", now}}, {{"mix", "philly"}, {"per_day", 20}}}}}));
  REQUIRE(out.points.size() == 1);
  const ClusterJobs& list = *out.points[0].list;
  REQUIRE(list.jobs.size() > 25);
  CHECK(list.id_of(0) == now + ":91101");
  CHECK(list.id_of(17) == now + ":91230");
  CHECK(list.id_of(18).starts_with("philly"));
  for (std::size_t i = 18; i < list.jobs.size(); ++i) CHECK(list.jobs[i].submit.us > second);
}

}  // namespace orrery
