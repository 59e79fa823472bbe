// SPDX-License-Identifier: Apache-2.0
// Tests what limits and prices of power do to the jobs of a cluster.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/engine/step/step.h"
#include "sim/explain/what_if.h"
#include "sim/outcome/host_power.h"
#include "sim/question/schedule/schedule.h"
#include "tests/base/scratch_folder.h"
#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SortedJson training() {
  return {{"id", "pretraining"},
          {"length", "12 day"},
          {"model", "llama3-8b"},
          {"gpus", 128},
          {"global_batch", 256},
          {"seq", 8192},
          {"stack", "megatron-core"},
          {"tp", 2},
          {"pp", 1},
          {"priority", 1}};
}

SortedJson lab(const SortedJson& more = SortedJson::object()) {
  SortedJson settings = {{"cluster", "dgx-h100"},
                         {"gpus", 256},
                         {"days", 8},
                         {"horizon", "10 day"},
                         {"policy", "easy"}};
  settings["jobs"] = {training(), {{"mix", "acme-kalos"}, {"per_day", 120}}};
  settings.update(more);
  return settings;
}

double sum_of(const FleetShares& s) {
  return s.useful + s.standby + s.in_vain + s.slowed + s.capped + s.saving + s.starting + s.lost +
         s.preempted + s.short_of + s.scattered + s.spare + s.repair + s.idle;
}

double done(const SchedulePoint& point) {
  const FleetShares& s = point.measures.front().shares;
  return s.useful + s.in_vain;
}

std::string limit_text(double watts) { return std::to_string(watts) + " W"; }

}  // namespace

TEST_CASE("between its points a curve of caps is the step model's", "[schedule]") {
  const Scheduled s = scheduled(lab({{"power_limit", "1 MW"}, {"power_policy", "proportional"}}));
  const PointCase& asked = s.points.front().asked;
  const FleetTraining& job = asked.jobs->trainings.front();
  const WorkCaps& caps = (*asked.caps)[job.job.work];
  REQUIRE(caps.curve);
  const double host = host_power_per_accelerator(asked.cluster).si();
  for (const int level : {0, 9, 16, 22, 28, 34, 41, 47, cap_steps}) {
    Scenario capped = job.scenario;
    const Watts cap =
        caps.least + (caps.most - caps.least) * (static_cast<double>(level) / cap_steps);
    capped.cluster = with(capped.cluster, {.power_limit = cap});
    const StepResult result =
        step(step_context(capped), capped.model, capped.job, capped.layout, capped.stack);
    const double time = to_seconds(result.step).si();
    const CapLevel& here = (*caps.curve)[static_cast<std::size_t>(level)];
    INFO("at " << cap.si() << " W: " << here.slower << ", " << here.milliwatts);
    CHECK(here.slower == Approx(time * 1e12 / static_cast<double>(job.step_ps)).epsilon(0.001));
    CHECK(here.slower >= time * 1e12 / static_cast<double>(job.step_ps) * (1 - 1e-9));
    CHECK(static_cast<double>(here.milliwatts) * 1e-3 ==
          Approx(result.energy_per_gpu.si() / time + host).epsilon(0.003));
  }
}

TEST_CASE("law: a limit of schedule that never binds changes no figure", "[schedule]") {
  const Scheduled open = scheduled(lab());
  const double most = open.points.front().measures.front().power.peak.si();
  for (const char* policy : {"proportional", "priority"}) {
    const Scheduled limited =
        scheduled(lab({{"power_limit", limit_text(most * 2)}, {"power_policy", policy}}));
    const SchedulePoint &a = open.points.front(), &b = limited.points.front();
    REQUIRE(a.record.jobs.size() == b.record.jobs.size());
    for (std::size_t i = 0; i < a.record.jobs.size(); ++i) {
      REQUIRE(a.record.jobs[i].start == b.record.jobs[i].start);
      REQUIRE(a.record.jobs[i].end == b.record.jobs[i].end);
    }
    CHECK(a.record.power.nanojoules == b.record.power.nanojoules);
    CHECK(a.record.use.work.useful == b.record.use.work.useful);
    CHECK(b.record.use.work.capped == 0);
  }
}

