// SPDX-License-Identifier: Apache-2.0
// Tests deadlines, delays to cheap and clean hours, and limits of power by the hour, as they are
// asked.
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/question/schedule/schedule.h"
#include "tests/base/scratch_folder.h"
#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SortedJson lab(const SortedJson& more = SortedJson::object()) {
  SortedJson settings = {{"cluster", "dgx-h100"},
                         {"gpus", 256},
                         {"days", 6},
                         {"horizon", "10 day"},
                         {"policy", "easy"}};
  settings["jobs"] = {{{"mix", "acme-kalos"}, {"per_day", 60}, {"slack", "20 h"}},
                      {{"mix", "acme-seren"}, {"per_day", 200}}};
  settings.update(more);
  return settings;
}

// Two values by day and night.
std::string day_and_night(const ScratchFolder& scratch, const std::string& name,
                          const std::string& day, const std::string& night,
                          const std::string& more = "") {
  std::string text = "hour,usd_per_kwh,kg_per_kwh" + more + "\n";
  for (int i = 0; i < 240; ++i)
    text += std::to_string(i) + "," + (i % 24 >= 8 && i % 24 < 20 ? day : night) + "\n";
  return scratch.add(name, text).string();
}

const FleetMeasures& first(const Scheduled& s, std::size_t point = 0) {
  return s.points[point].measures.front();
}

}  // namespace

