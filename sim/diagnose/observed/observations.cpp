// SPDX-License-Identifier: Apache-2.0
// Joins what all files of a run show.
#include "sim/diagnose/observed/observations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "sim/diagnose/observed/held_clocks.h"

namespace orrery {

namespace {

// A profiler lengthens a step by so much, as a logarithm: 0 to 20% in our own profiles.
constexpr double profiler_noise = 0.1;

}  // namespace

std::optional<double> Observations::told_step() const {
  if (step_s) return step_s;
  if (log && log->usual.steps > 0) return log->usual.median.si();
  return std::nullopt;
}

std::optional<double> Observations::overruled_step() const {
  if (!step_s || !log || log->usual.steps == 0) return std::nullopt;
  const double logged = log->usual.median.si();
  if (std::abs(*step_s - logged) <= log->usual.deviation.si()) return std::nullopt;
  return logged;
}

std::optional<double> Observations::usual_step() const {
  if (const auto told = told_step()) return told;
  std::optional<double> longest;
  for (const observe::Profile& profile : profiles)
    longest = std::max(longest.value_or(0), (profile.mean.end - profile.mean.begin).si());
  return longest;
}

std::vector<int> ranks_seen(const Observations& run, std::size_t gpus) {
  std::vector<int> ranks;
  for (const observe::Profile& profile : run.profiles)
    ranks.push_back(profile.rank.rank.value_or(static_cast<int>(ranks.size())));
  if (ranks.size() > 1) return ranks;
  // Else timers of the log may tell ranks apart, or counters, by their devices.
  if (run.log)
    for (const observe::LoggedPhase& phase : run.log->phases)
      if (phase.ranks.size() > ranks.size()) {
        ranks.clear();
        for (const auto& [rank, time] : phase.ranks) ranks.push_back(rank);
      }
  for (const observe::CounterLog& log : run.counters) {
    const std::size_t devices = std::min(gpus, log.of(observe::Counter::sm_clock).size());
    if (devices <= ranks.size()) continue;
    ranks.resize(devices);
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  if (ranks.empty()) ranks.push_back(0);
  return ranks;
}

std::optional<Watts> makers_limit(const Scenario& scenario) {
  return scenario.cluster.device.power_limit.value;
}

Seen seen_of(const Observations& run, const RunState& healthy, const Scenario& scenario) {
  Seen seen;
  const auto gpus = static_cast<std::size_t>(std::max<std::int64_t>(1, scenario.cluster.gpus));
  seen.ranks = ranks_seen(run, gpus);
  if (const auto step = run.usual_step())
    seen.readings.push_back({.symptom = Symptom::step,
                             .value = std::log(*step / healthy.healthy_s),
                             .noise = run.told_step() ? 0 : profiler_noise});
  if (run.log) {
    seen.can_name = true;
    read_log(*run.log, healthy, seen.readings);
    std::set<std::string> kinds;
    for (const observe::Trouble& trouble : run.log->troubles)
      kinds.insert(std::string(observe::trouble_text[trouble.kind]));
    seen.troubles.assign(kinds.begin(), kinds.end());
  }
  seen.profiles_can_name = !run.profiles.empty();
  if (has_kernel_through_steps(run.profiles)) seen.name(kernel_through_steps);
  if (has_collectives_on_hosts(run.profiles)) seen.name(collectives_on_hosts);
  if (has_collectives_alone(run.profiles, run.told_step(), healthy)) seen.name(collectives_alone);
  using observe::KernelClass;
  if (has_older_kernels(run.profiles, KernelClass::attention, scenario)) seen.name(older_attention);
  if (has_older_kernels(run.profiles, KernelClass::product, scenario)) seen.name(older_products);
  if (!run.profiles.empty())
    read_profiles(run.profiles, run.told_step(), healthy, scenario, seen.readings);
  const std::vector<HeldDevice> held = held_devices(run.counters, gpus);
  // Few sentences, and counters of errors may be many.
  for (std::string& sentence : held_sentences(held, makers_limit(scenario)))
    seen.told.push_back(std::move(sentence));
  std::set<std::string> named;
  for (const NamedTrouble& one :
       troubles_of(run.counters, scenario.cluster.fabric.scale_out.nic_bandwidth.get())) {
    if (!one.trouble.empty()) named.insert(one.trouble);
    seen.told.push_back(one.sentence);
  }
  for (const HeldDevice& device : held)
    if (device.share_of(ClockHolder::heat) > 0) named.insert("heat");
  if (are_held(held, makers_limit(scenario))) named.insert(clocks_are_held);
  if (named.contains(port_beyond_allowed)) named.erase(port_errors);  // one thing, counted once
  for (const std::string& trouble : named) {
    seen.can_name = true;
    seen.name(trouble.c_str());
  }
  if (!run.counters.empty()) read_counters_of(run.counters, gpus, healthy, seen.readings);
  return seen;
}

}  // namespace orrery
