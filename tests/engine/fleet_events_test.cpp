// SPDX-License-Identifier: Apache-2.0
// Tests that what a run tells while it happens is what its record says afterwards.
#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3600 * second;

std::vector<JobWork> works() {
  JobWork own;
  own.step_ps = 777'777'777'777;
  own.save_steps = 1000;
  own.own_failures = Hertz(1 / 20'000.0);
  own.planned_stops = Hertz(1 / 50'000.0);
  own.stop.us = 600 * second;
  JobWork recorded;
  recorded.milliwatts = 500'000;
  own.milliwatts = 700'000;
  return {recorded, own};
}

// Follows events alone: what is held, host by host, and by whom.
class Followed {
 public:
  Followed(const ClusterJobs& list, const FleetQuestion& question)
      : list_(list), free_(static_cast<std::size_t>(question.shape.hosts)) {
    for (std::int32_t host = 0; host < question.shape.hosts; ++host)
      free_[static_cast<std::size_t>(host)] = question.shape.gpus_of(host);
    for (std::int32_t i = 0; i < question.breakdowns.spare_hosts; ++i)
      out_ += question.shape.gpus_of(question.shape.hosts - 1 - i);
    pool_ = question.shape.hosts == 1;
    drawn_ = question.idle_milliwatts * question.shape.gpus();
  }

  void take(const FleetEvent& event) {
    REQUIRE(event.at >= now_);
    pass_to(event.at);
    if (event.kind == FleetEventKind::power) drawn_ = event.milliwatts;
    ++count[event.kind];
    using enum FleetEventKind;
    if (event.kind == submit) REQUIRE(event.at == list_.jobs[event.job].submit);
    if (event.kind == start) {
      REQUIRE(since_.emplace(event.job, event.at).second);
      hold(event, -1);
    }
    if (event.kind == restart) REQUIRE(since_.contains(event.job));
    if (event.kind == stop || event.kind == end || event.kind == cut) {
      held += static_cast<GpuMicros>(event.gpus) * (event.at - since_.at(event.job)).us;
      since_.erase(event.job);
      hold(event, 1);
    }
    if (event.kind == stop || event.kind == restart) ++stops[std::string(event.cause)];
    if (event.kind == out) out_ += event.gpus;
    if (event.kind == in) out_ -= event.gpus;
  }

  void look(const Slots& slots) const {
    std::int64_t held_now = 0;
    for (const auto& [job, at] : since_) held_now += list_.jobs[job].gpus;
    REQUIRE(held_now == slots.held());
    REQUIRE(out_ == slots.out());
  }
  void pass_to(FleetTime at) {
    nanojoules += static_cast<__int128>(drawn_) * (at - now_).us;
    now_ = at;
  }
  bool nobody_holds() const { return since_.empty(); }

  std::map<FleetEventKind, std::int64_t> count;
  std::map<std::string, std::int64_t> stops;  // by cause
  GpuMicros held = 0;
  __int128 nanojoules = 0;

 private:
  void hold(const FleetEvent& event, std::int32_t sign) {
    REQUIRE((event.place == nullptr) == pool_);
    if (pool_) return;
    std::int64_t sum = 0;
    for (const HostGrant& grant : *event.place)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host) {
        std::int32_t& free = free_[static_cast<std::size_t>(host)];
        free += sign * grant.gpus;
        REQUIRE(free >= 0);
        sum += grant.gpus;
      }
    REQUIRE(sum == event.gpus);
  }

  const ClusterJobs& list_;
  std::vector<std::int32_t> free_;
  std::map<std::uint32_t, FleetTime> since_;
  std::int64_t out_ = 0;
  bool pool_ = false;
  FleetTime now_;
  std::int64_t drawn_ = 0;
};

FleetQuestion question_of(std::uint64_t round) {
  FleetQuestion question;
  question.seed = round;
  question.works = works();
  question.idle_milliwatts = 100'000;
  const auto kind = round % 4;
  question.shape = {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 8};
  question.shape.levels = {{"domain", 2}, {"leaf group", 4}};
  question.policy.fit = JobFit::easy;
  if (kind == 0) question.shape = pool_shape(96);
  if (kind == 0) question.policy.place = JobPlace::pool;
  if (kind > 0) {
    question.breakdowns.kinds = {{"host", Hertz(1 / 5000.0), 1, 0.7, seconds(20'000), {}, {}},
                                 {"process", Hertz(1 / 8000.0), 0, 0, {}, {}, {}},
                                 {"domain", Hertz(1 / 40'000.0), 2, 1, seconds(30'000), {}, {}}};
    question.breakdowns.spare_hosts = static_cast<std::int32_t>(round % 3);
    question.breakdowns.incidents = {
        {"leaf group 1", {9 * hour}, {20 * hour}, {4, 5, 6, 7}, {300 * second}},
        {"hosts 6-11", {15 * hour}, {hour}, {6, 7, 8, 9, 10, 11}},
        {.name = "drained",
         .at = {40 * hour},
         .length = {5 * hour},
         .hosts = {0, 1},
         .drain = true}};
  }
  if (kind == 2) question.policy.order = JobOrder::priority;
  if (kind == 2) question.policy.preempts = true;
  if (kind == 3) question.horizon.us = 60 * hour;
  return question;
}

TEST_CASE("law: events add up to the record of the run", "[fleet]") {
  const std::uint64_t seed = fresh(31);
  INFO("seed " << seed);
  std::map<std::string, std::int64_t> causes;
  std::int64_t cut_off = 0;
  for (std::uint64_t round = 0; round < 12; ++round) {
    FleetQuestion question = question_of(seed * 24 + round);
    const ClusterJobs list = jobs_of_works(seed + round, 200, 110, question.works.size());
    Followed followed(list, question);
    question.tell = [&](const FleetEvent& event) { followed.take(event); };
    question.look = [&](FleetTime, const Slots& slots) { followed.look(slots); };
    const FleetRecord record = run_fleet(list, question);
    followed.pass_to(record.last_end);
    REQUIRE(followed.nobody_holds());
    CHECK(followed.held == record.use.held);
    CHECK(followed.nanojoules == record.power.nanojoules);
    std::int64_t stops = 0, preemptions = 0, ended = 0, rejected = 0;
    for (const JobRecord& job : record.jobs) {
      stops += job.stops;
      preemptions += job.preemptions;
      rejected += job.rejected ? 1 : 0;
      ended += job.end != fleet_never && job.end <= record.last_end && !job.rejected ? 1 : 0;
    }
    using enum FleetEventKind;
    CHECK(followed.count[end] == ended);
    CHECK(followed.count[reject] == rejected);
    CHECK(followed.stops["preempted"] == preemptions);
    std::int64_t told = 0;
    for (const auto& [cause, number] : followed.stops) {
      causes[cause] += number;
      if (cause != "preempted" && cause != "planned stop") told += number;
    }
    CHECK(told == stops);
    cut_off += followed.count[FleetEventKind::cut];
    // Nothing depends on whether somebody listens.
    question.tell = {};
    question.look = {};
    const FleetRecord silent = run_fleet(list, question);
    CHECK(silent.use.held == record.use.held);
    CHECK(silent.events == record.events);
  }
  for (const char* cause : {"host", "process", "domain", "preempted", "planned stop",
                            "its software", "leaf group 1", "hosts 6-11", "drained"})
    CHECK(causes[cause] > 0);
  CHECK(cut_off > 0);
}

}  // namespace
}  // namespace orrery
