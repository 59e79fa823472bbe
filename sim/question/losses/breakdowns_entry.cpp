// SPDX-License-Identifier: Apache-2.0
// Holds spares and lemons to what the cluster and the profile have.
#include "sim/question/losses/breakdowns_entry.h"

#include <fmt/format.h>

#include "sim/outcome/fleet/job_months.h"
#include "sim/question/losses/entry_time.h"
#include "workloads/cluster_job/job_clock.h"

namespace orrery {
namespace {

std::int32_t spare_hosts(const JsonValue& s, const SlotShape& shape) {
  const auto spares = s.find("spares");
  if (!spares) return 0;
  const std::int64_t gpus = spares->integer(0, shape.gpus() - 1);
  if (gpus % shape.gpus_per_host != 0)
    spares->fail(fmt::format("whole hosts of {} accelerators", shape.gpus_per_host));
  return static_cast<std::int32_t>(gpus / shape.gpus_per_host);
}

// By the rates of RSC-1 a host that is no lemon fails so often once in a thousand years.
constexpr std::int32_t usual_lemon_failures = 3;
constexpr FleetTime usual_lemon_time{28 * day_us};

LemonHosts read_lemons(const JsonValue& s, const ReliabilityProfile& profile, std::int32_t hosts) {
  LemonHosts lemons = lemon_hosts(profile, hosts);
  const auto how = s.find("lemons");
  const std::string what = how ? how->one_of({"even", "return", "out"}) : "return";
  if (how && what != "even" && lemons.hosts == 0)
    how->fail(lemon_hosts(profile, INT32_MAX).hosts > 0
                  ? "even: of so few hosts none is a lemon"
                  : "even, or a profile of reliability that has lemon_hosts");
  if (what == "even") lemons = {};
  for (const char* key : {"lemon_failures", "lemon_time"})
    if (const auto v = s.find(key); v && what != "out") v->fail("nothing without lemons out");
  if (what != "out") return lemons;
  lemons.exchange_after = usual_lemon_failures;
  lemons.within = usual_lemon_time;
  if (const auto often = s.find("lemon_failures"))
    lemons.exchange_after = static_cast<std::int32_t>(often->integer(1, 1000));
  if (const auto time = s.find("lemon_time"))
    lemons.within = read_fleet_time(*time, seconds(1), "a time from 1 s on, such as \"28 day\"");
  return lemons;
}

}  // namespace

std::optional<ReliabilityProfile> read_profile(const JsonValue& s) {
  const auto name = s.find("reliability");
  if (!name) {
    for (const char* key :
         {"failure_rate", "spares", "repair_crews", "lemons", "lemon_failures", "lemon_time"})
      if (const auto v = s.find(key)) v->fail("nothing without reliability: then nothing fails");
    return std::nullopt;
  }
  ReliabilityProfile profile = load_reliability(name->reference());
  if (const auto factor = s.find("failure_rate")) {
    if (!(factor->number() > 0)) factor->fail("a factor above 0");
    profile = with_failure_rate(profile, factor->number());
  }
  return profile;
}

BreakdownPlan read_breakdowns(const JsonValue& s, const ReliabilityProfile& profile,
                              const Cluster& cluster, const SlotShape& shape) {
  BreakdownPlan plan = breakdown_plan(cluster, profile);
  plan.spare_hosts = spare_hosts(s, shape);
  plan.lemons = read_lemons(s, profile, shape.hosts);
  if (const auto crews = s.find("repair_crews"))
    plan.repair_crews = static_cast<std::int32_t>(crews->integer(1, 1'000'000));
  return plan;
}

}  // namespace orrery
