// SPDX-License-Identifier: Apache-2.0
// Lists the figures of a schedule, and reads limits on them.
#include "sim/question/compare/objective.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const FleetFigure& figure : fleet_figures()) names.emplace_back(figure.name);
  return names;
}

double seconds_of(FleetTime t) { return to_seconds(t).si(); }

double jobs_that_end(const FleetMeasures& m) { return static_cast<double>(m.completion.count); }
double jobs_that_wait(const FleetMeasures& m) { return static_cast<double>(m.wait.count); }

double requests(const FleetMeasures& m) {
  double sum = 0;
  for (const ServiceMeasures& service : m.services) sum += service.requests;
  return sum;
}

}  // namespace

const std::vector<FleetFigure>& fleet_figures() {
  static const std::vector<FleetFigure> all = {
      {"completion.mean", [](const FleetMeasures& m) { return m.completion.mean().si(); }, false,
       false, jobs_that_end},
      {"completion.p90", [](const FleetMeasures& m) { return seconds_of(m.completion.p90); }, false,
       false, jobs_that_end},
      {"completion.p99", [](const FleetMeasures& m) { return seconds_of(m.completion.p99); }, false,
       false, jobs_that_end},
      {"wait.mean", [](const FleetMeasures& m) { return m.wait.mean().si(); }, false, false,
       jobs_that_wait},
      {"wait.p90", [](const FleetMeasures& m) { return seconds_of(m.wait.p90); }, false, false,
       jobs_that_wait},
      {"wait.p99", [](const FleetMeasures& m) { return seconds_of(m.wait.p99); }, false, false,
       jobs_that_wait},
      {"useful", [](const FleetMeasures& m) { return m.shares.useful; }, true},
      {"energy", [](const FleetMeasures& m) { return m.energy.si(); }},
      {"deadlines", [](const FleetMeasures& m) { return m.deadlines.met_share(); }, true, false,
       [](const FleetMeasures& m) { return static_cast<double>(m.deadlines.jobs); }},
      {"slo", [](const FleetMeasures& m) { return kept_share(m.services); }, true, true, requests}};
  return all;
}

const FleetFigure& figure_called(const JsonValue& name) {
  return fleet_figures()[name.index_in(figure_names())];
}

const FleetFigure& figure_named(std::string_view name) {
  return *std::find_if(fleet_figures().begin(), fleet_figures().end(),
                       [&](const FleetFigure& figure) { return figure.name == name; });
}

std::vector<FleetLimit> read_limits(const JsonValue& text) {
  std::vector<FleetLimit> limits;
  for (const JsonValue& one : text.listed()) {
    const std::string words = one.text();
    const std::size_t equals = words.find('=');
    if (equals == std::string::npos) one.fail("a figure and its limit, such as wait.p99=4h");
    const FleetFigure& figure =
        figure_called(JsonValue::from(words.substr(0, equals), text.file()));
    const std::string amount = words.substr(equals + 1);
    FleetLimit limit{.figure = &figure};
    if (figure.more_is_better) {
      char* end = nullptr;
      const double share = std::strtod(amount.c_str(), &end);
      if (amount.empty() || *end != '\0' || !(share >= 0 && share <= 1))
        one.fail("a share from 0 to 1");
      limit.most = -share;
    } else if (std::string(figure.name) == "energy") {
      limit.most = JsonValue::from(amount, text.file()).quantity<Joules>().si();
    } else {
      limit.most = JsonValue::from(amount, text.file()).quantity<Seconds>().si();
    }
    limits.push_back(limit);
  }
  return limits;
}

bool keeps(const std::vector<FleetLimit>& limits, const std::vector<FleetMeasures>& runs) {
  return std::all_of(limits.begin(), limits.end(), [&](const FleetLimit& limit) {
    double sum = 0;
    for (const FleetMeasures& run : runs) {
      if (!limit.figure->is_known(run)) return false;
      sum += limit.figure->value(run);
    }
    return sum <= limit.most * static_cast<double>(runs.size());
  });
}

}  // namespace orrery
