// SPDX-License-Identifier: Apache-2.0
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

TEST_CASE("products alone at the limit take what their energy asks for, beside cooler work less") {
  const ResolvedDevice device = board(700, 100);
  // Alone: 660 J at 600 W.
  const SustainedPass alone =
      sustained_pass(seconds(1), Seconds(0), Joules(660), {{seconds(1), Joules(660)}}, device);
  CHECK(alone.time.si() == Approx(1.1));
  CHECK(alone.energy.si() == Approx(660));
  // Beside an idle second they run at full clock, where an operation costs more.
  const SustainedPass eased =
      sustained_pass(seconds(2), Seconds(0), Joules(660), {{seconds(1), Joules(660)}}, device);
  CHECK(eased.time == seconds(2));
  CHECK(eased.energy.si() > 660);
  // Between the two: slower than at full clocks though the energies alone would fit.
  const SustainedPass mixed =
      sustained_pass(seconds(1.1), Seconds(0), Joules(660), {{seconds(1), Joules(660)}}, device);
  CHECK(mixed.time > seconds(1.1));
  CHECK(mixed.time.si() < 1.2);
  CHECK(mixed.energy.si() == Approx(600 * mixed.time.si()));
  const SustainedPass cool = sustained_pass(seconds(1), Seconds(0), Joules(300), {}, device);
  CHECK(cool.time == seconds(1));
  CHECK(cool.energy.si() == Approx(300));
}

TEST_CASE("what is paced by the clock takes as much longer as the limit lowers it") {
  const ResolvedDevice device = board(700, 100);
  const std::vector<ClockedWork> products = {{seconds(1), Joules(660)}};
  const auto beside = [&](double paced) {
    return sustained_pass(seconds(1.1), seconds(paced), Joules(660), products, device);
  };
  const SustainedPass fixed = beside(0), slowed = beside(0.1);
  CHECK(fixed.clock < 1);
  CHECK(slowed.time > fixed.time);
  CHECK(slowed.clock > fixed.clock);  // more time in which the products cool
  CHECK(slowed.energy.si() == Approx(600 * slowed.time.si()));
  // Nothing slows where the limit is not reached.
  const SustainedPass cool = sustained_pass(seconds(2), seconds(1), Joules(660), products, device);
  CHECK(cool.time == seconds(2));
  CHECK(cool.clock == 1);
}

TEST_CASE("a mix under the limit is monotone in every energy, and in times that no clock paces") {
  const bool held = rc::check("monotone", [] {
    const ResolvedDevice device = board(700, 75);
    const auto number = [](double unit) { return *rc::gen::inRange(1, 1000) * unit; };
    std::vector<ClockedWork> work;
    double burst = number(1e-3), energy = number(0.3);
    for (int i = 0; i < 3; ++i) {
      work.push_back({Seconds(number(1e-3)), Joules(number(1))});
      burst += work.back().time.si();
      energy += work.back().energy.si();
    }
    // Time alone cools: what is paced by the clock may gain more than was added.
    const bool more_time = *rc::gen::arbitrary<bool>();
    const double others = burst - work[0].time.si() - work[1].time.si() - work[2].time.si();
    const Seconds paced(more_time ? 0 : others * *rc::gen::inRange(0, 11) * 0.1);
    const auto pass = [&] {
      return sustained_pass(Seconds(burst), paced, Joules(energy), work, device).time;
    };
    const Seconds base = pass();
    RC_ASSERT(base >= Seconds(burst));
    RC_ASSERT(base.si() >= energy / 625 * (1 - 1e-9));
    const int which = *rc::gen::inRange(0, 3);
    const double more = number(1e-4);
    if (more_time) {
      work[static_cast<std::size_t>(which)].time += Seconds(more);
      burst += more;
    } else {
      work[static_cast<std::size_t>(which)].energy += Joules(100 * more);
      energy += 100 * more;
    }
    constexpr double grid = 0x1p-20;  // shares of the clock are whole steps of it
    RC_ASSERT(pass().si() >= base.si() * (1 - grid));
  });
  CHECK(held);
}

}  // namespace
}  // namespace orrery
