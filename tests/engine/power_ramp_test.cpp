// SPDX-License-Identifier: Apache-2.0
// Tests the largest rise and fall of power within a span against all pairs of pieces.
#include "sim/engine/power/power_ramp.h"

#include <catch2/catch.hpp>
#include <vector>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"

namespace orrery {

TEST_CASE("law: a ramp is the largest difference of two instants within a span", "[power]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 300; ++round) {
    RandomStream random(seed + round, 1);
    struct Piece {
      std::int64_t from = INT64_MIN / 2, until = INT64_MAX, drawn = 0;
    };
    std::vector<Piece> pieces = {{.drawn = static_cast<std::int64_t>(random.below(50))}};
    const std::int64_t span = 1 + static_cast<std::int64_t>(random.below(40));
    RampWatch watch(FleetTime{span});
    watch.draw({}, pieces[0].drawn);
    std::int64_t at = 0;
    for (int i = 0; i < 60; ++i) {
      at += 1 + static_cast<std::int64_t>(random.below(15));
      pieces.back().until = at;
      pieces.push_back({.from = at, .drawn = static_cast<std::int64_t>(random.below(50))});
      watch.draw({at}, pieces.back().drawn);
    }
    std::int64_t rise = 0, fall = 0;
    for (std::size_t a = 0; a < pieces.size(); ++a)
      for (std::size_t b = a + 1; b < pieces.size(); ++b) {
        // The last instant of one is just before `until`.
        if (pieces[b].from - pieces[a].until >= span) continue;
        rise = std::max(rise, pieces[b].drawn - pieces[a].drawn);
        fall = std::max(fall, pieces[a].drawn - pieces[b].drawn);
      }
    REQUIRE(watch.most().rise == rise);
    REQUIRE(watch.most().fall == fall);
  }
}

TEST_CASE("a cluster's ramps count from the idle cluster to the last end", "[power]") {
  FleetQuestion question;
  question.shape = pool_shape(16);
  question.policy.place = JobPlace::pool;
  question.idle_milliwatts = 100;
  question.works.front().milliwatts = 700;
  constexpr std::int64_t second = 1'000'000;
  ClusterJobs list;
  // 8 begin at once and 4 more after 50 s; then 4 after 10 minutes; all end apart.
  list.jobs = {{.submit = {0}, .length = {10'000 * second}, .gpus = 8},
               {.submit = {50 * second}, .length = {20'000 * second}, .gpus = 4},
               {.submit = {600 * second}, .length = {20'000 * second}, .gpus = 4}};
  for (ClusterJob& job : list.jobs) job.limit = job.length;
  const PowerRamps ramps = run_fleet(list, question).power.ramps;
  CHECK(ramps.minute.rise == 12 * 600);
  CHECK(ramps.minute.fall == 8 * 600);
  CHECK(ramps.quarter.rise == 16 * 600);
  CHECK(ramps.quarter.fall == 8 * 600);
}

}  // namespace orrery
