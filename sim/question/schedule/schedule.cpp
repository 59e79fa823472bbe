// SPDX-License-Identifier: Apache-2.0
// Reads what was asked of a cluster and its jobs, and runs each policy with each seed.
#include "sim/question/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "hw_models/catalog.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/base/text/words.h"
#include "sim/engine/prices/place_prices.h"
#include "sim/outcome/fleet/job_months.h"
#include "sim/outcome/host_power.h"
#include "sim/question/schedule/listed_names.h"

namespace orrery {
namespace {

constexpr std::int64_t most_scheduled_gpus = 10'000'000, most_seeds = 1000;

// Accelerators that run something draw 305 W (Kalos) and 278 W (Seren) of 400 W in the mean: those
// above 100 W in Acme's distributions of August 2023 (Hu et al., NSDI 2024; InternLM/AcmeTrace).
constexpr double recorded_power_share = 0.73;

// What a point is made of.
struct Asked {
  Cluster cluster;
  FleetJobs jobs;
  FleetQuestion question;  // without a policy and a seed
  std::vector<std::string> policies, places;
};

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const NamedPolicy& policy : named_policies()) names.emplace_back(policy.name);
  return names;
}

std::vector<std::string> names_of(const JsonValue& settings, const char* key, const char* otherwise,
                                  const std::vector<std::string>& known) {
  const auto given = settings.find(key);
  return listed_names(given ? *given : JsonValue::from(otherwise, flag_of(key)), known);
}

std::size_t job_called(const ClusterJobs& list, const JsonValue& id) {
  for (std::size_t i = 0; i < list.jobs.size(); ++i)
    if (list.id_of(i) == id.reference()) return i;
  id.fail(list.ids.empty() ? "the row of a job, from 1" : "the id of a job");
}

void check_some_fit(const ClusterJobs& list, std::int64_t gpus) {
  const auto least =
      std::min_element(list.jobs.begin(), list.jobs.end(),
                       [](const ClusterJob& a, const ClusterJob& b) { return a.gpus < b.gpus; });
  if (least == list.jobs.end())
    throw Error({.file = list.name, .found = "no job in those days", .expected = "some jobs"});
  if (least->gpus <= gpus) return;
  throw CannotExist(
      {.file = list.name,
       .found = fmt::format("no job of fewer than {} GPUs", least->gpus),
       .expected = fmt::format("jobs of at most {}, all that the cluster has", gpus)});
}

std::optional<ReliabilityProfile> read_profile(const JsonValue& s) {
  const auto name = s.find("reliability");
  if (!name) {
    for (const char* key : {"failure_rate", "spares", "repair_crews", "save_interval"})
      if (const auto v = s.find(key))
        v->fail("nothing without reliability: then nothing fails, and nobody saves");
    return std::nullopt;
  }
  ReliabilityProfile profile = load_reliability(name->reference());
  if (const auto factor = s.find("failure_rate")) {
    if (!(factor->number() > 0)) factor->fail("a factor above 0");
    profile = with_failure_rate(profile, factor->number());
  }
  return profile;
}

std::int32_t spare_hosts(const JsonValue& s, const SlotShape& shape) {
  const auto spares = s.find("spares");
  if (!spares) return 0;
  const std::int64_t gpus = spares->integer(0, shape.gpus() - 1);
  if (gpus % shape.gpus_per_host != 0)
    spares->fail(fmt::format("whole hosts of {} accelerators", shape.gpus_per_host));
  return static_cast<std::int32_t>(gpus / shape.gpus_per_host);
}

// Milliwatts of an accelerator and its share of a host.
std::int64_t milliwatts(Watts accelerator, const Cluster& cluster) {
  return std::llround(1e3 * (accelerator + host_power_per_accelerator(cluster)).si());
}

Seconds read_save_interval(const JsonValue& s) {
  const auto given = s.find("save_interval");
  if (!given) return seconds(3600);
  const Seconds interval = given->quantity<Seconds>();
  if (interval < Seconds{} || interval > seconds(1e9)) given->fail("a time of 0 or more");
  return interval;
}

