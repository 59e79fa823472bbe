// SPDX-License-Identifier: Apache-2.0
// Makes a case of goodput of a cluster, a profile of reliability and a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/reliability.h"
#include "sim/base/text/enum_names.h"
#include "sim/engine/cluster.h"
#include "sim/outcome/months/goodput.h"
#include "workloads/parameters/optimizer.h"

namespace orrery {

// What can fail, counted by the wiring of the cluster at its size.
struct FleetCounts {
  std::int64_t gpus = 0, hosts = 0, domains = 0;
  std::int64_t gpus_per_host = 1, gpus_per_domain = 1;
  std::int64_t nics = 0;
  std::int64_t links = 0;      // between NICs and leaves; of a torus, all its cables
  std::int64_t switches = 0;   // leaves; of a torus, optical circuit switches
  std::int64_t leaf_gpus = 0;  // that one leaf switch serves, on whichever rail
  bool spare_planes = false;   // a NIC has ports on several networks: one may fail
};
FleetCounts fleet_counts(const Cluster& cluster);
std::int64_t count_of(const FleetCounts& fleet, FailureUnit unit);

// Of weights, 2 bytes each, and what the optimizer keeps: mixed-precision Adam makes it 14 bytes a
// parameter.
Bytes checkpoint_bytes(double parameters, const OptimizerCost& optimizer, double weight_bytes = 2);

enum class StorageKind : std::uint8_t {
  host_memory,   // of the same host: survives the process
  peer_memory,   // of hosts in other domains: survives a domain
  local_drives,  // survives the process and a reboot
  remote,        // survives everything
};
inline constexpr auto storage_kind_text =
    enum_names<StorageKind>({"host memory", "memory of peers", "local drives", "remote store"});
constexpr std::string_view to_text(StorageKind k) { return storage_kind_text[k]; }

struct StorageTier {
  StorageKind kind = StorageKind::remote;
  BytesPerSecond bandwidth;        // of the whole job, each way; 0: the profile's
  bool asynchronous = true;        // a copy to host memory stalls the job, the write does not
  Seconds interval;                // 0: the optimal one
  std::int64_t writing_hosts = 0;  // that hold what is saved; 0: all (sharded save)
};

// How often a failing job finds a spare where nobody says how many wait: an owner's choice. Beyond
// it each nine takes ever more idle machines (spares_needed()).
inline constexpr double usual_spare_probability = 0.99;

// What a job is and how it is run. Times and tokens of one undisturbed step come from simulate().
struct GoodputJob {
  Seconds step = seconds(1);
  double tokens_per_step = 0, tokens = 0;
  Bytes checkpoint;           // of the whole model and its optimizer
  std::int64_t replicas = 1;  // data-parallel
  std::vector<StorageTier> storage = {StorageTier{}};
  // That wait, rounded down to whole hosts or domains; absent: usual_spare_probability.
  std::optional<std::int64_t> spare_gpus;
  // Accelerators that the layout uses of each NVLink domain, and that a rack has where the wiring
  // joins fewer of them (64 of an NVL72's 72). 0: all that the wiring joins.
  std::int64_t domain_gpus = 0, rack_gpus = 0;
  std::int64_t repair_crews = 0;
  std::optional<ElasticPlan> elastic;  // 0 replicas: those of the job
  std::optional<Seconds> fleet_age;    // of new machines at the start; absent: no infant mortality
  // Spot capacity: how often one host is taken back without notice, and until another can be had.
  // Absent: machines that stay.
  Sourced<Hertz> preemption;
  Sourced<Seconds> replacement;
  double variation = 0;  // share lost to slower boards that the step time does not hold
};

// The failures of a job, in the order of the profile. On another accelerator or host than the
// profile's, the rates that go with it are scaled by the ratio of the catalogue's own failure
// rates, and the ranges widened by both. Rates that nobody has published are left out.
std::vector<FailureClass> failure_classes(const ReliabilityProfile& profile,
                                          const FleetCounts& fleet, const Device& device,
                                          const Host& host);

// Error for a cluster that its fabric cannot wire, for a checkpoint without a bandwidth, and as
// check_goodput().
GoodputCase goodput_case(const Cluster& cluster, const ReliabilityProfile& profile,
                         const GoodputJob& job);

}  // namespace orrery
