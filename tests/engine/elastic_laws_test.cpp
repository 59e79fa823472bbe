// SPDX-License-Identifier: Apache-2.0
// Tests laws of clusters that decide in rounds, over random elastic jobs and all policies.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/base/fresh_seed.h"
#include "tests/engine/elastic_case.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;
constexpr GpuPicos ps_of_us = 1'000'000;

ElasticQuestion small_question(RoundRule rule) {
  ElasticQuestion question;
  question.rule = rule;
  question.hosts = 6;
  question.first_queue = INT64_C(400) * second;
  return question;
}

TEST_CASE("law: accelerator-time of elastic jobs adds up in whole picoseconds", "[elastic]") {
  const std::uint64_t seed = fresh(11);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 12; ++round) {
    const auto applications = random_applications(seed + round, 4);
    const auto jobs = random_elastic_jobs(seed + round, 60, applications);
    for (const RoundRule rule : all_round_rules()) {
      ElasticQuestion question = small_question(rule);
      question.apart = round % 2 == 0;
      question.meeting_ppm = round % 3 == 0 ? 300'001 : 0;
      const ElasticRecord record = run_elastic(jobs, applications, question);
      const ElasticGpuTime& time = record.gpu_time;
      INFO(round_rule_text[rule]);
      CHECK(time.all == GpuPicos{24} * (record.last_end - jobs.front().submit).us * ps_of_us);
      CHECK((time.useful + time.slowed + time.restart + time.lost + time.idle == time.all));
      GpuPicos held = 0;
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        held += record.jobs[i].held * ps_of_us;
        REQUIRE(record.jobs[i].start >= jobs[i].submit);
        REQUIRE(record.jobs[i].end > record.jobs[i].start);
        REQUIRE(record.jobs[i].end <= record.last_end);
      }
      CHECK((held + time.idle == time.all));
      for (const GpuPicos part : {time.useful, time.slowed, time.restart, time.lost, time.idle})
        CHECK((part >= 0));
    }
  }
}

// Of one round: nobody holds what another one holds, gangs are whole.
void check_places(const std::vector<ElasticJob>& jobs, const std::vector<Grants>& places,
                  const ElasticQuestion& question) {
  const bool sizes = question.rule == RoundRule::optimus || question.rule == RoundRule::goodput;
  std::vector<std::int32_t> held(static_cast<std::size_t>(question.hosts), 0);
  std::vector<std::int32_t> spread(held.size(), 0);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (places[j].empty()) continue;
    std::int32_t gpus = 0;
    for (const HostGrant& grant : places[j]) {
      REQUIRE(grant.hosts == 1);
      REQUIRE(grant.gpus > 0);
      gpus += grant.gpus;
      held[static_cast<std::size_t>(grant.host)] += grant.gpus;
      spread[static_cast<std::size_t>(grant.host)] += places[j].size() > 1 ? 1 : 0;
    }
    REQUIRE(gpus == gpus_of_place(places[j]));
    REQUIRE(gpus >= (sizes ? jobs[j].least : jobs[j].gpus));
    REQUIRE(gpus <= (sizes ? jobs[j].most : jobs[j].gpus));
  }
  REQUIRE(*std::max_element(held.begin(), held.end()) <= question.gpus_per_host);
  if (question.rule == RoundRule::goodput && question.apart)
    REQUIRE(*std::max_element(spread.begin(), spread.end()) <= 1);
}

TEST_CASE("law: elastic jobs hold no more accelerators than there are, and gangs whole",
          "[elastic]") {
  const std::uint64_t seed = fresh(12);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 12; ++round) {
    const auto applications = random_applications(seed + round, 4);
    const auto jobs = random_elastic_jobs(seed + round, 60, applications);
    for (const RoundRule rule : all_round_rules()) {
      ElasticQuestion question = small_question(rule);
      question.apart = round % 2 == 0;
      std::int64_t looks = 0;
      question.look = [&](FleetTime now, const std::vector<Grants>& places) {
        REQUIRE(now.us % question.tick.us == 0);
        check_places(jobs, places, question);
        ++looks;
      };
      CHECK(run_elastic(jobs, applications, question).rounds == looks);
    }
  }
}

