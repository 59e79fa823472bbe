// SPDX-License-Identifier: Apache-2.0
// Reads profiles of reliability, and finds the one that an accelerator has.
#include "hw_models/reliability.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

constexpr const char* reliability_folder = "hw_models/catalog/reliability";
constexpr std::string_view any_accelerator = "*";  // in default_for: those that no profile names
constexpr auto unit_text =
    enum_names<FailureUnit>({"gpu", "host", "domain", "nic", "link", "switch", "job"});
constexpr auto blast_text = enum_names<BlastRadius>({"process", "host", "domain", "leaf", "site"});
constexpr auto basis_text = enum_names<RateBasis>({"accelerator", "host", "none"});

FailureMode read_mode(const std::string& name, const JsonValue& at) {
  at.expect_only({"per", "blast", "scales_with", "rate", "removed", "repair", "latency", "outage"});
  FailureMode mode{.name = name,
                   .per = unit_text.from(at.at("per")),
                   .blast = blast_text.from(at.at("blast")),
                   .scales_with = basis_text.from(at.at("scales_with")),
                   .rate = read_sourced<Hertz>(at.at("rate")),
                   .removed = read_share(at.at("removed")),
                   .repair = read_sourced<Seconds>(at.at("repair"))};
  if (const auto latency = at.find("latency")) mode.latency = read_sourced<Seconds>(*latency);
  if (const auto outage = at.find("outage")) mode.outage = read_sourced<Seconds>(*outage);
  const bool whole = mode.blast == BlastRadius::process || mode.blast == BlastRadius::site;
  if (whole && mode.removed.known() && mode.removed.get() > 0)
    at.at("removed").fail("0: nothing is exchanged after the failure of a process or a site");
  return mode;
}

std::vector<FailureMode> read_modes(const JsonValue& at) {
  std::vector<FailureMode> modes;
  for (const auto& [name, entry] : at.members()) {
    const auto& known = failure_names();
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error({.file = at.file(),
                   .path = entry.path(),
                   .found = in_quotes(name),
                   .expected = "a known kind of failure",
                   .nearest = nearest_name(name, known)});
    modes.push_back(read_mode(name, entry));
  }
  if (modes.empty()) at.fail("at least one kind of failure");
  return modes;
}

RecoveryTimes read_recovery(const JsonValue& at) {
  at.expect_only({"detection", "diagnosis", "start", "start_per_gpu", "start_measured", "warm_up"});
  return {.detection = read_sourced<Seconds>(at.at("detection")),
          .diagnosis = read_sourced<Seconds>(at.at("diagnosis")),
          .start = read_sourced<Seconds>(at.at("start")),
          .start_per_gpu = read_sourced<Seconds>(at.at("start_per_gpu")),
          .start_measured = read_sourced<double>(at.at("start_measured")),
          .warm_up = read_sourced<Seconds>(at.at("warm_up"))};
}

}  // namespace

std::string_view to_text(FailureUnit unit) { return unit_text[unit]; }
std::string_view to_text(BlastRadius blast) { return blast_text[blast]; }
std::string_view to_text(RateBasis basis) { return basis_text[basis]; }

const std::vector<std::string>& failure_names() {
  static const std::vector<std::string> names = {
      "backplane",         "faulty-gpu",  "gpu-software", "hbm",      "host",      "link",
      "machine",           "maintenance", "nic",          "nvswitch", "processor", "software",
      "silent-corruption", "site-power",  "sram",         "switch",   "thermal"};
  return names;
}

