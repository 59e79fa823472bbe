// SPDX-License-Identifier: Apache-2.0
// Tests served models and waiting requests as jobs of a cluster.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "sim/base/errors/cannot_exist.h"
#include "sim/question/schedule/schedule.h"
#include "tests/base/scratch_folder.h"
#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SortedJson engine() {
  return {
      {"model", "llama3.1-8b"}, {"stack", "vllm"}, {"engines", "TP8"}, {"isl", 200}, {"osl", 20}};
}

SortedJson chat(const SortedJson& more) {
  SortedJson serve = engine();
  serve["slo"] = "ttft.p90=1s";
  SortedJson entry = {{"id", "chat"}, {"load", "10/s"}, {"serve", serve}};
  if (!more.is_null()) entry.update(more);
  return entry;
}

SortedJson lab(const std::vector<SortedJson>& jobs, const SortedJson& more = SortedJson::object()) {
  SortedJson settings = {
      {"cluster", "dgx-h100"}, {"gpus", 16}, {"horizon", "1 day"}, {"policy", "preempt"}};
  settings["jobs"] = jobs;
  settings.update(more);
  return settings;
}

std::size_t place_of(const SchedulePoint& point, const std::string& id) {
  for (std::size_t i = 0; i < point.list->jobs.size(); ++i)
    if (point.list->id_of(i) == id) return i;
  FAIL("no job " << id);
  return 0;
}

constexpr FleetTime hours(double n) { return {static_cast<std::int64_t>(n * 3.6e9)}; }

bool alike(const JobRecord& a, const JobRecord& b) {
  return a.start == b.start && a.end == b.end && a.promise == b.promise && a.hosts == b.hosts &&
         a.groups == b.groups && a.rejected == b.rejected && a.stops == b.stops &&
         a.preemptions == b.preemptions && a.waited_again == b.waited_again;
}

double sum_of(const FleetShares& s) {
  return s.useful + s.standby + s.in_vain + s.slowed + s.saving + s.starting + s.lost +
         s.preempted + s.short_of + s.scattered + s.spare + s.repair + s.idle;
}

}  // namespace

// A flat load and a fixed number of replicas that start in no time: jobs as any others.
TEST_CASE("a service that never changes is so many rigid jobs", "[service]") {
  const ScratchFolder scratch("service_jobs");
  std::string others = "id,submit_s,length_s,gpus\n";
  for (int i = 0; i < 40; ++i)
    others += "o" + std::to_string(i) + "," + std::to_string(2000 * i) + "," +
              std::to_string(1000 + 700 * (i % 9)) + "," + std::to_string(2 << (i % 4)) + "\n";
  std::string rigid = "id,submit_s,length_s,gpus\n";
  for (int i = 0; i < 3; ++i) rigid += "r" + std::to_string(i) + ",0,86400,8\n";
  const SortedJson other = {{"trace", scratch.add("others.csv", others).string()}};
  for (const char* policy : {"fifo", "easy"}) {
    const SortedJson on_48 = {{"gpus", 48}, {"policy", policy}};
    const SortedJson replicas =
        chat({{"start", "0 s"}, {"most", 3}, {"least", 3}, {"priority", 0}});
    SortedJson fixed = lab({other, replicas}, on_48);
    fixed["scale"] = "fixed";
    const Scheduled served = scheduled(fixed);
    const Scheduled plain =
        scheduled(lab({other, {{"trace", scratch.add("rigid.csv", rigid).string()}}}, on_48));
    const std::vector<JobRecord>& a = served.points.at(0).record.jobs;
    const std::vector<JobRecord>& b = plain.points.at(0).record.jobs;
    REQUIRE(a.size() == 43);
    REQUIRE(b.size() == 43);
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO(policy << ", job " << i);
      CHECK(alike(a[i], b[i]));
    }
    CHECK(served.points.at(0).record.use.all == plain.points.at(0).record.use.all);
    CHECK(served.points.at(0).record.use.short_of == plain.points.at(0).record.use.short_of);
    // Waits and completions are those of the others alone.
    CHECK(served.points.at(0).measures.at(0).submitted == 40);
    CHECK(plain.points.at(0).measures.at(0).submitted == 43);
  }
}

// Replicas of each scale are other jobs, so that a training stands elsewhere in each list.
TEST_CASE("a training is told of by its own record, whatever replicas come", "[service]") {
  const SortedJson training = {
      {"id", "t"},         {"submit", "2 h"}, {"steps", 500}, {"gpus", 8}, {"model", "llama3-8b"},
      {"global_batch", 8}, {"seq", 8192},     {"dp", 8},      {"zero", 3}, {"recompute", "full"}};
  const Scheduled out = scheduled(
      lab({chat({{"load", "daily:7h:1/s:12h:1000/s:5h:1/s"}, {"most", 2}, {"start", "5 min"}}),
           training},
          {{"scale", {"fixed", "expected"}}, {"gpus", 32}}));
  REQUIRE(out.points.size() == 2);
  CHECK(place_of(out.points[0], "t") != place_of(out.points[1], "t"));
  for (const SchedulePoint& point : out.points) {
    REQUIRE(point.trainings.size() == 1);
    CHECK(alike(point.trainings[0], point.record.jobs[place_of(point, "t")]));
    CHECK(point.trainings[0].start == hours(2));
  }
}

