// SPDX-License-Identifier: Apache-2.0
// Runs measured elastic jobs whose files do not ship; tests/nightly/elastic.py asks and judges.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "sim/base/text/csv.h"
#include "tests/engine/elastic_case.h"

namespace orrery {
namespace {

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A row of what is asked: jobs (a file), workload, policy, interval_s, meeting_ppm, apart.
struct ElasticAsk {
  std::string jobs, workload;
  ElasticQuestion question;
  explicit ElasticAsk(const CsvRow& row) : jobs(row.text("jobs")), workload(row.text("workload")) {
    for (const RoundRule rule : all_round_rules())
      if (round_rule_text[rule] == row.text("policy")) question.rule = rule;
    REQUIRE(round_rule_text[question.rule] == row.text("policy"));
    question.tick.us = *row.integer("interval_s") * 1'000'000;
    question.meeting_ppm = *row.integer("meeting_ppm");
    question.apart = *row.flag("apart");
  }
};

// Mean and 99% of the completion times, and GPU-hours a job.
std::string answer(const ElasticAsk& ask, const std::vector<ElasticApplication>& applications) {
  std::vector<ElasticJob> jobs = read_elastic_jobs(ask.jobs, ask.workload, applications);
  const auto all = static_cast<std::int32_t>(ask.question.gpus());
  if (ask.question.rule == RoundRule::optimus) free_sizes(jobs, applications, all, false);
  if (ask.question.rule == RoundRule::goodput) free_sizes(jobs, applications, all, true);
  const ElasticRecord record = run_elastic(jobs, applications, ask.question);
  std::vector<double> completion;
  double sum = 0, held = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    completion.push_back(to_seconds(record.jobs[i].end - jobs[i].submit).si());
    sum += completion.back();
    held += static_cast<double>(record.jobs[i].held) * 1e-6;
  }
  std::sort(completion.begin(), completion.end());
  const auto count = static_cast<double>(jobs.size());
  const auto last = static_cast<std::size_t>(std::ceil(0.99 * count)) - 1;
  return std::to_string(sum / count) + "," + std::to_string(completion[last]) + "," +
         std::to_string(held / count / 3'600);
}

// Settings: ORRERY_ELASTIC_SPEEDS, ORRERY_ELASTIC_ASK and, for the answers, ORRERY_ELASTIC_OUT.
TEST_CASE("measured elastic jobs of the nightly", "[.][elastic-nightly]") {
  if (setting("ORRERY_ELASTIC_ASK").empty()) return;  // `~law*` runs what is hidden, too
  const auto applications = read_elastic_speeds(setting("ORRERY_ELASTIC_SPEEDS"));
  const CsvTable table = read_csv(setting("ORRERY_ELASTIC_ASK"));
  std::ofstream out(setting("ORRERY_ELASTIC_OUT"));
  out << "mean_s,p99_s,gpu_h\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    out << answer(ElasticAsk(CsvRow(table, i)), applications) << "\n";
  CHECK(out.good());
}

}  // namespace
}  // namespace orrery