TEST_CASE("caps keep a limit, and cost what their response says", "[schedule]") {
  const double most = scheduled(lab()).points.front().measures.front().power.peak.si();
  const SortedJson limits = {limit_text(most), limit_text(0.9 * most), limit_text(0.8 * most)};
  const Scheduled s = scheduled(lab({{"power_limit", limits},
                                     {"power_policy", {"proportional", "priority"}},
                                     {"cap_response", {"none", "clock", "proportional"}}}));
  REQUIRE(s.points.size() == 18);
  for (const SchedulePoint& point : s.points) {
    const FleetMeasures& m = point.measures.front();
    CHECK(sum_of(m.shares) == Approx(1));
    CHECK(m.power.peak.si() * 1e3 <=
          static_cast<double>(point.asked.question.power_limit_milliwatts) + 1);
    CHECK(m.power.over_limit.si() == 0);
  }
  const auto point = [&](std::size_t limit, std::size_t policy, std::size_t response) {
    const auto named = [&](const SchedulePoint& p) {
      return p.varied[0].second == limits[limit].get<std::string>() &&
             p.varied[1].second == (policy == 0 ? "proportional" : "priority") &&
             p.varied[2].second == cap_response_text[static_cast<CapResponse>(response)];
    };
    const auto at = std::find_if(s.points.begin(), s.points.end(), named);
    REQUIRE(at != s.points.end());
    return *at;
  };
  for (const std::size_t policy : {0U, 1U}) {
    CHECK(point(1, policy, 1).measures.front().shares.capped > 0);
    CHECK(point(2, policy, 1).measures.front().shares.capped >
          point(1, policy, 1).measures.front().shares.capped);
    CHECK(done(point(2, policy, 2)) < done(point(2, policy, 0)));
  }
  // A training of high priority is capped last.
  const auto end = [&](std::size_t policy) {
    const SchedulePoint p = point(1, policy, 1);
    for (std::size_t i = 0; i < p.list->jobs.size(); ++i)
      if (p.list->id_of(i) == "pretraining") return p.record.jobs[i].end;
    return fleet_never;
  };
  CHECK(end(1) < end(0));
}

TEST_CASE("electricity is billed at a site, or by the hour", "[schedule]") {
  const ScratchFolder scratch("schedule_grid");
  const auto file = [&](const std::string& name, int hours, const auto& row) {
    std::string text = "hour,usd_per_kwh,kg_per_kwh\n";
    for (int i = 0; i < hours; ++i) text += std::to_string(i) + "," + row(i) + "\n";
    return scratch.add(name, text).string();
  };
  const Scheduled ohio = scheduled(lab({{"site", "us-ohio"}}));
  const FleetMeasures& m = ohio.points.front().measures.front();
  const double kwh = m.energy.si() / 3.6e6 * 1.12;
  REQUIRE(m.power.bill);
  CHECK(m.power.bill->dollars == Approx(kwh * 0.079));
  CHECK(m.power.bill->kg == Approx(kwh * 0.41));
  // The same price at all hours is that price.
  const auto flat = file("flat.csv", 240, [](int) { return "0.079,0.41"; });
  const Scheduled hourly = scheduled(lab({{"site", "us-ohio"}, {"grid", flat}}));
  CHECK(hourly.points.front().measures.front().power.bill->dollars ==
        Approx(m.power.bill->dollars));
  CHECK(hourly.points.front().measures.front().power.bill->kg == Approx(m.power.bill->kg));
  const FleetPower& power = hourly.points.front().record.power;
  CHECK(power.hours.size() == 240);
  __int128 sum = 0;
  for (const __int128 hour : power.hours) sum += hour;
  CHECK(sum == power.nanojoules);
  // One dear hour.
  const auto dear = file("dear.csv", 240, [](int i) { return i == 100 ? "1,2" : "0,0"; });
  const FleetMeasures& of_dear =
      scheduled(lab({{"site", "us-ohio"}, {"grid", dear}})).points.front().measures.front();
  const double hour_kwh = static_cast<double>(power.hours[100]) * 1e-9 / 3.6e6 * 1.12;
  CHECK(of_dear.power.bill->dollars == Approx(hour_kwh));
  CHECK(of_dear.power.bill->kg == Approx(2 * hour_kwh));
  const auto with_grid = [&](const std::string& grid) {
    return schedule_failure(lab({{"site", "us-ohio"}, {"grid", grid}}));
  };
  CHECK(with_grid(file("short.csv", 239, [](int) { return "1,1"; })) ==
        "test: grid: found 239 hours; expected the 240 hours until the horizon");
  const auto twice = file("twice.csv", 3, [](int i) { return i == 1 ? "1,-1" : "1,1"; });
  CHECK(with_grid(twice).find("kg_per_kwh") != std::string::npos);
  SortedJson open = lab({{"grid", file("open.csv", 20, [](int) { return "1,1"; })}});
  open.erase("horizon");
  CHECK(schedule_failure(open).find("found 20 hours; expected the ") != std::string::npos);
}

