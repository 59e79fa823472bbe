// SPDX-License-Identifier: Apache-2.0
// Knows how often machines fail, what a failure takes with it and how long recovery takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

// What a rate is per. link: a cable between a NIC and its leaf switch, transceivers included (in a
// torus, a cable of the torus); switch_: a leaf switch (in a torus, an optical circuit switch).
enum class FailureUnit : std::uint8_t { gpu, host, domain, nic, link, switch_, job };
// What cannot be used until it is repaired, from the least to the most.
enum class BlastRadius : std::uint8_t { process, host, domain, leaf, site };
// Which entry of the catalogue scales the rate on other devices than the profile's own.
enum class RateBasis : std::uint8_t { accelerator, host, none };
std::string_view to_text(FailureUnit);
std::string_view to_text(BlastRadius);
std::string_view to_text(RateBasis);

// One way to fail. Every failure ends the step and interrupts the job.
struct FailureMode {
  std::string name;  // "hbm", "nvswitch", "link", ..: one of failure_names()
  FailureUnit per = FailureUnit::gpu;
  BlastRadius blast = BlastRadius::host;
  RateBasis scales_with = RateBasis::none;
  Sourced<Hertz> rate;       // of one unit
  Sourced<double> removed;   // share of failures after which the blast radius is out for `repair`
  Sourced<Seconds> repair;   // until what was removed is back in the pool
  Sourced<Seconds> latency;  // how long it goes unnoticed and corrupts what is computed; may be
                             // left out
  Sourced<Seconds> outage;   // nothing runs for so long, whatever the spares; may be left out
};

// From the failure to the first useful step, in this order. The checkpoint is read in between.
struct RecoveryTimes {
  Sourced<Seconds> detection;      // until the job is stopped
  Sourced<Seconds> diagnosis;      // until what failed is found and exchanged for a spare
  Sourced<Seconds> start;          // processes, communicators, whatever the scale
  Sourced<Seconds> start_per_gpu;  // what each further accelerator adds to that
  Sourced<double> start_measured;  // most accelerators of which a start has been published
  Sourced<Seconds> warm_up;        // first steps: compilation, caches, data loaders
};

struct ReliabilityProfile {
  std::string name, title;
  std::string accelerator, host;         // catalogue entries that the rates belong to
  std::vector<std::string> default_for;  // accelerators that use it if nothing else is said
  std::vector<FailureMode> failures;     // sorted by name
  RecoveryTimes recovery;
  Sourced<Hertz> maintenance_rate;        // planned stops of a job
  Sourced<Seconds> maintenance_duration;  // of one, without the start that follows
  Sourced<double> infant_share;           // of new accelerators that fail early, besides the rates
  Sourced<Seconds> infant_period;         // in which 63% of them do
  Sourced<double> lemon_share;  // of failures, those of few bad hosts, which eviction would remove
  Sourced<double> lemon_hosts;  // of all hosts, those bad ones; may be left out
  // Shares of the time in which steps run.
  Sourced<double> stragglers;    // slower steps while a slow host is not found
  Sourced<double> data_loading;  // waits for data
  Sourced<double> evaluation;
  // Storage of checkpoints.
  Sourced<BytesPerSecond> remote_per_gpu;  // remote store, each way
  Sourced<BytesPerSecond> local_per_host;  // local NVMe drives, each way
  Sourced<BytesPerSecond> copy_per_gpu;    // from an accelerator to host memory
  Sourced<Seconds> save_overhead;          // of each save, besides its bytes: all ranks must agree
  Sourced<double> training_network;  // share of the bytes to a store that leave by training's NICs
  Sourced<Seconds> least_interval;   // between saves to a store: nobody is known to save more often
  // What remedies would make of it; they change nothing about the job as it is run.
  Sourced<double> restart_factor;       // of detection, diagnosis, start and warm-up, sped up
  Sourced<Seconds> corruption_latency;  // until wrong numbers are noticed, with checks in the steps
  Sourced<Seconds> elastic_recovery;    // until the others go on when a replica has left
};

const std::vector<std::string>& failure_names();

// hw_models/catalog/reliability/<name>.json (schema in hw_models/catalog/README.md), overlays
// merged. Errors name the key: unknown keys, negative rates, shares outside 0 to 1.
ReliabilityProfile read_reliability(const JsonValue& file);
ReliabilityProfile load_reliability(const std::string& name);

// The profile whose default_for has the accelerator, else "llama3-h100", the best documented one.
std::string default_reliability(const std::string& accelerator);

// The profile where everything fails `factor` times as often, which its title says; what is planned
// or repaired stays. factor > 0.
ReliabilityProfile with_failure_rate(ReliabilityProfile profile, double factor);

// Calls visit(path, sourced) on every value, in a fixed order: for ranges and law 12.
template <class ProfileRef, class Visit>
void visit_reliability_values(ProfileRef& p, Visit&& visit) {
  for (auto& mode : p.failures) {
    const std::string path = "failures." + mode.name + ".";
    visit(path + "rate", mode.rate);
    visit(path + "removed", mode.removed);
    visit(path + "repair", mode.repair);
    visit(path + "latency", mode.latency);
    visit(path + "outage", mode.outage);
  }
  visit("recovery.detection", p.recovery.detection);
  visit("recovery.diagnosis", p.recovery.diagnosis);
  visit("recovery.start", p.recovery.start);
  visit("recovery.start_per_gpu", p.recovery.start_per_gpu);
  visit("recovery.start_measured", p.recovery.start_measured);
  visit("recovery.warm_up", p.recovery.warm_up);
  visit("maintenance.rate", p.maintenance_rate);
  visit("maintenance.duration", p.maintenance_duration);
  visit("infancy.share", p.infant_share);
  visit("infancy.period", p.infant_period);
  visit("lemon_share", p.lemon_share);
  visit("lemon_hosts", p.lemon_hosts);
  visit("running.stragglers", p.stragglers);
  visit("running.data_loading", p.data_loading);
  visit("running.evaluation", p.evaluation);
  visit("storage.remote_per_gpu", p.remote_per_gpu);
  visit("storage.local_per_host", p.local_per_host);
  visit("storage.copy_per_gpu", p.copy_per_gpu);
  visit("storage.save_overhead", p.save_overhead);
  visit("storage.training_network", p.training_network);
  visit("storage.least_interval", p.least_interval);
  visit("remedies.restart_factor", p.restart_factor);
  visit("remedies.corruption_latency", p.corruption_latency);
  visit("remedies.elastic_recovery", p.elastic_recovery);
}

}  // namespace orrery