TEST_CASE("law: under las every elastic job ends, and none before it could alone", "[elastic]") {
  const std::uint64_t seed = fresh(13);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 8; ++round) {
    const auto applications = random_applications(seed + round, 3);
    const auto jobs = random_elastic_jobs(seed + round, 150, applications, true);
    const ElasticQuestion question = small_question(RoundRule::las);
    const ElasticRecord record = run_elastic(jobs, applications, question);
    std::int64_t restarts = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const ElasticApplication& application = applications[jobs[i].application];
      const std::int64_t packed =
          application.step_ps(jobs[i].gpus, (jobs[i].gpus + 3) / 4, jobs[i].batch);
      const GpuPicos alone = GpuPicos{application.steps_to_target(jobs[i].batch)} * packed;
      REQUIRE((record.jobs[i].end - record.jobs[i].start - question.restart).us * ps_of_us >=
              alone);
      restarts += record.jobs[i].restarts;
    }
    CHECK(restarts > 0);  // it does preempt
  }
}

TEST_CASE("law: steps of elastic jobs that count are those that they need", "[elastic]") {
  const std::uint64_t seed = fresh(17);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 8; ++round) {
    const auto applications = random_applications(seed + round, 3);
    auto jobs = random_elastic_jobs(seed + round, 90, applications, true);
    for (ElasticJob& job : jobs) job.gpus = job.least = job.most = 1;
    GpuPicos need = 0;
    for (const ElasticJob& job : jobs) {
      const ElasticApplication& application = applications[job.application];
      need +=
          GpuPicos{application.steps_to_target(job.batch)} * application.step_ps(1, 1, job.batch);
    }
    GpuPicos lost = 0;
    for (const RoundRule rule : all_round_rules()) {
      ElasticQuestion question = small_question(rule);
      question.hosts = 1;
      question.slice_rounds = 1;
      const ElasticRecord record = run_elastic(jobs, applications, question);
      CHECK((record.gpu_time.useful == need));
      lost += record.gpu_time.lost;
    }
    CHECK((lost > 0));
  }
}

TEST_CASE("law: elastic jobs without a range are as they were for all policies", "[elastic]") {
  const std::uint64_t seed = fresh(14);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 8; ++round) {
    const auto applications = random_applications(seed + round, 4);
    const auto rigid = random_elastic_jobs(seed + round, 60, applications, true);
    auto ranges = rigid;
    free_sizes(ranges, applications, 24, false);
    // Policies that give what is asked for do not look at ranges.
    for (const RoundRule rule : {RoundRule::las, RoundRule::max_min, RoundRule::fair}) {
      const ElasticQuestion question = small_question(rule);
      CHECK(record_text(run_elastic(rigid, applications, question)) ==
            record_text(run_elastic(ranges, applications, question)));
    }
    // Sized ones are gangs where the range is one size; a range changes them.
    for (const RoundRule rule : {RoundRule::optimus, RoundRule::goodput}) {
      ElasticQuestion question = small_question(rule);
      question.look = [&](FleetTime, const std::vector<Grants>& places) {
        for (std::size_t j = 0; j < rigid.size(); ++j)
          REQUIRE((places[j].empty() || gpus_of_place(places[j]) == rigid[j].gpus));
      };
      const std::string gangs = record_text(run_elastic(rigid, applications, question));
      question.look = {};
      CHECK(gangs == record_text(run_elastic(rigid, applications, question)));
      CHECK(gangs != record_text(run_elastic(ranges, applications, question)));
    }
  }
}

TEST_CASE("law: where all gangs fit, every policy runs them alike", "[elastic]") {
  const std::uint64_t seed = fresh(15);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 8; ++round) {
    const auto applications = random_applications(seed + round, 4);
    auto jobs = random_elastic_jobs(seed + round, 12, applications, true);
    for (ElasticJob& job : jobs) {
      job.gpus = job.least = job.most = job.gpus <= 4 ? 4 : 8;
      job.submit.us += second / 2;  // of age 0 a job is worth nothing to goodput, and waits a round
    }
    std::set<std::string> ways;
    for (const RoundRule rule : all_round_rules()) {
      ElasticQuestion question = small_question(rule);
      question.hosts = 24;
      ways.insert(record_text(run_elastic(jobs, applications, question)));
    }
    CHECK(ways.size() == 1);
  }
}

