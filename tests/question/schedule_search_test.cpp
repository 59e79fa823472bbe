// SPDX-License-Identifier: Apache-2.0
// Tests which values a search of a schedule takes by itself.
#include <catch2/catch.hpp>

#include <cmath>

#include "sim/outcome/fleet/job_months.h"
#include "sim/question/schedule/search_values.h"

namespace orrery {
namespace {

// Spares for the hosts that are away at a time: the least number k with a share of at least that
// much below a Poisson sum, added up here by hand.
TEST_CASE("spares to search follow from what fails and how long repairs take", "[schedule]") {
  Catalogues catalogues;
  const SortedJson question = {{"cluster", "dgx-h100"},
                               {"gpus", 16384},
                               {"reliability", "llama3-h100"},
                               {"search", "spares"}};
  const JsonValue searched =
      with_searched_values(JsonValue::from(question, "question"), catalogues);
  const Cluster cluster = catalogues.cluster("dgx-h100", 16384);
  double away = 0;
  for (const BreakdownKind& kind : breakdown_plan(cluster, load_reliability("llama3-h100")).kinds)
    away += kind.rate.si() * kind.removed * std::max(1, kind.reach) * kind.repair.si();
  CHECK(away > 1);
  std::vector<std::int64_t> expected = {0};
  for (const double share : {0.5, 0.9, 0.99, 0.999}) {
    double term = std::exp(-away), sum = term;
    std::int64_t hosts = 0;
    while (sum < share) sum += term *= away / static_cast<double>(++hosts);
    expected.push_back(8 * hosts);
  }
  CHECK(searched.at("spares").raw() == SortedJson(expected));
  // More failures, more spares; a value that is given stays one of them.
  SortedJson worse = question;
  worse["failure_rate"] = 4;
  worse["spares"] = 8;
  const JsonValue more = with_searched_values(JsonValue::from(worse, "question"), catalogues);
  const std::vector<JsonValue> spares = more.at("spares").items();
  CHECK(spares.back().integer() > expected.back());
  CHECK(std::any_of(spares.begin(), spares.end(),
                    [](const JsonValue& v) { return v.integer() == 8; }));
}

TEST_CASE("limits of power to search lie around the given one, or the most of all", "[schedule]") {
  Catalogues catalogues;
  SortedJson question = {
      {"cluster", "dgx-h100"}, {"gpus", 64}, {"power_limit", "50 kW"}, {"search", "power_limit"}};
  const auto first = [&] {
    return with_searched_values(JsonValue::from(question, "question"), catalogues)
        .at("power_limit")
        .items();
  };
  CHECK(first().at(0).quantity<Watts>() == Watts(50e3));
  CHECK(first().at(3).quantity<Watts>() == Watts(35e3));
  question.erase("power_limit");
  // Boards of 700 W with their shares of hosts.
  CHECK(first().at(0).quantity<Watts>() > Watts(64 * 700.0));
  CHECK(first().at(0).quantity<Watts>() < Watts(64 * 1400.0));
  question["power_limit"] = {"50 kW", "40 kW"};
  CHECK(first().size() == 2);
}

}  // namespace
}  // namespace orrery
