// SPDX-License-Identifier: Apache-2.0
// Reads what was asked of a cluster and its jobs, and runs each policy.
#include "sim/question/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/base/text/words.h"
#include "sim/question/schedule/listed_names.h"
#include "sim/question/settings/settings.h"
#include "workloads/cluster_job/job_trace.h"

namespace orrery {
namespace {

constexpr std::int64_t most_scheduled_gpus = 10'000'000;
constexpr std::int64_t day_us = INT64_C(86'400) * 1'000'000, most_days = 365'000;

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const NamedPolicy& policy : named_policies()) names.emplace_back(policy.name);
  return names;
}

// The first days of the list.
void keep_days(ClusterJobs& list, const std::string& days) {
  if (days.empty()) return;
  const std::int64_t count = whole_number("--days", days, 1, most_days);
  const FleetTime end{count * day_us};
  const auto first = std::find_if(list.jobs.begin(), list.jobs.end(),
                                  [&](const ClusterJob& job) { return job.submit >= end; });
  const auto kept = static_cast<std::size_t>(first - list.jobs.begin());
  list.jobs.resize(kept);
  if (!list.ids.empty()) list.ids.resize(kept);
}

std::size_t job_called(const ClusterJobs& list, const std::string& id) {
  for (std::size_t i = 0; i < list.jobs.size(); ++i)
    if (list.id_of(i) == id) return i;
  throw Error({.file = "--job",
               .found = in_quotes(id),
               .expected = list.ids.empty() ? "the row of a job, from 1" : "the id of a job"});
}

void check_some_fit(const ClusterJobs& list, std::int64_t gpus) {
  const auto least =
      std::min_element(list.jobs.begin(), list.jobs.end(),
                       [](const ClusterJob& a, const ClusterJob& b) { return a.gpus < b.gpus; });
  if (least->gpus <= gpus) return;
  throw CannotExist(
      {.file = list.name,
       .found = fmt::format("no job of fewer than {} GPUs", least->gpus),
       .expected = fmt::format("jobs of at most {}, all that the cluster has", gpus)});
}

}  // namespace

const std::vector<NamedPolicy>& named_policies() {
  static const std::vector<NamedPolicy> all = {{"fifo", JobOrder::fifo, JobFit::block},
                                               {"sjf", JobOrder::sjf, JobFit::block},
                                               {"easy", JobOrder::fifo, JobFit::easy},
                                               {"sjf-easy", JobOrder::sjf, JobFit::easy}};
  return all;
}

Scheduled schedule_jobs(const ScheduleWords& words, std::uint64_t seed, int threads) {
  const std::int64_t gpus = whole_number("--gpus", words.gpus, 1, most_scheduled_gpus);
  const std::vector<std::string> policies =
      listed_names(words.policies, "--policy", policy_names());
  const std::vector<std::string> places =
      listed_names(words.places, "--place", job_place_text.names());
  const Cluster cluster = load_cluster(words.cluster, gpus);
  Scheduled out;
  out.cluster = cluster.title;
  out.shape = slot_shape(cluster.fabric, gpus, cluster.gpus_per_host);
  out.jobs = load_jobs(words.trace, data_root() / "workloads/catalog");
  keep_days(out.jobs, words.days);
  check_some_fit(out.jobs, gpus);
  if (!words.job.empty()) out.watched = job_called(out.jobs, words.job);
  for (const std::string& policy : policies)
    for (const std::string& place : places) out.points.push_back({policy, place, {}, {}});
  parallel_for(out.points.size(), threads, [&](std::size_t i) {
    SchedulePoint& point = out.points[i];
    const NamedPolicy& named =
        *std::find_if(named_policies().begin(), named_policies().end(),
                      [&](const NamedPolicy& one) { return one.name == point.policy; });
    FleetQuestion question;
    question.policy = {named.order, named.fit, *job_place_text.find(point.place)};
    question.shape = question.policy.place == JobPlace::pool ? pool_shape(gpus) : out.shape;
    question.seed = seed;
    if (out.watched) question.watch = static_cast<std::uint32_t>(*out.watched);
    question.stop = [](FleetTime) { return interrupted(); };
    point.record = run_fleet(out.jobs, question);
    point.measures = fleet_measures(out.jobs, point.record);
  });
  for (std::size_t i = 0; i < out.points.size(); ++i) {
    const SchedulePoint& point = out.points[i];
    out.stopped = out.stopped || point.record.stopped;
    const double mean = point.measures.completion.mean().si();
    if (mean < out.points[out.best].measures.completion.mean().si()) out.best = i;
  }
  return out;
}

}  // namespace orrery