TEST_CASE("jobs with slack wait for clean or cheap hours, others do not", "[schedule]") {
  const ScratchFolder scratch("schedule_delay");
  const std::string grid = day_and_night(scratch, "grid.csv", "0.05,0.5", "0.15,0.1");
  const Scheduled s = scheduled(lab({{"grid", grid}, {"delay", {"none", "carbon", "price"}}}));
  REQUIRE(s.points.size() == 3);
  const FleetMeasures &none = first(s, 0), &carbon = first(s, 1), &price = first(s, 2);
  CHECK(none.deadlines.delayed == 0);
  CHECK(carbon.deadlines.delayed > 50);
  CHECK(price.deadlines.delayed > 50);
  CHECK(carbon.power.bill->kg < none.power.bill->kg * 0.99);
  CHECK(price.power.bill->dollars < none.power.bill->dollars * 0.99);
  CHECK(carbon.power.bill->kg < price.power.bill->kg);
  CHECK(price.power.bill->dollars < carbon.power.bill->dollars);
  CHECK(carbon.wait.mean() > none.wait.mean());
  for (const SchedulePoint& p : s.points)
    for (std::size_t i = 0; i < p.list->jobs.size(); ++i) {
      const ClusterJob& job = p.list->jobs[i];
      const bool research = p.list->id_of(i).starts_with("acme-kalos");
      REQUIRE((job.deadline == fleet_never) == !research);
      if (research) REQUIRE(job.deadline.us == job.limit.us + INT64_C(72'000'000'000));
      if (!research) REQUIRE(p.record.jobs[i].delayed.us == 0);
      if (p.record.jobs[i].start != fleet_never)
        REQUIRE(p.record.jobs[i].start >= job.submit + p.record.jobs[i].delayed);
    }
}

TEST_CASE("law: a grid that is flat delays nobody", "[schedule]") {
  const ScratchFolder scratch("schedule_flat");
  const std::string grid =
      day_and_night(scratch, "flat.csv", "0.05,0.5,0.2", "0.05,0.5,0.2", ",limit_mw");
  const std::string open = day_and_night(scratch, "open.csv", "0.05,0.5", "0.05,0.5");
  const Scheduled plain = scheduled(lab({{"grid", open}, {"power_limit", "0.2 MW"}}));
  for (const char* delay : {"carbon", "price"}) {
    const Scheduled flat = scheduled(lab({{"grid", grid}, {"delay", delay}}));
    const FleetRecord &a = plain.points[0].record, &b = flat.points[0].record;
    REQUIRE(a.jobs.size() == b.jobs.size());
    for (std::size_t i = 0; i < a.jobs.size(); ++i) {
      REQUIRE(a.jobs[i].start == b.jobs[i].start);
      REQUIRE(a.jobs[i].end == b.jobs[i].end);
      REQUIRE(b.jobs[i].delayed.us == 0);
    }
    CHECK(a.power.nanojoules == b.power.nanojoules);
    CHECK(first(plain).power.bill->kg == first(flat).power.bill->kg);
  }
}

TEST_CASE("limits of power by the hour hold, and are the lower ones of two", "[schedule]") {
  const ScratchFolder scratch("schedule_hourly_limit");
  const std::string grid =
      day_and_night(scratch, "grid.csv", "0.05,0.5,0.1", "0.05,0.5,0.2", ",limit_mw");
  const SortedJson power = {{"grid", grid},
                            {"power_policy", {"admit", "proportional", "priority"}}};
  const Scheduled s = scheduled(lab(power));
  for (const SchedulePoint& p : s.points) {
    REQUIRE(p.asked.question.hours.limits.size() == 240);
    CHECK(p.asked.question.hours.limits[7] == 200'000'000);
    CHECK(p.asked.question.hours.limits[8] == 100'000'000);
    CHECK(p.record.power.suspended > 0);
    CHECK(p.record.power.over.us == 0);
    for (std::size_t hour = 0; hour < p.record.power.hours.size(); ++hour)
      REQUIRE(p.record.power.hours[hour] <=
              static_cast<__int128>(p.asked.question.hours.limits[hour]) * fleet_hour.us);
  }
  // Caps stop fewer jobs than no caps.
  CHECK(s.points[1].record.power.suspended < s.points[0].record.power.suspended);
  const Scheduled lower = scheduled(lab({{"grid", grid}, {"power_limit", "0.15 MW"}}));
  CHECK(lower.points[0].asked.question.hours.limits[7] == 150'000'000);
  CHECK(lower.points[0].asked.question.power_limit_milliwatts == 150'000'000);
}

TEST_CASE("deadlines of a trace are met first by their order", "[schedule]") {
  const ScratchFolder scratch("schedule_deadlines");
  // Four hours of all GPUs each; the first can wait.
  const std::string trace = scratch
                                .add("jobs.csv",
                                     "submit_s,length_s,gpus,id,deadline_s\n0,14400,8,first,\n"
                                     "1,14400,8,late,60000\n2,14400,8,soon,30000\n")
                                .string();
  const SortedJson settings = {{"cluster", "dgx-h100"},
                               {"gpus", 8},
                               {"trace", trace},
                               {"policy", {"fifo", "deadline"}},
                               {"objective", "deadlines"}};
  const Scheduled s = scheduled(settings);
  CHECK(first(s, 0).deadlines.jobs == 2);
  CHECK(first(s, 0).deadlines.met == 1);
  CHECK(first(s, 0).deadlines.late.si() == Approx(3 * 14400 - 30002));
  CHECK(first(s, 1).deadlines.met == 2);
  CHECK(first(s, 1).deadlines.late.si() == 0);
  CHECK(s.best == 1);
  // The same as lines of JSON, and with slack in place of what the trace says.
  SortedJson lines = settings;
  lines["trace"] =
      scratch
          .add("jobs.jsonl",
               "{\"submit_s\": 0, \"length_s\": 14400, \"gpus\": 8}\n"
               "{\"submit_s\": 1, \"length_s\": 14400, \"gpus\": 8, \"deadline_s\": 60000}\n"
               "{\"submit_s\": 2, \"length_s\": 14400, \"gpus\": 8, \"deadline_s\": 30000}\n")
          .string();
  CHECK(first(scheduled(lines), 1).deadlines.met == 2);
  SortedJson slack = settings;
  slack.erase("trace");
  slack["jobs"] = {{{"trace", trace}, {"slack", 0.5}}};
  for (const ClusterJob& job : scheduled(slack).points[0].list->jobs)
    CHECK(job.deadline.us == INT64_C(21'600'000'000));
  SortedJson limited = settings;
  limited["limits"] = "deadlines=0.9";
  CHECK(!scheduled(limited).points[0].kept);
  CHECK(scheduled(limited).points[1].kept);
}

TEST_CASE("bad deadlines and hours have one line", "[schedule]") {
  const ScratchFolder scratch("schedule_bad_hours");
  const std::string grid = day_and_night(scratch, "grid.csv", "0.05,0.5", "0.15,0.1");
  const auto failure = [&](const SortedJson& more) { return schedule_failure(lab(more)); };
  CHECK(failure({{"delay", "carbon"}}) ==
        "test: delay: found \"carbon\"; expected nothing without grid: it has the hours");
  CHECK(failure({{"grid", grid}, {"delay", "cheap"}}).find("none, price, carbon") !=
        std::string::npos);
  const SortedJson plain = {{{"mix", "acme-kalos"}, {"per_day", 60}}};
  CHECK(failure({{"grid", grid}, {"delay", "price"}, {"jobs", plain}})
            .find("jobs with a deadline or slack beside it: none has one") != std::string::npos);
  CHECK(failure({{"policy", "deadline"}, {"jobs", plain}})
            .find("jobs with a deadline or slack beside it: none has one") != std::string::npos);
  const auto of_mix = [&](const SortedJson& more) {
    SortedJson entry = plain[0];
    entry.update(more);
    return failure({{"jobs", {entry}}});
  };
  CHECK(of_mix({{"slack", "6 h"}, {"deadline", "8 h"}}).find("nothing beside deadline") !=
        std::string::npos);
  CHECK(of_mix({{"slack", -0.5}}).find("a share of the limit from 0 to 1,000") !=
        std::string::npos);
  SortedJson training = {{"id", "late"},
                         {"length", "20 h"},
                         {"model", "llama3-8b"},
                         {"gpus", 64},
                         {"seq", 8192},
                         {"global_batch", 256},
                         {"deadline", "19 h"},
                         {"stack", "megatron-core"},
                         {"tp", 2},
                         {"pp", 1}};
  CHECK(failure({{"jobs", {training}}}) ==
        "test: jobs[0].deadline: found \"19 h\"; expected at least the 20 h that it takes alone");
  const std::string dark =
      day_and_night(scratch, "dark.csv", "0.05,0.5,0.01", "0.15,0.1,0.2", ",limit_mw");
  CHECK(failure({{"grid", dark}}).find("0.01 MW in hour 8; expected limits above the ") !=
        std::string::npos);
  const std::string none =
      day_and_night(scratch, "none.csv", "0.05,0.5,0", "0.15,0.1,0.2", ",limit_mw");
  CHECK(failure({{"grid", none}}).find("megawatts above 0") != std::string::npos);
  const std::string over =
      scratch.add("over.csv", "submit_s,length_s,gpus,deadline_s\n0,100,8,99\n").string();
  CHECK(schedule_failure({{"cluster", "dgx-h100"}, {"gpus", 8}, {"trace", over}})
            .find("line 2, column deadline_s: found a deadline of 99 s below the length of 100 s; "
                  "expected a deadline of at least the length") != std::string::npos);
}

}  // namespace orrery
