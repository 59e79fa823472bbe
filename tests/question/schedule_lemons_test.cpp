// SPDX-License-Identifier: Apache-2.0
// Tests how schedule is asked for hosts that fail more often than others.
#include <catch2/catch.hpp>

#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SortedJson lab(const SortedJson& more) {
  SortedJson settings = {{"cluster", "a100-4xhdr200"},
                         {"gpus", 2048},
                         {"days", 20},
                         {"reliability", "rsc1-a100"},
                         {"spares", 64},
                         {"failure_rate", 10},
                         {"policy", "easy"}};
  settings["jobs"] = SortedJson::array();
  settings["jobs"].push_back({{"mix", "acme-kalos"}, {"per_day", 400}});
  settings.update(more);
  return settings;
}

const SchedulePoint& point(const Scheduled& s) { return s.points.front(); }

}  // namespace

TEST_CASE("lemons come from the profile, return or are exchanged", "[schedule]") {
  const Scheduled back = scheduled(lab(SortedJson::object()));
  const Scheduled same = scheduled(lab({{"lemons", "return"}}));
  const Scheduled out = scheduled(lab({{"lemons", "out"}, {"lemon_failures", 2}}));
  const Scheduled even = scheduled(lab({{"lemons", "even"}}));
  CHECK(point(back).asked.question.breakdowns.lemons.hosts == 3);  // 1.2% of 256
  CHECK(point(back).asked.question.breakdowns.lemons.share == 0.71);
  CHECK(point(back).record.last_end == point(same).record.last_end);
  CHECK(point(back).record.lemons.struck > 0);
  CHECK(point(back).record.lemons.exchanged == 0);
  CHECK(point(out).record.lemons.exchanged > 0);
  CHECK(point(out).record.breakdowns.front().struck < point(back).record.breakdowns.front().struck);
  CHECK(point(even).asked.question.breakdowns.lemons.hosts == 0);
  CHECK(point(even).record.lemons.struck == 0);
}

TEST_CASE("lemons are refused where nobody knows how many", "[schedule]") {
  const auto fails = [](const SortedJson& more, const char* why) {
    return schedule_failure(lab(more)).find(why) != std::string::npos;
  };
  CHECK(fails({{"reliability", "llama3-h100"}, {"lemons", "out"}}, "has lemon_hosts"));
  CHECK(fails({{"gpus", 128}, {"lemons", "out"}}, "none is a lemon"));
  CHECK(fails({{"lemon_failures", 2}}, "nothing without lemons out"));
  CHECK(fails({{"lemons", "away"}}, "even"));
}

}  // namespace orrery