TEST_CASE("law: what nobody meets costs nothing", "[elastic]") {
  const std::uint64_t seed = fresh(16);
  INFO("seed " << seed);
  GpuPicos slowed = 0;
  for (std::uint64_t round = 0; round < 6; ++round) {
    const auto applications = random_applications(seed + round, 4);
    const auto jobs = random_elastic_jobs(seed + round, 60, applications);
    ElasticQuestion question = small_question(RoundRule::goodput);
    const std::string before = record_text(run_elastic(jobs, applications, question));
    question.meeting_ppm = 500'000;
    CHECK(before == record_text(run_elastic(jobs, applications, question)));
    question.rule = RoundRule::las;
    slowed += run_elastic(jobs, applications, question).gpu_time.slowed;
  }
  CHECK((slowed > GpuPicos{second} * ps_of_us));  // with las some meet
}

TEST_CASE("an elastic job alone takes its restart and its steps", "[elastic]") {
  const auto applications = random_applications(5, 1);
  std::vector<ElasticJob> jobs = {
      {.submit = {61 * second}, .gpus = 4, .least = 4, .most = 4, .batch = 64, .id = "one"}};
  for (const RoundRule rule : all_round_rules()) {
    const ElasticRecord record = run_elastic(jobs, applications, small_question(rule));
    const GpuPicos ps =
        GpuPicos{applications[0].steps_to_target(64)} * applications[0].step_ps(4, 1, 64);
    const auto us = static_cast<std::int64_t>((ps + ps_of_us - 1) / ps_of_us);
    CHECK(record.jobs[0].start == FleetTime{120 * second});
    CHECK(record.jobs[0].end == FleetTime{150 * second + us});
    CHECK(record.jobs[0].restarts == 0);
    CHECK((record.gpu_time.useful == 4 * ps));
    CHECK((record.gpu_time.lost == 0));
  }
}

TEST_CASE("questions of elastic jobs that cannot be are refused", "[elastic]") {
  const auto applications = random_applications(5, 1);
  const std::vector<ElasticJob> jobs = {{.gpus = 4, .least = 4, .most = 4, .batch = 64, .id = "a"}};
  const auto message = [&](std::vector<ElasticJob> list, ElasticQuestion question) {
    try {
      run_elastic(list, applications, question);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  const auto with = [&](const auto& change) {
    ElasticQuestion question;
    change(question);
    return message(jobs, question);
  };
  const auto job_with = [&](const auto& change) {
    std::vector<ElasticJob> list = jobs;
    change(list[0]);
    return message(list, {});
  };
  CHECK(message({}, {}) == "jobs: found none; expected one or more");
  CHECK(with([](auto& q) { q.hosts = 0; }) ==
        "hosts: found 0 of 4 GPUs; expected 1 or more of each");
  CHECK(with([](auto& q) { q.tick.us = 0; }) == "tick: found 0 s; expected above 0 s");
  CHECK(with([](auto& q) { q.restart.us = -1; }) ==
        "restart: found -1e-06 s; expected 0 s or more");
  CHECK(with([](auto& q) { q.slice_rounds = 0; }) == "slice: found 0 rounds; expected 1 or more");
  CHECK(with([](auto& q) { q.meeting_ppm = 1'000'000; }) ==
        "meeting: found 1000000 millionths; expected from 0 to below a million");
  CHECK(with([](auto& q) { q.gpus_per_host = q.hosts = 1; }) == "a: found 4 GPUs; expected 1 to 1");
  CHECK(job_with([](auto& j) { j.gpus = 17; }) == "a: found 17 GPUs; expected 1 to 16");
  CHECK(job_with([](auto& j) { j.least = 5; }) ==
        "a: found 5 to 4 GPUs; expected at least 1, least first");
  CHECK(job_with([](auto& j) { j.batch = 31; }) ==
        "a: found a batch of 31; expected one between measured ones");
  CHECK(job_with([](auto& j) { j.application = 1; }) ==
        "a: found application 1; expected one of the list");
  std::vector<ElasticJob> two = {jobs[0], jobs[0]};
  two[0].submit.us = 1;
  CHECK(message(two, {}) ==
        "jobs: found a job submitted before the one in front of it; expected order of submission");
}

}  // namespace
}  // namespace orrery