ReliabilityProfile read_reliability(const JsonValue& file) {
  file.expect_only({"name", "title", "accelerator", "host", "default_for", "failures", "recovery",
                    "maintenance", "infancy", "lemon_share", "lemon_hosts", "running", "storage",
                    "remedies"});
  ReliabilityProfile profile{.name = file.at("name").text(),
                             .title = file.at("title").text(),
                             .accelerator = file.at("accelerator").text(),
                             .host = file.at("host").text(),
                             .failures = read_modes(file.at("failures")),
                             .recovery = read_recovery(file.at("recovery"))};
  for (const JsonValue& name : file.at("default_for").items())
    profile.default_for.push_back(name.text());
  const JsonValue maintenance = file.at("maintenance");
  maintenance.expect_only({"rate", "duration"});
  profile.maintenance_rate = read_sourced<Hertz>(maintenance.at("rate"));
  profile.maintenance_duration = read_sourced<Seconds>(maintenance.at("duration"));
  const JsonValue infancy = file.at("infancy");
  infancy.expect_only({"share", "period"});
  profile.infant_share = read_share(infancy.at("share"));
  profile.infant_period = read_sourced<Seconds>(infancy.at("period"));
  profile.lemon_share = read_share(file.at("lemon_share"));
  if (const auto hosts = file.find("lemon_hosts")) {
    profile.lemon_hosts = read_share(*hosts);
    if (!profile.lemon_hosts.known() || !(profile.lemon_hosts.get() > 0) ||
        !(profile.lemon_hosts.get() < 1))
      hosts->fail("a share of all hosts above 0 and below 1");
  }
  const JsonValue running = file.at("running");
  running.expect_only({"stragglers", "data_loading", "evaluation"});
  profile.stragglers = read_share(running.at("stragglers"));
  profile.data_loading = read_share(running.at("data_loading"));
  profile.evaluation = read_share(running.at("evaluation"));
  const JsonValue storage = file.at("storage");
  storage.expect_only({"remote_per_gpu", "local_per_host", "copy_per_gpu", "save_overhead",
                       "training_network", "least_interval"});
  profile.remote_per_gpu = read_sourced<BytesPerSecond>(storage.at("remote_per_gpu"));
  profile.local_per_host = read_sourced<BytesPerSecond>(storage.at("local_per_host"));
  profile.copy_per_gpu = read_sourced<BytesPerSecond>(storage.at("copy_per_gpu"));
  profile.save_overhead = read_sourced<Seconds>(storage.at("save_overhead"));
  profile.training_network = read_share(storage.at("training_network"));
  profile.least_interval = read_sourced<Seconds>(storage.at("least_interval"));
  const JsonValue remedies = file.at("remedies");
  remedies.expect_only({"restart_factor", "corruption_latency", "elastic_recovery"});
  profile.restart_factor = read_share(remedies.at("restart_factor"));
  profile.corruption_latency = read_sourced<Seconds>(remedies.at("corruption_latency"));
  profile.elastic_recovery = read_sourced<Seconds>(remedies.at("elastic_recovery"));
  if (!profile.restart_factor.known() || !profile.corruption_latency.known() ||
      !profile.elastic_recovery.known())
    remedies.fail("all three values: remedies are weighed with them");
  return profile;
}

ReliabilityProfile load_reliability(const std::string& name) {
  return read_reliability(load_catalog_entry(reliability_folder, "reliability", name));
}

ReliabilityProfile with_failure_rate(ReliabilityProfile profile, double factor) {
  for (FailureMode& mode : profile.failures)
    for (std::optional<Hertz>* rate : {&mode.rate.value, &mode.rate.low, &mode.rate.high})
      if (*rate) *rate = factor * **rate;
  profile.title += fmt::format(", {:.4g} times as many failures", factor);
  return profile;
}

std::string default_reliability(const std::string& accelerator) {
  std::string others;
  for (const std::string& name : catalog_names(reliability_folder)) {
    const JsonValue entry = load_catalog_entry(reliability_folder, "reliability", name);
    for (const JsonValue& known : entry.at("default_for").items()) {
      if (known.text() == accelerator) return name;
      if (known.text() == any_accelerator) others = name;
    }
  }
  if (others.empty())
    throw Error({.file = std::string(reliability_folder),
                 .found = "no profile for " + accelerator,
                 .expected = "one whose default_for names it, or \"*\""});
  return others;
}

}  // namespace orrery
