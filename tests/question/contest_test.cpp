// SPDX-License-Identifier: Apache-2.0
// Tests how often the point that is called the best is the best.
#include <catch2/catch.hpp>

#include <cmath>

#include "sim/base/random.h"
#include "sim/question/compare/race.h"
#include "sim/question/schedule/schedule.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

// Points whose means differ by about as much as is known after so many seeds, with noise that they
// share.
TEST_CASE("law: a chance of being the least is as often right", "[schedule]") {
  RandomStream random(fresh(29), 0);
  for (const std::size_t seeds : {8, 24}) {
    double said = 0, right = 0;
    int cases = 0;
    for (int round = 0; round < 400; ++round) {
      constexpr std::size_t points = 3;
      double truth[points];
      for (double& mean : truth) mean = random.normal(0, 1.0 / std::sqrt(double(seeds)));
      std::vector<std::vector<double>> values(points, std::vector<double>(seeds));
      for (std::size_t s = 0; s < seeds; ++s) {
        const double common = random.normal(0, 5);
        for (std::size_t p = 0; p < points; ++p)
          values[p][s] = truth[p] + common + random.normal(0, 1);
      }
      const std::vector<double> chances = chances_of_least(values, 1);
      const auto best = static_cast<std::size_t>(std::max_element(chances.begin(), chances.end()) -
                                                 chances.begin());
      said += chances[best];
      right += truth[best] <= *std::min_element(truth, truth + points) ? 1 : 0;
      ++cases;
    }
    INFO(seeds << " seeds: said " << said / cases << ", right " << right / cases);
    CHECK(std::abs(said - right) / cases < 0.09);
  }
}

// The bar: 100 small grids, each race against 200 other seeds. Minutes; run by hand and by night.
TEST_CASE("winners of a race are winners", "[.contest]") {
  RandomStream random(fresh(31), 0);
  Catalogues catalogues;
  int stated = 0, right = 0, undecided = 0;
  std::int64_t runs = 0;
  for (int grid = 0; grid < 100; ++grid) {
    const char* mixes[] = {"philly", "acme-kalos", "acme-seren", "helios"};
    const std::string mix = mixes[random.below(4)];
    const auto gpus = static_cast<std::int64_t>(8 * (6 + random.below(20)));
    const double per_day = 20 + 10 * static_cast<double>(random.below(20));
    const SortedJson settings = {{"cluster", "dgx-h100"},
                                 {"gpus", gpus},
                                 {"policy", {"fifo", "easy", "sjf-easy"}},
                                 {"place", {"pack", "spread"}},
                                 {"days", 3},
                                 {"seeds", 200},
                                 {"jobs", {{{"mix", mix}, {"per_day", per_day}}}}};
    SortedJson race = settings;
    race["confidence"] = 0.95;
    const auto seed = static_cast<std::uint64_t>(1000 * grid + 1);
    const Scheduled fast =
        schedule_jobs(JsonValue::from(race, "race"), {.catalogues = catalogues, .seed = seed});
    runs += fast.runs;
    if (fast.points[fast.best].chance < 0.95) {  // not stated
      ++undecided;
      continue;
    }
    const Scheduled whole = schedule_jobs(JsonValue::from(settings, "all"),
                                          {.catalogues = catalogues, .seed = seed + 500});
    ++stated;
    // 200 seeds may not tell two points apart: then neither is wrong.
    const bool as_good = whole.points[fast.best].chance >= 0.05;
    right += as_good ? 1 : 0;
    if (!as_good)
      UNSCOPED_INFO(mix << " " << gpus << " GPUs, " << per_day << " a day: " << fast.best
                        << " after " << fast.points[fast.best].measures.size() << ", " << whole.best
                        << " with " << whole.points[whole.best].chance << ", the other one "
                        << whole.points[fast.best].chance);
  }
  WARN(right << " of " << stated << " winners stated at 95% are right, " << undecided
             << " undecided after 200 seeds; " << runs << " runs");
  CHECK(right >= 0.92 * stated);
}

}  // namespace
}  // namespace orrery
