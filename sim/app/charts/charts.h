// SPDX-License-Identifier: Apache-2.0
// Knows what an answer looks like: charts as Vega-Lite specifications, made of the answer alone.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"

namespace orrery {

// A specification that holds its own data, so that it shows wherever Vega-Lite does.
struct Chart {
  std::string name;   // "time": of files and of keywords
  std::string title;  // what it shows, for people
  Json spec;
};

// Charts of an answer for machines, of any command, in the order in which they are read. None where
// it holds nothing to draw. Errors name what an answer that was changed by hand lacks.
std::vector<Chart> charts_of(const JsonValue& answer);

// [{"name", "title", "spec"}], as programs and pages take them.
Json charts_json(const std::vector<Chart>& charts);

Chart timeline_chart(const std::string& of, const JsonValue& timeline);  // of simulate

// By command.
std::vector<Chart> step_charts(const JsonValue& answer);    // simulate, and the winner of advise
std::vector<Chart> advice_charts(const JsonValue& answer);  // advise
std::vector<Chart> plan_charts(const JsonValue& answer);
std::vector<Chart> service_charts(const JsonValue& answer);
std::vector<Chart> fleet_charts(const JsonValue& answer);  // schedule
// Of one of its points; none of a run that is over at once.
std::vector<Chart> fleet_timeline_charts(const JsonValue& point);
std::vector<Chart> validation_charts(const JsonValue& answer);

}  // namespace orrery
