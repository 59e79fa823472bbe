// SPDX-License-Identifier: Apache-2.0
// Predicts samples of the microbenchmarks.
#include "sim/calibrate/health/expected_time.h"

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/calibrate/fit/score.h"
#include "sim/calibrate/log/measured_tables.h"
#include "sim/engine/cluster.h"

namespace orrery {

namespace {

std::optional<Seconds> work_time(const Sample& sample, const Machine& machine) {
  const WorkKind kind = sample.kernel.work.kind;
  // The model's copy is that of a step; what only reads or writes, or uses a link both ways at
  // once, asks about the memory and the link themselves.
  const std::string stream = bare_variant(sample);
  if (kind == WorkKind::copy && stream != "copy" && stream != "memcpy" && !stream.empty())
    return std::nullopt;
  // Pageable memory goes through a buffer of the driver's.
  if (kind == WorkKind::host_copy &&
      (sample.variant == "both" || sample.variant.starts_with("pageable")))
    return std::nullopt;
  return expected_time(measured_row(sample, machine.device.l2_capacity), machine);
}

// The gap before a small kernel with a usual number of parameters, in a chain of many, and the
// kernel's own time.
std::optional<Seconds> launch_time(const Sample& sample, const Calibration& calibration) {
  constexpr double fewest_parameters = 4, most_parameters = 16, long_chain = 16;
  const auto number_or = [&sample](const char* key, double other) {
    const auto at = sample.numbers.find(key);
    return at == sample.numbers.end() ? other : at->second;
  };
  const double parameters = number_or("parameters", fewest_parameters);
  const bool usual = parameters >= fewest_parameters && parameters <= most_parameters &&
                     number_or("blocks", 1) <= 1 && number_or("nodes", long_chain) >= long_chain;
  const auto& gap = sample.variant == "stream"  ? calibration.launch_latency
                    : sample.variant == "graph" ? calibration.graph_latency
                                                : Sourced<Seconds>();
  if (!usual || !gap.known()) return std::nullopt;
  return gap.get() + microseconds(number_or("body_us", 0));
}

// NCCL names its forced protocols; a forced algorithm comes with one.
std::optional<CollectiveTime> collective_of(const Sample& sample, CollectiveKind kind,
                                            const Machine& machine) {
  const auto ranks = static_cast<std::int64_t>(sample.number("ranks"));
  if (ranks > machine.fabric.scale_up.domain) return std::nullopt;
  const Collective call{.kind = kind,
                        .group = {.size = ranks, .per_domain = ranks, .span = ranks},
                        .bytes = Bytes(sample.number("bytes")),
                        .library = CollectiveLibrary::nccl};
  const std::string protocol = sample.text_or("protocol", "default");
  if (protocol == "default") return collective_time(call, machine.fabric, machine.costs);
  const auto forced = collective_protocol_text.find(protocol);
  const auto algorithm = collective_algorithm_text.find(sample.text_or("algorithm", "ring"));
  if (!forced || !algorithm) return std::nullopt;
  return collective_time_with(call, machine.fabric, machine.costs, *algorithm, *forced);
}

// The smallest domain that the device is sold in, and in which it can reach all its peers.
std::optional<Cluster> smallest_cluster(const std::string& device, bool multicast) {
  std::optional<Cluster> best;
  bool best_fits = false;
  for (const std::string& name : cluster_names()) {
    const JsonValue file = load_catalog_entry("sim/engine/catalog/clusters", "cluster", name);
    const auto accelerator = file.find("accelerator");
    if (!accelerator || accelerator->text() != device) continue;
    Cluster cluster = read_cluster(file, 1);
    const bool fits = cluster.fabric.scale_up.in_network_reduction == multicast;
    const bool smaller = !best || cluster.fabric.scale_up.domain < best->fabric.scale_up.domain;
    if (best && !(fits && !best_fits) && !(fits == best_fits && smaller)) continue;
    best_fits = fits;
    best = std::move(cluster);
  }
  return best;
}

// Shares of a message that NCCL's tests count for one rank's links.
double bus_factor(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1) / ranks;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (ranks - 1) / ranks;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_receive:
      return 1;
  }
  return 1;
}

}  // namespace

Machine load_machine(const std::string& device, const Calibration& calibration, bool multicast) {
  const Device known = load_device(device);
  Machine machine{.device = known.resolved(), .calibration = calibration};
  machine.cold = without_cache(machine.device);
  if (auto cluster = smallest_cluster(device, multicast)) {
    machine.has_links = true;
    machine.fabric = std::move(cluster->fabric);
    machine.costs = std::move(cluster->collective_costs);
  }
  return machine;
}

Machine load_machine(const std::string& device, bool multicast) {
  return load_machine(device, load_calibration(load_device(device)), multicast);
}

double bytes_moved(const Sample& sample) {
  return sample.is_work ? minimum_bytes(sample.kernel.work) : 0;
}

double bus_bytes(const Sample& sample) {
  if (sample.kind == "peer-copy") return sample.number("bytes");
  const auto kind = collective_kind_text.find(sample.kind);
  return kind ? sample.number("bytes") * bus_factor(*kind, sample.number("ranks")) : 0;
}

Seconds expected_time(const OperatorRow& row, const Machine& machine) {
  const Work& work = row.kernels[0].work;
  const Library library = row.kernels[0].library;
  const auto& own = machine.calibration.variants;
  const bool has_own = std::any_of(own.begin(), own.end(), [&](const Curve& curve) {
    return curve.kind == work.kind && curve.format == work.input && curve.library == library &&
           curve.variant == row.variant;
  });
  if (!has_own) return predict(row, machine.device, machine.cold, machine.calibration);
  Calibration calibration = machine.calibration;
  use_variant(calibration, work.kind, work.input, library, row.variant);
  return predict(row, machine.device, machine.cold, calibration);
}

std::optional<Seconds> expected_time(const Sample& sample, const Machine& machine) {
  if (sample.is_work) return work_time(sample, machine);
  if (sample.kind == "launch") return launch_time(sample, machine.calibration);
  const auto kind = collective_kind_text.find(sample.kind);
  // In a shift every rank sends and receives at once: no collective of the model does.
  if (!kind || !machine.has_links || sample.variant == "both" || sample.variant == "shift")
    return std::nullopt;
  const auto time = collective_of(sample, *kind, machine);
  return time ? std::optional(time->time) : std::nullopt;
}

std::optional<Seconds> specified_time(const Sample& sample, const ResolvedDevice& device) {
  const auto over = [](double amount, double rate) -> std::optional<Seconds> {
    if (amount <= 0 || rate <= 0) return std::nullopt;
    return Seconds(amount / rate);
  };
  if (!sample.is_work) return over(bus_bytes(sample), device.scale_up_bandwidth.si());
  const Work& work = sample.kernel.work;
  if (work.kind == WorkKind::host_copy) {
    const double both = sample.variant == "both" ? 0.5 : 1;
    return over(bytes_moved(sample) * both, device.host_bandwidth.si());
  }
  const double bandwidth =
      is_cached(sample) ? device.l2_bandwidth.si() : device.memory_bandwidth.si();
  const auto memory = over(bytes_moved(sample), bandwidth);
  const auto tensor =
      over(tensor_flop(work), device.tensor_rate[static_cast<std::size_t>(work.input)].si());
  if (tensor_flop(work) > 0 && !tensor) return std::nullopt;  // a format that the chip lacks
  if (!memory || !tensor) return memory ? memory : tensor;
  return std::max(*memory, *tensor);
}

}  // namespace orrery
