// SPDX-License-Identifier: Apache-2.0
// Makes lists of values to search.
#include "sim/question/schedule/search_values.h"

#include <fmt/format.h>

#include <boost/math/distributions/poisson.hpp>
#include <cmath>
#include <set>

#include "sim/engine/jobs/link_sharing.h"
#include "sim/engine/power/power_budget.h"
#include "sim/outcome/fleet/job_months.h"
#include "sim/outcome/fleet/replica_plan.h"
#include "sim/outcome/host_power.h"
#include "sim/question/losses/breakdowns_entry.h"
#include "sim/question/plan/question.h"
#include "sim/question/rules/policy_entry.h"
#include "sim/question/schedule/listed_names.h"
#include "sim/question/schedule/settings.h"

namespace orrery {
namespace {

struct Machine {
  const JsonValue& settings;  // the first values of lists
  Cluster cluster;
  std::int64_t gpus = 0;
  std::int64_t per_host() const { return cluster.gpus_per_host; }
};

using Values = std::vector<SortedJson>;

Values named(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

// Hosts that are away at a time are Poisson where each repair is by itself (M/G/infinity): enough
// spares for them in half of the time, in 90, 99 and 99.9% of it.
constexpr double covered[] = {0.5, 0.9, 0.99, 0.999};

Values spare_values(const Machine& machine) {
  const JsonValue& s = machine.settings;
  const auto profile = read_profile(s);
  if (!profile)
    s.at("search").fail("another setting than spares without reliability: nothing fails");
  const BreakdownPlan plan = breakdown_plan(machine.cluster, *profile);
  double away = 0;  // hosts, in the mean
  for (const BreakdownKind& kind : plan.kinds)
    away += kind.rate.si() * kind.removed * std::max(1, kind.reach) * kind.repair.si();
  std::set<std::int64_t> gpus = {0};
  if (away > 0)
    for (const double share : covered) {
      const double hosts = std::ceil(boost::math::quantile(boost::math::poisson(away), share));
      const auto spares = static_cast<std::int64_t>(hosts) * machine.per_host();
      if (spares < machine.gpus) gpus.insert(spares);
    }
  if (const auto given = s.find("spares")) gpus.insert(given->integer(0, machine.gpus - 1));
  return {gpus.begin(), gpus.end()};
}

// But for random: it is what rules are held against, and nobody's choice.
Values place_values(const Machine&) {
  Values places;
  for (const std::string& name : job_place_text.names())
    if (*job_place_text.find(name) != JobPlace::random) places.push_back(name);
  return places;
}

// A fifth fewer to a fifth more, in whole hosts.
Values gpu_values(const Machine& machine) {
  std::set<std::int64_t> gpus = {machine.gpus};
  for (const int percent : {80, 90, 110, 120}) {
    const std::int64_t hosts = machine.gpus * percent / (100 * machine.per_host());
    if (hosts > 0) gpus.insert(hosts * machine.per_host());
  }
  return {gpus.begin(), gpus.end()};
}

// From all down to 70%, a tenth apart: lower caps than that were measured by few.
Values limit_values(const Machine& machine) {
  const auto given = machine.settings.find("power_limit");
  const double watts =
      given ? given->quantity<Watts>().si()
            : 1e-3 *
                  static_cast<double>(milliwatts_with_host(
                      machine.cluster.device.resolved().power_limit, machine.cluster)) *
                  static_cast<double>(machine.gpus);
  Values limits;
  for (const int percent : {100, 90, 80, 70})
    limits.push_back(fmt::format("{:.6g} kW", 1e-5 * watts * percent));
  return limits;
}

struct Searchable {
  const char* key;
  Values (*values)(const Machine&);
};

template <const auto& text>
Values texts(const Machine&) {
  return named(text.names());
}

const std::vector<Searchable>& searchable() {
  static const std::vector<Searchable> all = {
      {"policy", [](const Machine&) { return named(policy_names()); }},
      {"place", place_values},
      {"spares", spare_values},
      {"gpus", gpu_values},
      {"power_limit", limit_values},
      {"power_policy", texts<power_policy_text>},
      {"defragment",
       [](const Machine&) {
         return Values{"never", "pays"};
       }},
      {"delay",
       [](const Machine&) {
         return Values{"none", "price", "carbon"};
       }},
      {"scale", texts<replica_scale_text>},
      {"meeting", texts<link_meeting_text>},
      {"lemons", [](const Machine&) {
         return Values{"return", "out"};
       }}};
  return all;
}

bool is_several(const JsonValue& value) {
  return value.is_array() || plan_values(value).size() > 1;
}

}  // namespace

std::vector<std::string> searchable_settings() {
  std::vector<std::string> keys;
  for (const Searchable& one : searchable()) keys.emplace_back(one.key);
  return keys;
}

JsonValue with_searched_values(const JsonValue& s, Catalogues& catalogues) {
  const auto search = s.find("search");
  if (!search) return s;
  const std::vector<std::string> keys = listed_names(*search, searchable_settings());
  SortedJson whole = s.raw(), single = s.raw();
  for (const char* key : {"cluster", "gpus", "reliability", "failure_rate", "spares"})
    if (const auto given = s.find(key)) single[key] = plan_values(*given).front();
  const JsonValue first = JsonValue::from(std::move(single), s.file());
  const std::int64_t gpus = first.at("gpus").integer(1, most_scheduled_gpus);
  const Machine machine{.settings = first,
                        .cluster = catalogues.cluster(first.at("cluster").reference(), gpus),
                        .gpus = gpus};
  for (const std::string& key : keys) {
    if (const auto given = s.find(key); given && is_several(*given)) continue;
    for (const Searchable& one : searchable())
      if (one.key == key) whole[key] = one.values(machine);
  }
  return JsonValue::from(std::move(whole), s.file());
}

}  // namespace orrery
