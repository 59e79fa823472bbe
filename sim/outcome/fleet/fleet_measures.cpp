// SPDX-License-Identifier: Apache-2.0
// Sums what became of the jobs.
#include "sim/outcome/fleet/fleet_measures.h"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

// Short jobs would decide the mean: 10 s is the bound of Feitelson's bounded slowdown.
constexpr double least_length_s = 10;

struct SizeClass {
  std::int32_t most;
  const char* name;
};
constexpr SizeClass size_classes[] = {{0, "a part of a GPU"},      {1, "1 GPU"},
                                      {7, "2 to 7 GPUs"},          {8, "8 GPUs"},
                                      {64, "9 to 64 GPUs"},        {512, "65 to 512 GPUs"},
                                      {4096, "513 to 4,096 GPUs"}, {INT32_MAX, "more GPUs"}};

std::size_t size_class_of(const ClusterJob& job) {
  std::size_t i = 0;
  while (!job.is_part() && job.gpus > size_classes[i].most) ++i;
  return i;
}

// Jobs of a class, while they are counted.
struct Tally {
  std::vector<FleetTime> waits;
  std::int64_t jobs = 0;
  GpuMicros held = 0;  // of thousandths of GPUs
};

// A job that ran as the list began waited before it, if at all.
bool waited(const ClusterJob& job, const JobRecord& record) {
  return !job.runs_now || record.start > job.submit;
}

void count(Tally& tally, const ClusterJob& job, const JobRecord& record) {
  ++tally.jobs;
  if (record.start == fleet_never) return;
  if (waited(job, record)) tally.waits.push_back(record.start - eligible(job, record));
  tally.held += static_cast<GpuMicros>(job.length.us) * milli_gpus(job);
}

double share_of(GpuMicros part, GpuMicros all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

FleetGroup group_of(std::string name, Tally&& tally, GpuMicros all) {
  return {.name = std::move(name),
          .jobs = tally.jobs,
          .held_share = share_of(tally.held / whole_gpu, all / whole_gpu),
          .wait = spread_of(std::move(tally.waits))};
}

FleetShares shares_of(const FleetUse& use) {
  const GpuMicros all_ps = use.all * 1'000'000;
  return {.useful = share_of(use.work.useful, all_ps),
          .in_vain = share_of(use.work.in_vain, all_ps),
          .slowed = share_of(use.work.slowed, all_ps),
          .capped = share_of(use.work.capped, all_ps),
          .saving = share_of(use.work.saving, all_ps),
          .starting = share_of(use.work.starting, all_ps),
          .lost = share_of(use.work.lost, all_ps),
          .preempted = share_of(use.work.preempted, all_ps),
          .unshared = share_of(use.work.unshared, all_ps),
          .short_of = share_of(use.short_of, use.all),
          .scattered = share_of(use.scattered, use.all),
          .spare = share_of(use.spare, use.all),
          .repair = share_of(use.repair, use.all),
          .idle = share_of(use.idle, use.all)};
}

MeasuredPower power_of(const FleetRecord& record, Joules energy) {
  MeasuredPower out{.peak = Watts(static_cast<double>(record.power.most_milliwatts) * 1e-3),
                    .over_limit = to_seconds(record.power.over),
                    .ramps = record.power.ramps,
                    .suspended = record.power.suspended,
                    .stepped = record.power.stepped};
  if (record.last_end.us > 0) out.mean = energy / to_seconds(record.last_end);
  return out;
}

// Replicas count as useful while they serve, but for those that the load does not need.
void take_standby(const FleetUse& use, FleetMeasures& out) {
  double hours = 0;
  for (const ServiceMeasures& service : out.services) hours += service.standby_gpu_hours;
  if (hours == 0 || use.all == 0) return;
  out.shares.standby = std::min(out.shares.useful, 3.6e9 * hours / static_cast<double>(use.all));
  out.shares.useful -= out.shares.standby;
}

FleetDependencies dependencies_of(const ClusterJobs& list, const FleetRecord& record) {
  FleetDependencies out;
  std::vector<FleetTime> held;
  const auto& all = list.dependencies;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i].job == all[i - 1].job) continue;
    const ClusterJob& job = list.jobs[all[i].job];
    const JobRecord& one = record.jobs[all[i].job];
    if (one.rejected || (record.ends_early() && job.submit > record.last_end)) continue;
    ++out.jobs;
    out.cancelled += one.cancelled ? 1 : 0;
    out.still_held += one.still_held ? 1 : 0;
    if (!one.cancelled && !one.still_held) held.push_back(one.held);
  }
  out.held = spread_of(std::move(held));
  return out;
}

