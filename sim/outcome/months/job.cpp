// SPDX-License-Identifier: Apache-2.0
// Finds the counts, rates, sizes and bandwidths behind a case of goodput.
#include "sim/outcome/months/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/sorting.h"
#include "sim/base/whole.h"
#include "topologies/parts.h"

namespace orrery {
namespace {

// A catalogue value with its range; unknown counts as 0.
template <class Q>
Ranged<Q> ranged(const Sourced<Q>& value) {
  if (!value.known()) return {};
  return {.value = value.get(),
          .low = value.low.value_or(value.get()),
          .high = value.high.value_or(value.get())};
}

// How much more often this part fails than the profile's own one.
Ranged<double> ratio(const Sourced<Hertz>& own, const Sourced<Hertz>& reference, bool same) {
  if (!own.known() || !reference.known()) return exactly(1.0);
  if (same && own.get() == reference.get()) return exactly(1.0);  // the part that it was seen on
  const double base = reference.get().si();
  if (base <= 0) return exactly(1.0);
  const Ranged<Hertz> rate = ranged(own);
  return {
      .value = rate.value.si() / base, .low = rate.low.si() / base, .high = rate.high.si() / base};
}

// Both ranges are right by factors and independent: logarithms of the widths add in squares.
Ranged<Hertz> scaled(const Ranged<Hertz>& rate, const Ranged<double>& by, double count) {
  const auto width = [](double value, double end) {
    return value > 0 && end > 0 ? std::abs(std::log(end / value)) : 0.0;
  };
  const double value = rate.value.si() * by.value * count;
  const double down = std::hypot(width(rate.value.si(), rate.low.si()), width(by.value, by.low));
  const double up = std::hypot(width(rate.value.si(), rate.high.si()), width(by.value, by.high));
  const bool to_zero = !(rate.low.si() > 0);
  return {.value = Hertz(value),
          .low = Hertz(to_zero ? 0 : value * std::exp(-down)),
          .high = Hertz(value > 0 ? value * std::exp(up) : rate.high.si() * by.high * count)};
}

// Hosts below a leaf see it fail on one of their rails: all of them lose a part of their network.
std::int64_t below_a_leaf(const Cluster& cluster, const FleetCounts& fleet, std::int64_t leaves) {
  const double nics = static_cast<double>(fleet.nics) / static_cast<double>(leaves);
  const double per_gpu = cluster.fabric.scale_out.nics_per_accelerator.value.value_or(1);
  const bool rails = cluster.fabric.scale_out.rails > 1;
  const double planes =
      static_cast<double>(std::max<std::int64_t>(1, cluster.fabric.scale_out.planes));
  const double each =
      rails ? static_cast<double>(fleet.gpus_per_host) : 1 / std::max(per_gpu, 1e-9);
  const auto gpus = static_cast<std::int64_t>(std::llround(nics * planes * each));
  return std::clamp<std::int64_t>(gpus, 1, fleet.gpus);
}

// The two ends of a tier's path: what stops the job, and what the write needs behind its back.
struct Bandwidths {
  double copy = 0, path = 0;
};

Bandwidths bandwidths(const Cluster& cluster, const ReliabilityProfile& profile,
                      const FleetCounts& fleet, const StorageTier& tier) {
  const double hosts = static_cast<double>(
      tier.writing_hosts > 0 ? std::min(tier.writing_hosts, fleet.hosts) : fleet.hosts);
  const double gpus = hosts * static_cast<double>(fleet.gpus_per_host);
  const double copy = ranged(profile.copy_per_gpu).value.si() * gpus;
  double path = tier.bandwidth.si();
  if (path <= 0) {
    const double nic = cluster.fabric.scale_out.nic_bandwidth.value.value_or(BytesPerSecond{}).si();
    const double nics = cluster.fabric.scale_out.nics_per_accelerator.value.value_or(0);
    switch (tier.kind) {
      case StorageKind::host_memory:
        path = copy;
        break;
      case StorageKind::peer_memory:
        path = nic * nics > 0 ? nic * nics * gpus : copy;
        break;
      case StorageKind::local_drives:
        path = ranged(profile.local_per_host).value.si() * hosts;
        break;
      case StorageKind::remote:
        path = ranged(profile.remote_per_gpu).value.si() * static_cast<double>(fleet.gpus);
        break;
    }
  }
  return {copy, path};
}

// What a write takes of an accelerator's share of its host. Every byte is read from the host's
// memory once; a copy for a peer is written to that of the peer besides.
CheckpointFlow flow_of(const ReliabilityProfile& profile, const FleetCounts& fleet,
                       const StorageTier& tier, double path) {
  const double hosts = static_cast<double>(
      tier.writing_hosts > 0 ? std::min(tier.writing_hosts, fleet.hosts) : fleet.hosts);
  const double each = path / (hosts * static_cast<double>(fleet.gpus_per_host));
  const bool peers = tier.kind == StorageKind::peer_memory;
  const double network = tier.kind == StorageKind::remote ? ranged(profile.training_network).value
                                                          : (peers ? 1.0 : 0.0);
  return {.network = BytesPerSecond(network * each),
          .memory = BytesPerSecond((peers ? 2.0 : 1.0) * each)};
}

CheckpointTier resolve_tier(const Cluster& cluster, const ReliabilityProfile& profile,
                            const FleetCounts& fleet, const GoodputJob& job,
                            const StorageTier& tier) {
  const Bandwidths rate = bandwidths(cluster, profile, fleet, tier);
  const std::string name(to_text(tier.kind));
  if (tier.bandwidth.si() < 0 || !(rate.path > 0) || !(rate.copy > 0))
    throw Error({.file = "goodput",
                 .path = "storage." + name + ".bandwidth",
                 .found = fmt::format("{:.4g} B/s",
                                      tier.bandwidth.si() < 0 ? tier.bandwidth.si() : rate.path),
                 .expected = "a bandwidth above 0"});
  const double size = job.checkpoint.si();
  const double copy = size / rate.copy;
  const double write = size / rate.path;
  CheckpointTier result{.name = name,
                        .interval = tier.interval,
                        .read = seconds(write),
                        .size = job.checkpoint,
                        .bandwidth = BytesPerSecond(rate.path)};
  result.stall = ranged(profile.save_overhead).value +
                 seconds(tier.asynchronous ? std::min(copy, write) : write);
  if (tier.kind != StorageKind::host_memory) result.flow = flow_of(profile, fleet, tier, rate.path);
  if (tier.asynchronous && tier.kind != StorageKind::host_memory) result.write = seconds(write);
  if (tier.kind == StorageKind::remote)
    result.least_interval = ranged(profile.least_interval).value;
  switch (tier.kind) {
    case StorageKind::host_memory:
    case StorageKind::local_drives:
      result.survives = BlastRadius::process;
      break;
    case StorageKind::peer_memory:
      result.survives = BlastRadius::domain;
      break;
    case StorageKind::remote:
      result.survives = BlastRadius::site;
      break;
  }
  return result;
}

UnitPlan unit_plan(const FleetCounts& fleet, const GoodputJob& job) {
  UnitPlan plan{.count = fleet.hosts};
  const std::int64_t wired = fleet.gpus_per_domain;
  if (wired > fleet.gpus_per_host) {
    const std::int64_t has = std::max(job.rack_gpus, wired);
    const std::int64_t used = job.domain_gpus > 0 ? job.domain_gpus : wired;
    if (used > wired)
      throw Error({.file = "goodput",
                   .path = "domain_gpus",
                   .found = std::to_string(used),
                   .expected = fmt::format("at most the {} that a domain joins", wired)});
    plan = {.name = "NVLink domain",
            .count = ceil_div(fleet.gpus, used),
            .hosts = ceil_div(has, fleet.gpus_per_host),
            .slack = (has - used) / fleet.gpus_per_host};
  }
  const std::int64_t unit_gpus = ceil_div(fleet.gpus, plan.count);
  plan.leaf = std::max<std::int64_t>(1, fleet.leaf_gpus / unit_gpus);
  return plan;
}

// New machines fail besides: a share of them within a period.
FailureClass infant_failures(const ReliabilityProfile& profile, const FleetCounts& fleet,
                             Seconds age) {
  const Ranged<double> share = ranged(profile.infant_share);
  const Seconds period = ranged(profile.infant_period).value;
  const auto rate = [&](double of) {
    return Hertz(static_cast<double>(fleet.gpus) * of / period.si() *
                 std::exp(-age.si() / period.si()));
  };
  // They are repaired as whatever fails most is.
  const FailureMode* common = nullptr;
  for (const FailureMode& mode : profile.failures)
    if (mode.blast == BlastRadius::host && mode.scales_with == RateBasis::accelerator &&
        mode.rate.known() && (common == nullptr || mode.rate.get() > common->rate.get()))
      common = &mode;
  return {.name = "infant mortality",
          .rate = {.value = rate(share.value), .low = rate(share.low), .high = rate(share.high)},
          .blast = BlastRadius::host,
          .removed = exactly(1.0),
          .repair = common != nullptr ? ranged(common->repair) : exactly(Seconds{}),
          .decay = period};
}

}  // namespace

Bytes checkpoint_bytes(double parameters, const OptimizerCost& optimizer, double weight_bytes) {
  return bytes(parameters * (weight_bytes + optimizer.master_bytes + optimizer.state_bytes));
}

FleetCounts fleet_counts(const Cluster& cluster) {
  const FabricParts parts = fabric_parts(cluster.fabric, cluster.gpus);
  FleetCounts fleet{.gpus = cluster.gpus,
                    .hosts = ceil_div(cluster.gpus, cluster.gpus_per_host),
                    .domains = parts.domains,
                    .gpus_per_host = std::min(cluster.gpus_per_host, cluster.gpus),
                    .gpus_per_domain = std::min(cluster.fabric.scale_up.domain, cluster.gpus),
                    .nics = parts.nics};
  const bool torus = cluster.fabric.scale_up.kind == ScaleUpKind::torus;
  if (torus) fleet.gpus_per_domain = fleet.gpus_per_host;  // a torus is cut, not lost, by a failure
  for (const CableRun& run : parts.cables)
    if (torus ? run.medium != Medium::backplane : run.from == "nic" || run.to == "nic")
      fleet.links += run.cables;
  fleet.switches = parts.switch_count(torus ? "ocs" : "leaf");
  if (fleet.switches > 0 && !torus) fleet.leaf_gpus = below_a_leaf(cluster, fleet, fleet.switches);
  fleet.spare_planes = !torus && cluster.fabric.scale_out.planes > 1;
  return fleet;
}

std::int64_t count_of(const FleetCounts& fleet, FailureUnit unit) {
  switch (unit) {
    case FailureUnit::gpu:
      return fleet.gpus;
    case FailureUnit::host:
      return fleet.hosts;
    case FailureUnit::domain:
      return fleet.domains;
    case FailureUnit::nic:
      return fleet.nics;
    case FailureUnit::link:
      return fleet.links;
    case FailureUnit::switch_:
      return fleet.switches;
    case FailureUnit::job:
      return 1;
  }
  return 0;
}

std::vector<FailureClass> failure_classes(const ReliabilityProfile& profile,
                                          const FleetCounts& fleet, const Device& device,
                                          const Host& host) {
  const Device reference = load_device(profile.accelerator);
  const Host reference_host = load_host(profile.host);
  const Ranged<double> by_device =
      ratio(device.failure_rate, reference.failure_rate, device.name == reference.name);
  const Ranged<double> by_host =
      ratio(host.failure_rate, reference_host.failure_rate, host.name == reference_host.name);
  std::vector<FailureClass> classes;
  for (const FailureMode& mode : profile.failures) {
    const auto count = static_cast<double>(count_of(fleet, mode.per));
    if (!mode.rate.known() || count <= 0) continue;
    const bool network = mode.per == FailureUnit::link || mode.per == FailureUnit::switch_;
    if (network && fleet.spare_planes) continue;  // the other planes carry on, slower
    Ranged<double> by = exactly(1.0);
    if (mode.scales_with == RateBasis::accelerator) by = by_device;
    if (mode.scales_with == RateBasis::host) by = by_host;
    classes.push_back({.name = mode.name,
                       .rate = scaled(ranged(mode.rate), by, count),
                       .blast = mode.blast,
                       .job_wide = mode.per == FailureUnit::job,
                       .removed = ranged(mode.removed),
                       .repair = ranged(mode.repair),
                       .latency = ranged(mode.latency),
                       .outage = ranged(mode.outage)});
  }
  return classes;
}

GoodputCase goodput_case(const Cluster& cluster, const ReliabilityProfile& profile,
                         const GoodputJob& job) {
  FleetCounts fleet = fleet_counts(cluster);
  const UnitPlan units = unit_plan(fleet, job);
  if (units.hosts > 1) fleet.domains = units.count;  // more of them, when each is used in part
  GoodputCase result{.gpus = fleet.gpus,
                     .units = units,
                     .failures = failure_classes(profile, fleet, cluster.device, cluster.host),
                     .detection = ranged(profile.recovery.detection),
                     .diagnosis = ranged(profile.recovery.diagnosis),
                     .warm_up = ranged(profile.recovery.warm_up),
                     .maintenance_rate = ranged(profile.maintenance_rate),
                     .maintenance = ranged(profile.maintenance_duration),
                     .stragglers = ranged(profile.stragglers),
                     .variation = exactly(job.variation),
                     .data_loading = ranged(profile.data_loading),
                     .evaluation = ranged(profile.evaluation),
                     .repair_crews = job.repair_crews,
                     .elastic = job.elastic,
                     .step = job.step,
                     .tokens_per_step = job.tokens_per_step,
                     .tokens = job.tokens,
                     .whole_steps = true,
                     .replicas = job.replicas,
                     .lemon_share = ranged(profile.lemon_share),
                     .start_measured = ranged(profile.recovery.start_measured).value};
  const Ranged<Seconds> start = ranged(profile.recovery.start);
  const Ranged<Seconds> each = ranged(profile.recovery.start_per_gpu);
  const auto gpus = static_cast<double>(fleet.gpus);
  result.start = {.value = start.value + each.value * gpus,
                  .low = start.low + each.low * gpus,
                  .high = start.high + each.high * gpus};
  if (result.elastic && result.elastic->replicas == 0) result.elastic->replicas = job.replicas;
  for (const StorageTier& tier : job.storage)
    result.tiers.push_back(resolve_tier(cluster, profile, fleet, job, tier));
  sort_stably(result.tiers, [](const CheckpointTier& a, const CheckpointTier& b) {
    return a.survives < b.survives;
  });
  const CheckpointTier peers =
      resolve_tier(cluster, profile, fleet, job, {.kind = StorageKind::peer_memory});
  result.snapshot = peers.stall;
  result.peer_write = peers.write;
  result.peer_flow = peers.flow;
  if (job.tokens_per_step > 0) result.run = job.step * (job.tokens / job.tokens_per_step);
  if (job.preemption.known())
    result.failures.push_back(
        {.name = "preemption",
         .rate = scaled(ranged(job.preemption), exactly(1.0), static_cast<double>(fleet.hosts)),
         .blast = BlastRadius::host,
         .removed = exactly(1.0),
         .repair = ranged(job.replacement)});
  if (job.fleet_age) result.failures.push_back(infant_failures(profile, fleet, *job.fleet_age));
  if (job.spare_gpus) {
    result.spares = *job.spare_gpus / ceil_div(fleet.gpus, result.units.count);
  } else {
    result.spare_probability = usual_spare_probability;
    result.spares = spares_needed(result, result.spare_probability);
  }
  check_goodput(result);
  return result;
}

}  // namespace orrery
