// SPDX-License-Identifier: Apache-2.0
// Resolves the settings of a point to what a run is asked.
#include "sim/question/schedule/point_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/text/words.h"
#include "sim/outcome/host_power.h"
#include "sim/question/losses/breakdowns_entry.h"
#include "sim/question/losses/feeds_entry.h"
#include "sim/question/losses/incidents_entry.h"
#include "sim/question/rules/share_entry.h"
#include "sim/question/schedule/inline_jobs.h"
#include "sim/question/schedule/settings.h"

namespace orrery {
namespace {

void read_prices(const JsonValue& s, PointCase& out) {
  const auto site = s.find("site"), grid = s.find("grid");
  EnergyPrices prices = energy_prices(out.cluster, site ? site->reference() : "");
  if (grid) {
    prices.grid = grid_of(*grid);
    constexpr double hour_s = 3600;
    const FleetTime horizon = out.question.horizon;
    const double hours = std::ceil(to_seconds(horizon).si() / hour_s);
    if (horizon != fleet_never && hours > static_cast<double>(prices.grid->hours.size()))
      grid->fail(fmt::format("the {:.0f} hours until the horizon", hours),
                 plural(prices.grid->hours.size(), "hour"));
    out.question.hours.energy = true;
  }
  out.prices = std::make_shared<const EnergyPrices>(std::move(prices));
}

void check_deadlines(const JsonValue& s, const PointCase& out) {
  if (out.jobs->has_deadlines()) return;
  constexpr const char* expected = "jobs with a deadline or slack beside it: none has one";
  if (out.question.policy.order == JobOrder::deadline) s.at("policy").fail(expected);
  if (!out.question.hours.weights.empty()) s.at("delay").fail(expected);
}

// Of a grid that limits what may be drawn; limits that never change are one limit.
void read_hourly_limits(const JsonValue& grid, const std::vector<Watts>& limits, PointCase& out) {
  FleetQuestion& q = out.question;
  std::vector<std::int64_t> hours;
  for (const Watts limit : limits) {
    const std::int64_t milliwatts = std::llround(1e3 * limit.si());
    hours.push_back(q.power_limit_milliwatts > 0 ? std::min(milliwatts, q.power_limit_milliwatts)
                                                 : milliwatts);
  }
  const auto [least, most] = std::minmax_element(hours.begin(), hours.end());
  const std::int64_t idle = q.idle_milliwatts * out.shape.gpus();
  if (*least <= idle)
    grid.fail(fmt::format("limits above the {:.4g} MW that the idle cluster draws",
                          1e-9 * static_cast<double>(idle)),
              fmt::format("{:.4g} MW in hour {}", 1e-9 * static_cast<double>(*least),
                          least - hours.begin()));
  q.power_limit_milliwatts = *most;
  if (*least < *most) q.hours.limits = std::move(hours);
}

void read_power_limit(const JsonValue& s, PointCase& out) {
  const auto limit = s.find("power_limit");
  const auto& grid = out.prices->grid;
  const bool hourly = grid && !grid->limits.empty();
  FleetQuestion& q = out.question;
  if (limit) {
    q.power_limit_milliwatts = std::llround(1e3 * limit->quantity<Watts>().si());
    const std::int64_t idle = q.idle_milliwatts * out.shape.gpus();
    if (q.power_limit_milliwatts <= idle)
      limit->fail(fmt::format("more than the {:.4g} MW that the idle cluster draws",
                              1e-9 * static_cast<double>(idle)));
  }
  if (hourly) read_hourly_limits(s.at("grid"), grid->limits, out);
  if (limit || hourly || !q.feeds.empty()) return;
  for (const char* key : {"power_policy", "power_thresholds", "cap_response"})
    if (const auto v = s.find(key)) v->fail("nothing without power_limit or feeds");
}

// Feeds of power, and what happens to them and to hosts.
void read_losses(const JsonValue& s, PointCase& out) {
  FleetQuestion& q = out.question;
  if (const auto feeds = s.find("feeds")) {
    q.feeds = read_feeds(*feeds, out.shape, q.idle_milliwatts);
    if (q.policy.fit == JobFit::slurm)
      feeds->fail(
          "another policy beside feeds: Slurm's loops place by its own rules, which know none");
    if (q.policy.place == JobPlace::pool)
      feeds->fail("another place beside feeds: pool has no hosts that stand below them");
  }
  if (const auto incidents = s.find("incidents"))
    q.breakdowns.incidents = read_incidents(*incidents, out.shape, q.feeds);
}

// Hours by which jobs are delayed: in billionths of a dollar, or of a kilogram, of a kilowatt-hour.
void read_delay(const JsonValue& s, PointCase& out) {
  const auto delay = s.find("delay");
  if (!delay) return;
  const std::string by = delay->one_of({"none", "price", "carbon"});
  const auto& grid = out.prices->grid;
  if (!grid) delay->fail("nothing without grid: it has the hours");
  if (by == "none") return;
  for (const GridHour& hour : grid->hours)
    out.question.hours.weights.push_back(
        std::llround(1e9 * (by == "price" ? hour.dollars_per_kwh : hour.kg_per_kwh)));
}

void share_store(const JsonValue& s, const StoreRates& store, PointCase& out) {
  FleetQuestion& q = out.question;
  const bool any = std::any_of(q.works.begin(), q.works.end(), [](const JobWork& work) {
    return work.first_read.alone.us > 0 || work.later_read.alone.us > 0;
  });
  if (!any)
    s.at("store").fail(
        "nothing here: only trainings beside reliability and served models read from a store");
  q.store_bytes_per_s = std::llround(store.read.si());
  out.store = store;
}

// The level that an entry names, as the machine has it.
std::int32_t read_level(const JsonValue& named, const SlotShape& shape) {
  std::vector<std::string> names;
  for (const SlotLevel& level : shape.levels) names.push_back(level.name);
  if (names.empty()) named.fail("nothing: on this cluster all hosts stand under one switch");
  const std::string name = named.one_of(names);
  return static_cast<std::int32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// Trainings, batches and RL that must stand under one group have one that is large enough.
void check_within(const FleetJobs& jobs, const FleetQuestion& q, const SlotShape& shape) {
  const auto check = [&](const ClusterJob& job, const EntryRank& rank) {
    if (rank.within == 0) return;
    const std::int32_t level = q.within[rank.within - 1U];
    const std::int64_t most = shape.gpus_within(level);
    if (job.gpus <= most) return;
    const JsonValue& named = jobs.within[rank.within - 1U];
    throw CannotExist({.file = named.file(),
                       .path = named.path(),
                       .found = fmt::format("{} GPUs within a {}", job.gpus,
                                            shape.levels[static_cast<std::size_t>(level)].name),
                       .expected = fmt::format("at most the {} that one holds", most)});
  };
  for (std::size_t i = 0; i < jobs.trainings.size(); ++i)
    check(jobs.trainings[i].job, jobs.training_ranks[i]);
  for (std::size_t i = 0; i < jobs.batches.size(); ++i)
    check(jobs.batches[i].job, jobs.batch_ranks[i]);
  for (std::size_t i = 0; i < jobs.post_trainings.size(); ++i)
    check(jobs.post_trainings[i].job, jobs.post_training_ranks[i]);
}

// What a rule does not know may not stand beside it.
void check_policy(const JsonValue& s, const PointCase& out, bool loses_hosts) {
  const FleetQuestion& q = out.question;
  const JobFit fit = q.policy.fit;
  const bool limited = q.power_limit_milliwatts > 0;
  const auto queues = s.find("queues");
  if (fit == JobFit::rounds && queues)
    s.at("policy").fail(
        "another policy beside queues: one that decides in rounds knows priorities");
  if (fit == JobFit::slurm && (limited || queues))
    s.at("policy").fail("another policy beside power_limit and queues: Slurm's loops know neither");
  if (fit == JobFit::conservative && queues)
    s.at("policy").fail("another policy beside queues: conservative knows none");
  if (fit == JobFit::gang_timeout && (limited || !q.feeds.empty()))
    s.at("policy").fail("another policy beside power_limit and feeds: gang-timeout knows neither");
  const bool own_loop = fit == JobFit::rounds || fit == JobFit::slurm ||
                        fit == JobFit::conservative || fit == JobFit::gang_timeout;
  if (q.policy.defragments && own_loop)
    s.at("defragment")
        .fail("never beside this policy: it plans places by itself, and moves nobody for others");
  if (own_loop && !q.within.empty())
    s.at("policy").fail("another policy beside jobs that stand within a level: it knows none");
  if (q.policy.place == JobPlace::pool &&
      (loses_hosts || limited || !out.jobs->trainings.empty() || q.policy.preempts ||
       q.policy.defragments || !q.within.empty() || out.scatter_cost > 1))
    s.at("place").fail(
        "a rule with hosts: what breaks, power, steps, moves and preemption need them");
}

}  // namespace

PointCase PointReader::read(const JsonValue& s) {
  const std::int64_t gpus = s.at("gpus").integer(1, most_scheduled_gpus);
  PointCase out{.cluster = catalogues_.cluster(s.at("cluster").reference(), gpus)};
  out.shape = slot_shape(out.cluster.fabric, gpus, out.cluster.gpus_per_host);
  FleetQuestion& q = out.question;
  AskedPolicy policy = read_policy(s, q);
  out.policy = std::move(policy.policy);
  out.place = std::move(policy.place);
  out.preset = std::move(policy.preset);
  const auto profile = read_profile(s);
  const ResolvedDevice device = out.cluster.device.resolved();
  q.idle_milliwatts = milliwatts_with_host(device.idle_power, out.cluster);
  if (profile) {
    out.reliability = profile->title;
    q.breakdowns = read_breakdowns(s, *profile, out.cluster, out.shape);
  }
  read_losses(s, out);
  const bool loses_hosts = profile || does_something(q.breakdowns.incidents);
  const bool in_rounds = q.policy.fit == JobFit::rounds;
  if (const auto horizon = s.find("horizon"))
    q.horizon = read_fleet_time(*horizon, seconds(1e-6), "a time above 0, such as \"90 day\"");
  read_prices(s, out);
  read_power_limit(s, out);
  read_delay(s, out);
  const bool stops_jobs =
      loses_hosts || q.policy.preempts || q.policy.defragments || !q.hours.limits.empty();
  FleetJobsCase with{.cluster = s.at("cluster").raw(),
                     .profile = profile,
                     .save_interval = stops_jobs ? seconds(3600) : Seconds{},
                     .recorded_milliwatts = milliwatts_with_host(
                         device.power_limit * recorded_power_share, out.cluster)};
  if (const auto interval = s.find("save_interval"))
    with.save_interval = to_seconds(read_fleet_time(*interval, Seconds{}, "a time of 0 or more"));
  if (q.horizon != fleet_never) with.horizon = q.horizon;
  if (const auto scale = s.find("scale")) with.scale = replica_scale_text.from(*scale);
  with.replicas = &replicas_;
  with.store = read_store(s);
  out.jobs = jobs_of(s, with);
  check_deadlines(s, out);
  for (const JsonValue& named : out.jobs->within) q.within.push_back(read_level(named, out.shape));
  check_within(*out.jobs, q, out.shape);
  q.works = out.jobs->works;
  if (with.store) share_store(s, *with.store, out);
  if (in_rounds) q.sizes = out.jobs->sizes;
  if (const auto cost = s.find("scatter_cost")) {
    out.scatter_cost = cost->number();
    if (!(out.scatter_cost >= 1 && out.scatter_cost <= 10)) cost->fail("a factor from 1 to 10");
    q.works.front().priced = out.scatter_cost > 1;
  }
  read_caps(s, out);
  if (in_rounds) {  // rounds decide who stops and who starts again
    q.policy.requeue = {};
    q.policy.grace = {};
  }
  if (q.policy.fit == JobFit::slurm) {
    out.place = q.policy.blocks ? "block" : "tree";
    q.policy.place = JobPlace::pack;
    q.loops.slurm.blocks = q.policy.blocks;
    read_priorities(s, q.loops.slurm);
  }
  check_policy(s, out, loses_hosts);
  q.policy.share = read_share(s, out.jobs->has_parts(), q);
  out.sharing = read_sharing(s, !out.jobs->uses.empty());
  q.shape = q.policy.place == JobPlace::pool ? pool_shape(gpus) : out.shape;
  q.stop = [](FleetTime) { return interrupted(); };
  return out;
}

void PointReader::read_caps(const JsonValue& s, PointCase& out) {
  FleetQuestion& q = out.question;
  if (const auto policy = s.find("power_policy")) q.power_policy = power_policy_text.from(*policy);
  auto response = CapResponse::clock;
  if (const auto of = s.find("cap_response")) response = cap_response_text.from(*of);
  if (q.power_policy == PowerPolicy::admit) return;
  const bool clocks = q.power_policy == PowerPolicy::thresholds;
  if (clocks) {
    out.thresholds = read_thresholds(s.find("power_thresholds"));
    q.thresholds = power_thresholds(*out.thresholds);
  }
  auto& known = caps_[{out.jobs.get(), response, clocks}];
  if (!known)
    known = std::make_shared<const std::vector<WorkCaps>>(
        work_caps(*out.jobs, out.cluster, response, clocks));
  out.caps = known;
  for (const WorkCaps& caps : *known) q.cap_curves.push_back(caps.curve);
}

std::shared_ptr<const FleetJobs> PointReader::jobs_of(const JsonValue& s,
                                                      const FleetJobsCase& with) {
  SortedJson depends = SortedJson::object();
  for (const char* key :
       {"cluster", "reliability", "failure_rate", "scale", "store", "store_write", "store_host"})
    if (const auto v = s.find(key)) depends[key] = v->raw();
  depends["save_interval"] = with.save_interval.si();
  std::shared_ptr<const FleetJobs>& known = jobs_[depends.dump()];
  if (!known)
    known = std::make_shared<const FleetJobs>(
        read_fleet_jobs(with_jobs_of(question_, s), with, catalogues_, threads_));
  return known;
}

PlacePrices& PointReader::prices(const PointCase& point) {
  auto& known =
      prices_[{point.jobs.get(), fmt::format("{} {} {}", point.shape.gpus(), point.scatter_cost,
                                             static_cast<int>(point.sharing))}];
  if (!known) {
    std::vector<PricedWork> works;
    for (const FleetTraining& training : point.jobs->trainings) {
      works.push_back({training.job.work, training.scenario, training.slower});
      for (const FleetTraining& size : training.sizes)
        works.push_back({size.job.work, size.scenario, size.slower});
    }
    known = std::make_unique<StepPlacePrices>(std::move(works), point.shape, point.scatter_cost);
    known->set_uses(point.jobs->uses, point.sharing);
  }
  return *known;
}

std::size_t PointReader::priced_classes() const {
  std::size_t sum = 0;
  for (const auto& [of, prices] : prices_) sum += prices->classes();
  return sum;
}

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

}  // namespace orrery
