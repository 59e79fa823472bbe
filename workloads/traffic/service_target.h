// SPDX-License-Identifier: Apache-2.0
// Knows what a service promises: bounds on latencies, by percentile or mean and by class.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/units.h"

namespace orrery {

// To the first token; per output token after it, mean of a request; between two tokens; to the
// last.
enum class ServiceLatency { ttft, tpot, itl, e2e };
inline constexpr auto service_latency_text =
    enum_names<ServiceLatency>({"ttft", "tpot", "itl", "e2e"});
constexpr std::string_view to_text(ServiceLatency l) { return service_latency_text[l]; }

struct LatencyBound {
  ServiceLatency latency = ServiceLatency::ttft;
  double percent = 0;  // of all requests that keep it; 0: the mean
  Seconds at_most;
  std::string class_name = {};  // empty: every class
};

struct ServiceTarget {
  std::vector<LatencyBound> bounds;
};

// "ttft.p95=2s,tpot.mean=30ms,chat.itl.p99.9=50ms". Error, with `flag`: anything else, a class that
// is not in `classes`, a percentile that is not above 0 and below 100, a time that is not positive.
ServiceTarget parse_target(std::string_view text, const std::string& flag,
                           const std::vector<std::string>& classes = {});
std::string to_text(const ServiceTarget& target);

}  // namespace orrery
