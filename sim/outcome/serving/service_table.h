// SPDX-License-Identifier: Apache-2.0
// Knows what a replica of a served model does at any load: a table of runs, compiled once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/outcome/serving/service.h"

namespace orrery {

// A replica at one load, in the mean.
struct ServedLoad {
  double rate = 0;    // requests a second that arrive
  double kept = 1;    // share of them that keep all promises
  double error = 0;   // half the 95% interval of that share
  double tokens = 0;  // output tokens a second
  Watts power;        // of an accelerator with its board, hosts left out
};

// A replica that always has more to do than it can run.
struct SaturatedService {
  double rate = 0;             // requests a second that end
  double tokens = 0;           // output tokens a second
  std::int64_t in_flight = 0;  // requests that run at a time, in the mean
  Watts power;                 // as above
};

// As many clients in a loop as all ranks may run sequences. `refusal`: why nothing can be served.
struct SaturatedRun {
  std::string refusal;
  SaturatedService service;
};
SaturatedRun saturated_service(ServiceCase asked);

// Means over runs of independent requests at loads from none to beyond what the replica can bear.
// Between two loads a value is on the straight line. Loads are added where a run between two is
// off the line by more than 0.4 points of kept promises or 0.7% of the power, unless they are
// closer than 0.5% of what the replica can bear.
class ServiceTable {
 public:
  // `asked` without arrivals; gaps between requests have this deviation over their mean (1:
  // Poisson). `asked` serves something: `saturated` is of it.
  ServiceTable(const ServiceCase& asked, const SaturatedService& saturated, double variation,
               int threads);
  // Of loads that are known: in order, the first 0.
  ServiceTable(std::vector<ServedLoad> loads, const SaturatedService& saturated)
      : loads_(std::move(loads)), saturated_(saturated) {}

  const std::vector<ServedLoad>& loads() const { return loads_; }  // in order, the first 0
  const SaturatedService& saturated() const { return saturated_; }
  // Beyond the last load as there.
  ServedLoad at(double rate) const;
  // The highest load up to which at least this share of requests keeps all promises; 0: none. At
  // most 98% of what ends where it is saturated: nearer to that no run is long enough to tell.
  double most_at(double share) const;
  // Each load is run by so many seeds, with so many requests: more of them near saturation, where a
  // queue takes (1 - share)^-2 arrivals to forget what it was. The first fifth is not counted.
  // `share`: of saturation.
  static std::int64_t requests_at(double share);
  static constexpr std::uint64_t seeds = 8;

 private:
  std::vector<ServedLoad> loads_;
  SaturatedService saturated_;
};

}  // namespace orrery
