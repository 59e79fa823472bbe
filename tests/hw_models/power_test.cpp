// Tests the power model: nothing runs faster than its energy allows, and nothing draws more.
#include "hw_models/power.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace orrery {
namespace {

ResolvedDevice board(double limit, double idle) {
  ResolvedDevice device;
  device.power_limit = watts(limit);
  device.idle_power = watts(idle);
  return device;
}

TEST_CASE("work throttles only where its energy asks for it") {
  const ResolvedDevice device = board(700, 100);
  CHECK(sustained_time(seconds(1), Joules(300), device) == seconds(1));
  CHECK(sustained_time(seconds(1), Joules(900), device) == seconds(1.5));
  CHECK(mean_power(Joules(300), seconds(1), device) == watts(400));
  CHECK(mean_power(Joules(900), seconds(1), device) == watts(700));
  CHECK(mean_power(Joules(900), seconds(0), device) == watts(100));
}

TEST_CASE("a board without a published limit is not throttled") {
  const ResolvedDevice device = board(0, 0);
  CHECK(sustained_time(seconds(1), Joules(1e6), device) == seconds(1));
  CHECK(mean_power(Joules(50), seconds(1), device) == watts(50));
}

TEST_CASE("sustained time is monotone in burst time and energy") {
  const bool held = rc::check("monotone", [] {
    const ResolvedDevice device = board(700, 75);
    const double time = *rc::gen::inRange(1, 1000) * 1e-4,
                 energy = *rc::gen::inRange(1, 1000) * 0.1;
    const double more = 1 + *rc::gen::inRange(0, 100) * 0.01;
    const Seconds base = sustained_time(Seconds(time), Joules(energy), device);
    RC_ASSERT(sustained_time(Seconds(time * more), Joules(energy), device) >= base);
    RC_ASSERT(sustained_time(Seconds(time), Joules(energy * more), device) >= base);
    RC_ASSERT(base >= Seconds(time));
  });
  CHECK(held);
}

}  // namespace
}  // namespace orrery