// By night one replica bears the load, and a job of eight accelerators runs beside it. At 7 o'clock
// a second one comes and stops it; by 19 o'clock it goes on.
TEST_CASE("nights lend accelerators, and mornings take them back", "[service]") {
  const ScratchFolder scratch("service_nights");
  const std::string job = scratch.add("job.csv", "id,submit_s,length_s,gpus\nj,60,43200,8\n");
  const SortedJson settings =
      lab({chat({{"load", "daily:7h:1/s:12h:1000/s:5h:1/s"}, {"most", 2}, {"start", "5 min"}}),
           {{"trace", job}}},
          {{"scale", {"expected", "fixed", "observed"}}, {"save_interval", "10 min"}});
  const Scheduled out = scheduled(settings);
  REQUIRE(out.points.size() == 3);
  const SchedulePoint &expected = out.points[0], &fixed = out.points[1], &observed = out.points[2];
  const auto record = [](const SchedulePoint& point, const std::string& id) {
    return point.record.jobs[place_of(point, id)];
  };
  const std::string j = "job.csv:j";
  const std::size_t at = [&] {
    for (std::size_t i = 0; i < expected.list->jobs.size(); ++i)
      if (expected.list->jobs[i].work == 0) return i;
    return std::size_t{0};
  }();
  const JobRecord& lent = expected.record.jobs[at];
  CHECK(lent.start == FleetTime{});
  CHECK(lent.preemptions == 1);
  // Checks are at 0:05, 0:10, ..: that of 7:00 needs the replica, which starts at 6:55.
  const JobRecord second = record(expected, "chat:2.1");
  CHECK(second.start == hours(7) - hours(1.0 / 12));
  CHECK(second.end == hours(19));
  CHECK(lent.waited_again == hours(19) - second.start);
  CHECK(lent.end > hours(23));
  // Where both stand always nothing is lent, and the job does not start.
  CHECK(fixed.measures.at(0).queued == 1);
  CHECK(fixed.measures.at(0).services.at(0).standby_gpu_hours == Approx(8 * (12 - 1.0 / 12)));
  CHECK(expected.measures.at(0).services.at(0).standby_gpu_hours < 0.5);
  CHECK(expected.measures.at(0).services.at(0).gpu_hours <
        fixed.measures.at(0).services.at(0).gpu_hours - 8 * 11);
  // Whoever reacts serves half of the load until it has started.
  const ServiceMeasures &all = expected.measures.at(0).services.at(0),
                        &late = observed.measures.at(0).services.at(0);
  CHECK(late.refused > all.refused);
  CHECK(late.worst_hour < all.worst_hour);
  CHECK(late.worst_at <= hours(7));
  CHECK(late.worst_at > hours(6));
  CHECK(late.kept < all.kept);
  for (const SchedulePoint& point : out.points)
    CHECK(sum_of(point.measures.at(0).shares) == Approx(1));
}

TEST_CASE("the share of kept promises is an objective and a limit", "[service]") {
  SortedJson settings = lab({chat({{"load", "daily:7h:1/s:12h:1000/s:5h:1/s"}, {"most", 2}})},
                            {{"scale", {"observed", "expected"}}, {"objective", "slo"}});
  settings["limits"] = "slo=0.9999";
  const Scheduled best = scheduled(settings);
  CHECK(best.best == 1);
  CHECK(best.exists());
  CHECK(!best.points.at(0).kept);
  CHECK(schedule_failure(
            lab({{{"mix", "acme-kalos"}, {"per_day", 10}}}, {{"days", 1}, {"objective", "slo"}})) ==
        "test: objective: found \"slo\"; expected another figure than slo: no model is served");
  CHECK(schedule_failure(
            lab({{{"mix", "acme-kalos"}, {"per_day", 10}}}, {{"days", 1}, {"limits", "slo=0.9"}}))
            .find("no model is served") != std::string::npos);
}

// Replicas of a cluster that breaks are away for a while: of those, requests are refused.
TEST_CASE("what breaks costs a service requests", "[service]") {
  SortedJson settings =
      lab({chat({{"load", "1500/s"}, {"most", 2}})}, {{"gpus", 24},
                                                      {"horizon", "60 day"},
                                                      {"reliability", "llama3-h100"},
                                                      {"failure_rate", 100},
                                                      {"spares", 8}});
  const SchedulePoint point = scheduled(settings).points.at(0);
  const ServiceMeasures& m = point.measures.at(0).services.at(0);
  CHECK(point.measures.at(0).stops > 10);
  CHECK(m.replicas < 2);
  CHECK(m.replicas > 1.5);
  // What both together could bear is refused as one of them is away, or both.
  const FleetService& service = point.asked.jobs->served.at(0).service;
  CHECK(m.refused == Approx(1 - m.replicas * service.rule.bears / 1500));
  CHECK(m.requests == Approx(1500 * to_seconds(service.close - service.open).si()));
  CHECK(m.worst_hour < 0.9 * m.kept);
}