TEST_CASE("thresholds are POLCA's, and clocks are levels of caps", "[schedule]") {
  const SortedJson asked = {{"power_limit", "1 MW"}, {"power_policy", "thresholds"}};
  const Scheduled s = scheduled(lab(asked));
  const PointCase& point = s.points.front().asked;
  CHECK(point.thresholds->shares.first == 0.8);
  CHECK(point.thresholds->shares.second == 0.89);
  CHECK(point.thresholds->shares.low == Approx(1275.0 / 1410));
  CHECK(point.question.thresholds.release == 0.05);
  CHECK_FALSE(point.question.thresholds.high_from);
  const ResolvedDevice device = point.cluster.device.resolved();
  const double host = host_power_per_accelerator(point.cluster).si(), idle = device.idle_power.si();
  // A level leaves as much power as the clock does to work that keeps tensor units busy: to
  // recorded jobs of what they draw, to a training of what its board's limit leaves.
  const auto check = [&](std::int64_t level, double clock) {
    const double budget = std::pow(clock, 2.58), step = 0.5 / cap_steps;
    CHECK(0.5 + step * static_cast<double>(level) <= budget + 1e-9);
    CHECK(0.5 + step * static_cast<double>(level + 1) > budget);
    const CapCurve& recorded = *(*point.caps)[0].curve;
    const CapLevel& there = recorded[static_cast<std::size_t>(level)];
    const double all = static_cast<double>(recorded.back().milliwatts) * 1e-3 - host - idle;
    const double left = static_cast<double>(there.milliwatts) * 1e-3 - host - idle;
    CHECK(left / all == Approx(0.5 + step * static_cast<double>(level)).epsilon(1e-4));
    CHECK(there.slower == Approx(std::pow(clock, -0.58)).epsilon(0.005));
    const WorkCaps& training = (*point.caps)[1];
    const double cap = training.least.si() + (training.most - training.least).si() *
                                                 static_cast<double>(level) / cap_steps;
    CHECK((cap - idle) / (device.power_limit.si() - idle) == Approx(budget).margin(step));
  };
  check(point.question.thresholds.low, 1275.0 / 1410);
  check(point.question.thresholds.lower, 1110.0 / 1410);
  check(point.question.thresholds.high, 1305.0 / 1410);
  // At the full clock nothing is capped, whatever is passed.
  SortedJson full = asked;
  full["power_thresholds"] = {{"low", 1}, {"lower", 1}, {"high", 1}, {"first", 0.1}};
  CHECK(scheduled(lab(full)).points.front().measures.front().shares.capped == 0);
}

TEST_CASE("law: thresholds of schedule that nothing passes change no figure", "[schedule]") {
  const Scheduled open = scheduled(lab());
  const Scheduled same =
      scheduled(lab({{"power_limit", "100 MW"}, {"power_policy", "thresholds"}}));
  CHECK(same.points.front().record.power.nanojoules == open.points.front().record.power.nanojoules);
  CHECK(done(same.points.front()) == done(open.points.front()));
  CHECK(same.points.front().measures.front().power.stepped.low.us == 0);
  // Those of low priority pay first: the training has the higher one.
  const auto capped = scheduled(lab({{"power_limit", "150 kW"}, {"power_policy", "thresholds"}}));
  const FleetMeasures& m = capped.points.front().measures.front();
  CHECK(m.shares.capped > 0);
  CHECK((m.power.stepped.low + m.power.stepped.lower + m.power.stepped.all).us > 0);
  CHECK(m.power.peak.si() <= 150e3);
  CHECK(sum_of(m.shares) == Approx(1));
}

TEST_CASE("bad questions about power have one line", "[schedule]") {
  const auto thresholds = [](const SortedJson& of) {
    return schedule_failure(
        lab({{"power_limit", "1 MW"}, {"power_policy", "thresholds"}, {"power_thresholds", of}}));
  };
  CHECK(thresholds({{"first", 0.95}}) ==
        "test: power_thresholds: found first 0.95; expected first at most second, which is 0.89");
  CHECK(thresholds({{"low", 0.7}}).find("from 0.764 to 1: below, no clock was measured") !=
        std::string::npos);
  CHECK(thresholds({{"lower", 0.95}}).find("lower at most low") != std::string::npos);
  CHECK(thresholds({{"release", 0.8}}).find("release below first") != std::string::npos);
  CHECK(thresholds({{"second", 1.2}}).find("a share of a limit") != std::string::npos);
  CHECK(thresholds({{"high_priority", 1e9}}).find("high_priority") != std::string::npos);
  CHECK(thresholds({{"thrid", 0.9}}).find("thrid") != std::string::npos);
  CHECK(schedule_failure(lab({{"power_limit", "1 MW"}, {"power_thresholds", {{"first", 0.5}}}}))
            .find("nothing without power_policy thresholds") != std::string::npos);
  CHECK(schedule_failure(lab({{"power_thresholds", {{"first", 0.5}}}}))
            .find("nothing without power_limit or feeds") != std::string::npos);
  CHECK(schedule_failure(lab({{"grid", "no-such.csv"}})).find("no readable file") !=
        std::string::npos);
  CHECK(schedule_failure(lab({{"power_policy", "priority"}})) ==
        "test: power_policy: found \"priority\"; expected nothing without power_limit or feeds");
  CHECK(schedule_failure(lab({{"power_limit", "1 MW"}, {"cap_response", "none"}}))
            .find("nothing without a power_policy that caps") != std::string::npos);
  CHECK(schedule_failure(lab({{"power_limit", "30 kW"}})).find("that the idle cluster draws") !=
        std::string::npos);
  CHECK(schedule_failure(lab({{"power_limit", "1 MW"}, {"power_policy", "polca"}}))
            .find("proportional") != std::string::npos);
}

}  // namespace orrery
