// SPDX-License-Identifier: Apache-2.0
// Knows which inputs of goodput make no sense, and says so.
#include <fmt/format.h>

#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/outcome/months/goodput.h"

namespace orrery {
namespace {

[[noreturn]] void refuse(const std::string& path, double found, const std::string& expected) {
  throw Error({.file = "goodput",
               .path = path,
               .found = fmt::format("{:.4g}", found),
               .expected = expected});
}

template <class Q>
void not_negative(const std::string& path, const Q& value) {
  if (!(in_si(value) >= 0)) refuse(path, in_si(value), "a value that is not below 0");
}
template <class Q>
void not_negative(const std::string& path, const Ranged<Q>& value) {
  for (const Q& end : {value.value, value.low, value.high}) not_negative(path, end);
  if (value.low > value.value || value.value > value.high)
    refuse(path, in_si(value.value), "a value between its low and its high end");
}
template <class Q>
void finite(const std::string& path, const Q& value) {
  not_negative(path, value);
  if (!std::isfinite(in_si(value))) refuse(path, in_si(value), "a finite value");
}
void share(const std::string& path, const Ranged<double>& value, bool whole) {
  not_negative(path, value);
  for (const double end : {value.value, value.low, value.high})
    if (end > 1 || (!whole && end >= 1)) refuse(path, end, "a share below 1");
}

void check_failures(const GoodputCase& input) {
  double events = 0, load = 0;
  for (const FailureClass& failure : input.failures) {
    const std::string path = "failures." + failure.name + ".";
    not_negative(path + "rate", failure.rate);
    finite(path + "rate", failure.rate.high);
    share(path + "removed", failure.removed, true);
    not_negative(path + "repair", failure.repair);
    not_negative(path + "latency", failure.latency);
    not_negative(path + "outage", failure.outage);
    not_negative(path + "decay", failure.decay);
    events += failure.rate.value.si() * failure.removed.value;
    load += failure.rate.value.si() * failure.removed.value * failure.repair.value.si();
  }
  if (input.repair_crews > 0 && load >= static_cast<double>(input.repair_crews))
    refuse("repair_crews", static_cast<double>(input.repair_crews),
           fmt::format("more than {:.1f} crews: {:.3g} repairs a day would pile up", load,
                       events * seconds_per_day));
}

void check_tiers(const GoodputCase& input) {
  if (input.tiers.empty() || input.tiers.back().survives != BlastRadius::site)
    refuse("tiers", static_cast<double>(input.tiers.size()),
           "tiers of which the last survives the failure of a site, such as a remote store");
  for (std::size_t i = 0; i < input.tiers.size(); ++i) {
    const CheckpointTier& tier = input.tiers[i];
    const std::string path = "tiers." + tier.name + ".";
    finite(path + "interval", tier.interval);
    finite(path + "stall", tier.stall);
    finite(path + "write", tier.write);
    finite(path + "read", tier.read);
    finite(path + "least_interval", tier.least_interval);
    if (!(tier.slowed >= 0 && tier.slowed < 1))
      refuse(path + "slowed", tier.slowed, "a share of at least 0 and below 1");
    // Intervals count what steps take undisturbed; a write slows those beside it.
    const double written = tier.write.si() * (1 - tier.slowed);
    if (tier.interval > Seconds{} && tier.interval.si() < written * (1 - 1e-9))
      refuse(
          path + "interval", tier.interval.si(),
          fmt::format("an interval of at least the {:.3g} s of steps that a write takes", written));
    if (i > 0 && tier.survives <= input.tiers[i - 1].survives)
      refuse(path + "survives", static_cast<double>(tier.survives),
             "tiers in the order of what they survive, each more than the one before");
  }
}

void check_elastic(const ElasticPlan& plan) {
  if (plan.replicas < 2)
    refuse("elastic.replicas", static_cast<double>(plan.replicas), "at least 2 replicas");
  finite("elastic.stall", plan.stall);
  finite("elastic.rejoin", plan.rejoin);
  ThroughputPoint before;
  for (const ThroughputPoint& point : plan.throughput) {
    const bool inside = point.gpus > before.gpus && point.gpus <= 1 &&
                        point.throughput >= before.throughput && point.throughput <= 1;
    if (!inside)
      refuse("elastic.throughput", point.gpus,
             "points with rising shares of accelerators and of throughput, neither above 1");
    before = point;
  }
}

}  // namespace

void check_goodput(const GoodputCase& input) {
  if (input.gpus < 1) refuse("gpus", static_cast<double>(input.gpus), "at least 1 accelerator");
  const UnitPlan& units = input.units;
  if (units.count < 1) refuse("units", static_cast<double>(units.count), "at least 1");
  if (units.slack < 0 || units.slack >= units.hosts)
    refuse("units.slack", static_cast<double>(units.slack),
           fmt::format("at least 0 and fewer than the {} hosts of a unit", units.hosts));
  if (units.leaf < 1) refuse("units.leaf", static_cast<double>(units.leaf), "at least 1");
  if (input.spares < 0) refuse("spares", static_cast<double>(input.spares), "not below 0");
  if (input.repair_crews < 0)
    refuse("repair_crews", static_cast<double>(input.repair_crews), "not below 0");
  not_negative("detection", input.detection);
  not_negative("diagnosis", input.diagnosis);
  not_negative("start", input.start);
  not_negative("warm_up", input.warm_up);
  not_negative("maintenance_rate", input.maintenance_rate);
  not_negative("maintenance", input.maintenance);
  share("stragglers", input.stragglers, false);
  share("variation", input.variation, false);
  share("data_loading", input.data_loading, false);
  share("evaluation", input.evaluation, false);
  share("lemon_share", input.lemon_share, true);
  finite("tokens", input.tokens);
  finite("tokens_per_step", input.tokens_per_step);
  finite("run", input.run);
  finite("snapshot", input.snapshot);
  finite("peer_write", input.peer_write);
  if (!(input.step > Seconds{}) || !std::isfinite(input.step.si()))
    refuse("step", input.step.si(), "a step time above 0");
  check_failures(input);
  check_tiers(input);
  if (input.elastic) check_elastic(*input.elastic);
}

}  // namespace orrery