Asked read_asked(const JsonValue& s, const ScheduleWith& with, Scheduled& out) {
  const std::int64_t gpus = s.at("gpus").integer(1, most_scheduled_gpus);
  const std::string name = s.at("cluster").reference();
  Asked asked{.cluster = with.catalogues.cluster(name, gpus)};
  asked.policies = names_of(s, "policy", "fifo", policy_names());
  asked.places = names_of(s, "place", "pack", job_place_text.names());
  FleetQuestion& q = asked.question;
  q.shape = slot_shape(asked.cluster.fabric, gpus, asked.cluster.gpus_per_host);
  const auto profile = read_profile(s);
  const ResolvedDevice device = asked.cluster.device.resolved();
  q.idle_milliwatts = milliwatts(device.idle_power, asked.cluster);
  const FleetJobsCase with_jobs{
      .cluster = s.at("cluster").raw(),
      .profile = profile,
      .save_interval = read_save_interval(s),
      .recorded_milliwatts = milliwatts(device.power_limit * recorded_power_share, asked.cluster)};
  asked.jobs = read_fleet_jobs(s, with_jobs, with.catalogues, with.threads);
  q.works = asked.jobs.works;
  if (profile) {
    out.reliability = profile->title;
    q.breakdowns = breakdown_plan(asked.cluster, *profile);
    q.breakdowns.spare_hosts = spare_hosts(s, q.shape);
    if (const auto crews = s.find("repair_crews"))
      q.breakdowns.repair_crews = static_cast<std::int32_t>(crews->integer(1, 1'000'000));
  }
  if (const auto after = s.find("preempt_after")) {
    if (std::find(asked.policies.begin(), asked.policies.end(), "preempt") == asked.policies.end())
      after->fail("nothing without the policy preempt: then nobody is stopped");
    q.policy.preempt_after = FleetTime{std::llround(1e6 * after->quantity<Seconds>().si())};
  }
  if (const auto meeting = s.find("meeting")) q.meeting = link_meeting_text.from(*meeting);
  if (const auto limit = s.find("power_limit")) {
    q.power_limit_milliwatts = std::llround(1e3 * limit->quantity<Watts>().si());
    const std::int64_t idle = q.idle_milliwatts * gpus;
    if (q.power_limit_milliwatts <= idle)
      limit->fail(fmt::format("more than the {:.4g} MW that the idle cluster draws",
                              1e-9 * static_cast<double>(idle)));
  }
  if (const auto horizon = s.find("horizon")) {
    const double us = 1e6 * horizon->quantity<Seconds>().si();
    if (!(us >= 1) || us > static_cast<double>(most_fleet_time.us))
      horizon->fail("a time above 0, such as \"90 day\"");
    out.horizon = q.horizon = FleetTime{std::llround(us)};
  }
  if (std::find(asked.places.begin(), asked.places.end(), job_place_text[JobPlace::pool]) !=
          asked.places.end() &&
      (profile || q.power_limit_milliwatts > 0 || !asked.jobs.trainings.empty() ||
       std::find(asked.policies.begin(), asked.policies.end(), "preempt") != asked.policies.end()))
    s.at("place").fail("a rule with hosts: what breaks, power, steps and preemption need them");
  return asked;
}

FleetQuestion point_question(const Asked& asked, const SchedulePoint& point, std::int64_t gpus) {
  const NamedPolicy& named =
      *std::find_if(named_policies().begin(), named_policies().end(),
                    [&](const NamedPolicy& one) { return one.name == point.policy; });
  FleetQuestion question = asked.question;
  question.policy.order = named.order;
  question.policy.fit = named.fit;
  question.policy.place = *job_place_text.find(point.place);
  question.policy.preempts = named.preempts;
  if (question.policy.place == JobPlace::pool) question.shape = pool_shape(gpus);
  question.stop = [](FleetTime) { return interrupted(); };
  return question;
}

// Quotas by the queues of a list.
std::vector<QueueQuota> read_quotas(const JsonValue& s, const ClusterJobs& list) {
  const auto queues = s.find("queues");
  std::vector<QueueQuota> out;
  if (!queues) return out;
  out.resize(list.queues.size());
  for (const auto& [name, quota] : queues->members()) {
    const auto at = std::find(list.queues.begin(), list.queues.end(), name);
    if (at == list.queues.end())
      quota.fail("a queue of the jobs: " + joined(list.queues, ", "), in_quotes(name));
    quota.expect_only({"gpus", "borrows"});
    QueueQuota& of = out[static_cast<std::size_t>(at - list.queues.begin())];
    of.gpus = quota.at("gpus").integer(0, most_scheduled_gpus);
    if (const auto borrows = quota.find("borrows")) of.borrows = borrows->boolean();
  }
  return out;
}

// By the mean over seeds.
double mean_completion(const SchedulePoint& point) {
  double sum = 0;
  for (const FleetMeasures& m : point.measures) sum += m.completion.mean().si();
  return sum / static_cast<double>(std::max<std::size_t>(1, point.measures.size()));
}

SeedMean difference(const SchedulePoint& a, const SchedulePoint& b,
                    double (*of)(const FleetMeasures&)) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(a.measures.size(), b.measures.size()); ++i)
    values.push_back(of(a.measures[i]) - of(b.measures[i]));
  return mean_over_seeds(values);
}

