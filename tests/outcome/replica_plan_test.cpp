// SPDX-License-Identifier: Apache-2.0
// Tests how many replicas a rule asks for, and when.
#include <catch2/catch.hpp>

#include <cmath>

#include "sim/base/random.h"
#include "sim/outcome/fleet/replica_plan.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

constexpr FleetTime minutes(std::int64_t n) { return {n * 60 * INT64_C(1'000'000)}; }

// 2 requests a second by night, 20 from 8 to 18 o'clock.
LoadCurve office() {
  return LoadCurve({{.length = seconds(8 * 3600), .rate = Hertz(2)},
                    {.length = seconds(10 * 3600), .rate = Hertz(20)},
                    {.length = seconds(6 * 3600), .rate = Hertz(2)}});
}

ReplicaRule rule_of(ReplicaScale scale) {
  return {.scale = scale, .bears = 6, .check_every = minutes(10), .start = minutes(3)};
}

std::vector<ReplicaLife> lives_of(const ReplicaRule& rule, FleetTime close = minutes(24 * 60)) {
  return replica_lives(office(), rule, rule.start, close);
}

struct Life {
  std::int64_t replica, submit, until;  // minutes
};
void check_lives(const std::vector<ReplicaLife>& lives, const std::vector<Life>& expected) {
  REQUIRE(lives.size() == expected.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    INFO("life " << i);
    CHECK(lives[i].replica == expected[i].replica);
    CHECK(lives[i].submit == minutes(expected[i].submit));
    CHECK(lives[i].until == minutes(expected[i].until));
  }
}

}  // namespace

TEST_CASE("replicas are asked for before a load that is expected", "[service]") {
  CHECK(replicas_for(20, rule_of(ReplicaScale::expected)) == 4);
  CHECK(replicas_for(18, rule_of(ReplicaScale::expected)) == 3);
  CHECK(replicas_for(0, rule_of(ReplicaScale::expected)) == 0);
  // Checks are at 3, 13, .. minutes: that of 7:53 sees 8 o'clock, that of 18:03 sees the night.
  check_lives(lives_of(rule_of(ReplicaScale::expected)),
              {{1, 0, 1440}, {2, 470, 1083}, {3, 470, 1083}, {4, 470, 1083}});
}

TEST_CASE("replicas that follow what was observed come late and leave late", "[service]") {
  // 8 o'clock is seen at 8:03, and 18 o'clock is over for a whole period at 18:13.
  check_lives(lives_of(rule_of(ReplicaScale::observed)),
              {{1, 0, 1440}, {2, 483, 1093}, {3, 483, 1093}, {4, 483, 1093}});
  // Those that would leave before they serve are not asked for.
  CHECK(lives_of(rule_of(ReplicaScale::observed), minutes(486)).size() == 1);
  CHECK(lives_of(rule_of(ReplicaScale::observed), minutes(487)).size() == 4);
}

TEST_CASE("fixed replicas are those of the peak, within least and most", "[service]") {
  ReplicaRule rule = rule_of(ReplicaScale::fixed);
  check_lives(lives_of(rule), {{1, 0, 1440}, {2, 0, 1440}, {3, 0, 1440}, {4, 0, 1440}});
  rule.most = 2;
  check_lives(lives_of(rule), {{1, 0, 1440}, {2, 0, 1440}});
  rule = rule_of(ReplicaScale::expected);
  rule.least = 3;
  check_lives(lives_of(rule), {{1, 0, 1440}, {2, 0, 1440}, {3, 0, 1440}, {4, 470, 1083}});
  rule.headroom = 0.5;  // as if 30 came
  CHECK(lives_of(rule).size() == 5);
}

// Where all come at once there are enough of them at every time, and none too many at a check.
TEST_CASE("law: expected replicas bear every load of a curve", "[service]") {
  RandomStream random(fresh(7), 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<RatePiece> pieces;
    for (int i = 0; i < 6; ++i)
      pieces.push_back({.length = seconds(60 + std::floor(7200 * random.uniform())),
                        .rate = Hertz(100 * random.uniform())});
    const LoadCurve load(pieces);
    ReplicaRule rule{.bears = 1 + 20 * random.uniform(),
                     .check_every = minutes(1 + random.below(60)),
                     .start = minutes(random.below(20))};
    rule.least = random.below(3);
    const FleetTime open = rule.start + minutes(random.below(100)), close = open + minutes(2000);
    const std::vector<ReplicaLife> lives = replica_lives(load, rule, open, close);
    const auto standing = [&](FleetTime at) {
      std::int64_t n = 0;
      for (const ReplicaLife& life : lives)
        n += life.submit + rule.start <= at && at < life.until ? 1 : 0;
      return n;
    };
    FleetTime before;
    for (const ReplicaLife& life : lives) {
      CHECK(life.submit >= before);
      before = life.submit;
      CHECK(life.until > life.submit + rule.start);
      CHECK(life.until <= close);
    }
    for (const LoadSpan& span : load.spans(open, close)) {
      INFO("round " << round << " at " << span.from.us);
      CHECK(static_cast<double>(standing(span.from)) * rule.bears >= span.rate * (1 - 1e-9));
    }
    for (FleetTime check = open; check < close; check += rule.check_every) {
      const double most = load.most(check, std::min(close, check + rule.check_every));
      CHECK(standing(check) == std::max(rule.least, replicas_for(most, rule)));
    }
  }
}

}  // namespace orrery