TEST_CASE("requests that wait take as long as saturated engines need", "[service]") {
  const SortedJson offline = {{"id", "offline"}, {"batch", engine()}, {"requests", 1e7},
                              {"replicas", 2},   {"chunk", 1000},     {"start", "0 s"}};
  const Scheduled out = scheduled(lab({offline}));
  const BatchInference& batch = out.points.at(0).asked.jobs->batches.at(0);
  CHECK(batch.job.gpus == 16);
  CHECK(to_seconds(batch.job.length).si() == Approx(1e7 / batch.rate).epsilon(1e-6));
  SortedJson one = offline;
  one["gpus"] = 8;
  one.erase("replicas");
  const Scheduled half = scheduled(lab({one}));
  CHECK(half.points.at(0).asked.jobs->batches.at(0).rate == Approx(batch.rate / 2));
  // Stopped, it keeps whole chunks: at most one of a thousand requests is computed again.
  SortedJson short_one = offline;
  short_one["requests"] = std::floor(batch.rate * 3600);
  const ScratchFolder scratch("service_batch");
  const std::string job =
      scratch.add("job.csv", "id,submit_s,length_s,gpus\nx,0,1,8\nj,1234,100,16\n");
  const Scheduled stopped =
      scheduled(lab({short_one, {{"trace", job}, {"priority", 5}}}, {{"save_interval", "1 h"}}));
  const SchedulePoint& point = stopped.points.at(0);
  const JobRecord& record = point.record.jobs[place_of(point, "offline")];
  CHECK(record.preemptions == 1);
  const double longer = to_seconds(record.end - record.start - record.waited_again).si() - 3600;
  CHECK(longer >= -0.01);
  CHECK(longer <= 1000 / batch.rate + 0.01);
  CHECK(record.waited_again == FleetTime{100'000'000});
}

TEST_CASE("bad questions of served models are told", "[service]") {
  const auto told = [](const SortedJson& entry, const SortedJson& more = SortedJson::object()) {
    return schedule_failure(lab({entry}, more));
  };
  const auto has = [](const std::string& text, const char* words) {
    INFO(text);
    CHECK(text.find(words) != std::string::npos);
  };
  has(told(chat({{"lod", 1}})), "did you mean");
  has(told(chat({{"load", "12"}})), "such as \"12/s\"");
  has(told(chat({{"load", "poisson:12/s"}})), "daily:8h:2/s:16h:12/s");
  has(told(chat({{"load", "daily:1s:2/s"}})), "a minute or longer");
  has(told(chat({{"load", {{"peak", "12/s"}, {"by_hour", {1, 2}}}}})), "24 shares");
  has(told(chat({{"load", {{"peak", "12/s"}, {"like", "philly"}, {"by_hour", {1}}}}})),
      "nothing beside like");
  has(told(chat({{"target", 1.5}})), "a share above 0, at most 1");
  has(told(chat({{"most", 0}})), "most");
  SortedJson means = chat({});
  means["serve"]["slo"] = "ttft.mean=1s";
  has(told(means), "target beside promises of means");
  SortedJson no_slo = chat({});
  no_slo["serve"].erase("slo");
  has(told(no_slo), "slo");
  SortedJson elsewhere = chat({});
  elsewhere["serve"]["cluster"] = "dgx-a100";
  has(told(elsewhere), "the question on which machine");
  SortedJson unknown = chat({});
  unknown["serve"]["modle"] = "llama3-8b";
  has(told(unknown), "model");
  SortedJson endless = lab({chat({})});
  endless.erase("horizon");
  has(schedule_failure(endless), "for how long a model is served");
  has(told(chat({{"start", "2 day"}})), "until a replica serves");
  has(schedule_failure(lab({chat({}), chat({})})), "each id once");
  has(schedule_failure(
          lab({{{"mix", "acme-kalos"}, {"per_day", 10}}}, {{"days", 1}, {"scale", "fixed"}})),
      "nothing without a served model");
  has(told({{"id", "b"}, {"batch", engine()}, {"requests", 0}}), "10^12 requests");
  has(told({{"id", "b"}, {"batch", engine()}, {"requests", 10}, {"gpus", 6}}), "whole replicas");
  SortedJson impossible = chat({});
  impossible["serve"]["slo"] = "ttft.p90=1ms";
  std::string why;
  try {
    scheduled(lab({impossible}));
  } catch (const CannotExist& error) {
    why = error.message();
  }
  has(why, "at most 0.0%");
  // More than all of them bear is said, and refused.
  const Scheduled over = scheduled(lab({chat({{"load", "5000/s"}, {"most", 2}})}));
  CHECK(over.jobs.notes.size() == 1);
  has(over.jobs.notes.front(), "at most 2 stand");
  CHECK(over.points.at(0).measures.at(0).services.at(0).refused > 0.1);
}

}  // namespace orrery