void compare(Scheduled& out) {
  for (std::size_t i = 0; i < out.points.size(); ++i)
    if (mean_completion(out.points[i]) < mean_completion(out.points[out.best])) out.best = i;
  if (out.seeds < 2) return;
  const SchedulePoint& best = out.points[out.best];
  for (std::size_t i = 0; i < out.points.size(); ++i) {
    if (i == out.best) continue;
    const SchedulePoint& point = out.points[i];
    out.differences.push_back(
        {.point = i,
         .completion_s = difference(
             point, best, [](const FleetMeasures& m) { return m.completion.mean().si(); }),
         .wait_s =
             difference(point, best, [](const FleetMeasures& m) { return m.wait.mean().si(); }),
         .useful =
             difference(point, best, [](const FleetMeasures& m) { return m.shares.useful; })});
  }
}

}  // namespace

const std::vector<NamedPolicy>& named_policies() {
  static const std::vector<NamedPolicy> all = {{"fifo", JobOrder::fifo, JobFit::block},
                                               {"sjf", JobOrder::sjf, JobFit::block},
                                               {"easy", JobOrder::fifo, JobFit::easy},
                                               {"sjf-easy", JobOrder::sjf, JobFit::easy},
                                               {"priority", JobOrder::priority, JobFit::block},
                                               {"priority-easy", JobOrder::priority, JobFit::easy},
                                               {"preempt", JobOrder::priority, JobFit::easy, true}};
  return all;
}

SeedMean mean_over_seeds(const std::vector<double>& values) {
  SeedMean out;
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) out.mean += v / n;
  out.low = out.high = out.mean;
  if (values.size() < 2) return out;
  double square = 0;
  for (const double v : values) square += (v - out.mean) * (v - out.mean);
  const boost::math::students_t student(n - 1);
  const double half = boost::math::quantile(student, 0.95) * std::sqrt(square / (n - 1) / n);
  out.low -= half;
  out.high += half;
  return out;
}

Scheduled schedule_jobs(const JsonValue& settings, const ScheduleWith& with) {
  Scheduled out{.settings = settings, .seed = with.seed.value_or(0)};
  const Asked asked = read_asked(settings, with, out);
  out.cluster = asked.cluster.title;
  out.shape = asked.question.shape;
  out.breakdowns = asked.question.breakdowns;
  out.asked = asked.jobs;
  const bool random_places = std::find(asked.places.begin(), asked.places.end(),
                                       job_place_text[JobPlace::random]) != asked.places.end();
  out.draws = asked.jobs.draws() || !out.reliability.empty() || random_places;
  if (const auto seeds = settings.find("seeds")) {
    out.seeds = seeds->integer(1, most_seeds);
    if (out.seeds > 1 && !out.draws)
      seeds->fail("one run: nothing is drawn, and all would be the same");
  }
  const std::int64_t gpus = out.shape.gpus();
  const auto seeds = static_cast<std::size_t>(out.seeds);
  std::vector<ClusterJobs> lists;
  for (std::size_t i = 0; i < (asked.jobs.draws() ? seeds : 1); ++i)
    lists.push_back(jobs_of_seed(asked.jobs, out.seed + i));
  check_some_fit(lists.front(), gpus);
  read_quotas(settings, lists.front());  // errors before the work
  if (const auto job = settings.find("job")) out.watched = job_called(lists.front(), *job);
  for (const std::string& policy : asked.policies)
    for (const std::string& place : asked.places) out.points.push_back({policy, place, {}, {}});

  std::vector<Scenario> scenarios;
  for (const FleetTraining& training : asked.jobs.trainings) scenarios.push_back(training.scenario);
  std::vector<double> slower;
  for (const FleetTraining& training : asked.jobs.trainings) slower.push_back(training.slower);
  StepPlacePrices prices(std::move(scenarios), std::move(slower), out.shape);

  std::vector<FleetMeasures> measures(out.points.size() * seeds);
  std::vector<std::uint8_t> done(measures.size(), 0);
  parallel_for(measures.size(), with.threads, [&](std::size_t i) {
    SchedulePoint& point = out.points[i / seeds];
    const std::size_t run = i % seeds;
    const ClusterJobs& list = lists[std::min(run, lists.size() - 1)];
    FleetQuestion question = point_question(asked, point, gpus);
    question.seed = out.seed + run;
    question.prices = &prices;
    question.quotas = read_quotas(settings, list);
    if (out.watched && run == 0) question.watch = static_cast<std::uint32_t>(*out.watched);
    FleetRecord record = run_fleet(list, question);
    measures[i] = fleet_measures(list, record);
    done[i] = !record.stopped || run == 0 ? 1 : 0;
    if (run == 0) point.record = std::move(record);
  });
  for (std::size_t i = 0; i < measures.size(); ++i) {
    out.stopped = out.stopped || done[i] == 0 || out.points[i / seeds].record.stopped;
    if (done[i] != 0) out.points[i / seeds].measures.push_back(std::move(measures[i]));
  }
  compare(out);
  out.jobs = std::move(lists.front());
  out.catalogue = with.catalogues.version();
  return out;
}

}  // namespace orrery
