// SPDX-License-Identifier: Apache-2.0
// Knows what is asked of a cluster that decides in rounds how many accelerators each job gets.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/fleet_time.h"
#include "topologies/slots.h"

namespace orrery {

// Who gets accelerators in a round, and how many. las, max-min and fair give a job what it asks
// for, or nothing; optimus and goodput size it.
enum class RoundRule : std::uint8_t { las, optimus, max_min, fair, goodput };
inline constexpr auto round_rule_text =
    enum_names<RoundRule>({"las", "optimus", "max-min", "fair", "goodput"});

struct ElasticQuestion {
  RoundRule rule = RoundRule::goodput;
  // The cluster, the round and the restart of Pollux's evaluation (Qiao et al., OSDI 2021, 5.3).
  std::int32_t hosts = 16, gpus_per_host = 4;
  FleetTime tick{INT64_C(60'000'000)};
  FleetTime restart{INT64_C(30'000'000)};  // on every new place, also the first
  // Share of its speed that a job of several hosts loses, in millionths, where another such job is
  // on one of its hosts; below 10^6.
  std::int64_t meeting_ppm = 0;
  // goodput: no two jobs of several hosts meet on one.
  bool apart = true;
  // las: attained GPU-time with which a job leaves the first queue: 16 GPU-hours, as in that
  // evaluation.
  GpuMicros first_queue = INT64_C(16) * 3'600 * 1'000'000;
  // max-min, fair: rounds for which a decision holds. Six minutes in all, as Gavel has it
  // (Narayanan et al., OSDI 2020, 5).
  std::int32_t slice_rounds = 6;
  // Called after each decision with the place of every job of the list, for laws.
  std::function<void(FleetTime, const std::vector<Grants>&)> look = {};
  std::int64_t gpus() const { return static_cast<std::int64_t>(hosts) * gpus_per_host; }
};

}  // namespace orrery
