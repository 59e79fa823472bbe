// SPDX-License-Identifier: Apache-2.0
// Knows by which figure points of a schedule are compared, and what they must keep.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/outcome/fleet/fleet_measures.h"

namespace orrery {

// completion.mean, completion.p90, completion.p99, wait.mean, wait.p90, wait.p99 (s), useful (share
// of the time, the more the better), energy (J), slo (share of the requests of served models that
// keep all promises, the more the better).
struct FleetFigure {
  const char* name;
  double (*of)(const FleetMeasures&);
  bool more_is_better = false;
  bool of_services = false;  // means something where a model is served
  // Of so many jobs, or requests; nothing: of the cluster. Without one it is not 0, but not known.
  double (*of_how_many)(const FleetMeasures&) = nullptr;
  bool is_known(const FleetMeasures& m) const { return !of_how_many || of_how_many(m) > 0; }
  double value(const FleetMeasures& m) const { return more_is_better ? -of(m) : of(m); }
};
const std::vector<FleetFigure>& fleet_figures();
const FleetFigure& figure_called(const JsonValue& name);
const FleetFigure& figure_named(std::string_view name);  // it is one of them

// A figure that a point must keep, in the mean over its runs: "wait.p99=4h", "useful=0.5".
struct FleetLimit {
  const FleetFigure* figure = nullptr;
  double most = 0;  // of FleetFigure::value
};
// With commas between several.
std::vector<FleetLimit> read_limits(const JsonValue& text);
// A figure that is not known keeps no limit.
bool keeps(const std::vector<FleetLimit>& limits, const std::vector<FleetMeasures>& runs);

}  // namespace orrery