bool is_replica(const ClusterJob& job, const std::vector<FleetService>& services) {
  return std::any_of(services.begin(), services.end(),
                     [&](const FleetService& service) { return service.work == job.work; });
}

Slowdowns slowdowns_of(std::vector<double> all) {
  if (all.empty()) return {};
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(all.size());
  const auto at = [&](double share) { return all[static_cast<std::size_t>(share * n)]; };
  return {.mean = std::accumulate(all.begin(), all.end(), 0.0) / n,
          .p50 = at(0.5),
          .p90 = at(0.9),
          .p99 = at(0.99)};
}

}  // namespace

Seconds TimeSpread::mean() const {
  return count > 0 ? Seconds(static_cast<double>(sum_us) * 1e-6 / static_cast<double>(count))
                   : Seconds{};
}
Seconds TimeSpread::sum() const { return Seconds(static_cast<double>(sum_us) * 1e-6); }

TimeSpread spread_of(std::vector<FleetTime> times) {
  TimeSpread out;
  if (times.empty()) return out;
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  for (const FleetTime t : times) out.sum_us += t.us;
  out.count = static_cast<std::int64_t>(n);
  out.p50 = times[n / 2];
  out.p90 = times[static_cast<std::size_t>(0.9 * static_cast<double>(n))];
  out.p99 = times[static_cast<std::size_t>(0.99 * static_cast<double>(n))];
  out.most = times.back();
  return out;
}

FleetMeasures fleet_measures(const ClusterJobs& list, const FleetRecord& record,
                             const std::vector<FleetService>& services, const ReplicaStops& stops) {
  FleetMeasures out;
  std::vector<FleetTime> waits, completions;
  std::vector<Tally> sizes(std::size(size_classes)), queues(list.queues.size());
  std::vector<double> slowdowns;
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    const ClusterJob& job = list.jobs[i];
    const JobRecord& one = record.jobs[i];
    if (record.ends_early() && job.submit > record.last_end) continue;  // it was not reached
    count(sizes[size_class_of(job)], job, one);
    count(queues[static_cast<std::size_t>(job.queue)], job, one);
    out.stops += one.stops;
    out.preemptions += one.preemptions;
    out.moves += one.moves;
    out.waited_again += to_seconds(one.waited_again);
    if (is_replica(job, services)) continue;
    ++out.submitted;
    if (one.rejected) {
      ++out.rejected;
      continue;
    }
    if (one.cancelled) continue;
    const FleetTime from = eligible(job, one);
    if (one.start == fleet_never || one.end == fleet_never) {
      ++out.queued;
      if (one.start != fleet_never && waited(job, one)) waits.push_back(one.start - from);
      continue;
    }
    if (waited(job, one)) waits.push_back(one.start - from);
    if (one.end > record.last_end) {
      ++out.running;
      continue;
    }
    ++out.finished;
    completions.push_back(one.end - from);
    out.bad_ends.failed += job.fate == JobFate::failed ? 1 : 0;
    out.bad_ends.cancelled += job.fate == JobFate::cancelled ? 1 : 0;
    slowdowns.push_back(std::max(1.0, to_seconds(one.end - from).si() /
                                          std::max(least_length_s, to_seconds(job.length).si())));
  }
  out.dependencies = dependencies_of(list, record);
  out.wait = spread_of(std::move(waits));
  out.completion = spread_of(std::move(completions));
  out.slowdown = slowdowns_of(std::move(slowdowns));
  out.shares = shares_of(record.use);
  if (record.last_end.us > 0)
    out.fairness = fleet_fairness(
        list, record, static_cast<double>(record.use.all) / static_cast<double>(record.last_end.us),
        [&](const ClusterJob& job) { return !is_replica(job, services); });
  out.energy = Joules(static_cast<double>(record.power.nanojoules) * 1e-9);
  out.power = power_of(record, out.energy);
  out.deadlines = fleet_deadlines(list, record);
  out.held = record.use.held;
  out.scattered = record.use.scattered;
  out.span = record.last_end;
  out.most_waiting = record.most_waiting;
  GpuMicros all = 0;
  for (const Tally& tally : sizes) all += tally.held;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i].jobs > 0)
      out.groups.by_size.push_back(group_of(size_classes[i].name, std::move(sizes[i]), all));
  for (std::size_t i = 0; i < queues.size(); ++i)
    if (queues[i].jobs > 0)
      out.groups.by_queue.push_back(group_of(list.queues[i], std::move(queues[i]), all));
  for (const FleetService& service : services)
    out.services.push_back(service_measures(service, list, record, stops));
  take_standby(record.use, out);
  return out;
}

}  // namespace orrery
