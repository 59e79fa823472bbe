// SPDX-License-Identifier: Apache-2.0
// Checks when flows end, and law 1: what flows must move is what crosses the links.
#include "sim/engine/flows/clock.h"

#include <optional>

#include <catch2/catch.hpp>

#include "tests/engine/random_flows.h"

using namespace orrery;

namespace {

FlowTable one_link(double capacity, int flows, double bytes) {
  FlowTable table;
  const LinkIndex link = table.add_link(capacity);
  for (int f = 0; f < flows; ++f) table.add_flow({.bytes = bytes}, std::vector<FlowUse>{{link, 1}});
  return table;
}

bool ends(FlowClock& clock, FlowIndex flow, std::int64_t time) {
  const auto end = clock.next();
  return end && end->flow == flow && end->time.ps == time && clock.now().ps == time;
}

}  // namespace

TEST_CASE("flows end when their bytes are through, and the others speed up") {
  const FlowTable table = one_link(1e9, 3, 1000);
  FlowClock clock(table);
  clock.start(0, {0});
  clock.start(1, {0});
  clock.start(2, {500'000});
  // Two share until 0.5 us (250 bytes each), three until 2.75 us, in which the first two end.
  CHECK(ends(clock, 0, 2'750'000));
  CHECK(ends(clock, 1, 2'750'000));
  CHECK(clock.bytes_moved(2) == Approx(750));
  CHECK(ends(clock, 2, 3'000'000));
  CHECK(clock.bytes_moved(2) == 1000);
  CHECK_FALSE(clock.next());
  CHECK(clock.solves() ==
        4);  // at 0, 0.5, 2.75 and 3 us, though two flows started and ended at once
}

TEST_CASE("an end is the first picosecond at which all bytes are through") {
  for (const auto& [capacity, bytes, time] : std::vector<std::tuple<double, double, std::int64_t>>{
           {1e12, 1, 1},     // to the picosecond
           {1e12, 1.25, 2},  // not before
           {3e12, 1, 1},
           {1e12, 5e-324, 1},                  // at least one picosecond
           {1e9 / 3, 1e9, 3'000'000'000'000},  // the rate is rounded: no picosecond more for that
           {50e9, 64 << 20, 1'342'177'280},
           {1e3, 1e6, 1'000'000'000'000'000}}) {
    const FlowTable table = one_link(capacity, 1, bytes);
    FlowClock clock(table);
    clock.start(0, {0});
    CHECK(ends(clock, 0, time));
  }
}

TEST_CASE("changes of an instant count once, after its ends") {
  const FlowTable table = one_link(1e12, 2, 100);
  FlowClock clock(table);
  clock.start(1, 50, {100});  // pushed before the end of flow 0, and counted after it
  clock.start(0, {0});
  CHECK(ends(clock, 0, 100));
  clock.start(0, 200, {100});  // again, in the very picosecond
  CHECK(ends(clock, 1, 200));
  clock.stop(1, {200});  // has ended: nothing to stop
  clock.stop(0, {250});
  CHECK_FALSE(clock.next());
  CHECK(clock.now().ps == 250);
  CHECK(clock.bytes_moved(0) == Approx(100));
  CHECK(clock.solves() == 4);
}

TEST_CASE("an end counts before a stop or a start of its picosecond, ends in order of flow") {
  FlowTable table = one_link(1e12, 1, 200);
  table.add_flow({.bytes = 100}, std::vector<FlowUse>{{table.add_link(1e12), 1}});
  FlowClock clock(table);
  clock.stop(1, {200});
  clock.start(1, {200});
  clock.start(1, {100});
  clock.start(0, {0});
  CHECK(ends(clock, 0, 200));
  CHECK(ends(clock, 1, 200));
  CHECK(ends(clock, 1, 300));
  clock.start(1, {300});
  CHECK_FALSE(clock.next_until({350}));
  clock.start(0, 50, {350});  // its end is pushed after that of flow 1
  CHECK(ends(clock, 0, 400));
  CHECK(ends(clock, 1, 400));
}

TEST_CASE("time passes without ends too, and empty flows end at once") {
  const FlowTable table = one_link(1e12, 2, std::numeric_limits<double>::infinity());
  FlowClock clock(table);
  clock.start(0, {0});
  CHECK_FALSE(clock.next());  // it is no end that a background flow has none
  CHECK_FALSE(clock.next_until({1000}));
  CHECK(clock.now().ps == 1000);
  CHECK(clock.bytes_moved(0) == Approx(1000));
  clock.start(1, 0, {1000});
  CHECK(ends(clock, 1, 1000));
  clock.start(1, 0, {1500});
  CHECK_FALSE(clock.next_until({1499}));
  CHECK(ends(clock, 1, 1500));
  clock.start(1, 500, {1500});
  CHECK_FALSE(clock.next_until({1600}));
  CHECK(clock.solver().rate(1) == 0.5e12);
  CHECK(ends(clock, 1, 2500));
}

TEST_CASE("flows that are cut off for ever are an error, not an endless wait") {
  const FlowTable table = one_link(1e12, 1, 1000);
  FlowClock clock(table);
  clock.start(0, {0});
  clock.set_capacity(0, 0, {500});
  clock.set_capacity(0, 1e-9, {600});
  clock.set_capacity(0, 0.5e12, {700});
  CHECK(ends(clock, 0, 1700));
  clock.set_capacity(0, 0, {1700});
  clock.start(0, {1700});
  CHECK_FALSE(clock.next_until({5000}));
  CHECK_THROWS_AS(clock.next(), Error);
  clock.set_capacity(0, 1e-9, {5000});  // ends in 31,000 years
  CHECK_THROWS_AS(clock.next(), Error);
  clock.set_capacity(0, 1e12, {5000});
  CHECK(ends(clock, 0, 6000));
}

// Monotonicity (more bandwidth is never slower) is no law of max-min sharing, as this shows: a
// wider first link lets a long flow take more of a second one, and the flow there ends later.
TEST_CASE("more capacity may slow a flow elsewhere") {
  FlowTable table;
  const LinkIndex first = table.add_link(2e12), second = table.add_link(10e12);
  table.add_flow({.bytes = 1e6}, std::vector<FlowUse>{{first, 1}, {second, 1}});
  table.add_flow({.bytes = 800}, std::vector<FlowUse>{{second, 1}});
  FlowClock narrow(table);
  narrow.start(0, {0}), narrow.start(1, {0});
  CHECK(ends(narrow, 1, 100));
  table.links[first].capacity = 6e12;
  FlowClock wide(table);
  wide.start(0, {0}), wide.start(1, {0});
  CHECK(ends(wide, 1, 160));
}

namespace {

// Runs flows with random starts, stops and changes of capacity, and adds up what every flow and
// link carries while rates stand still.
struct Tally {
  const FlowTable& table;
  FlowClock clock;
  std::vector<double> moved, fastest, crossed;  // by flow, by flow, by link
  std::vector<bool> started, ended;
  Ticks since;
  bool one_solve_an_instant = true;

  explicit Tally(const FlowTable& t)
      : table(t),
        clock(t),
        moved(t.flows.size(), 0),
        fastest(t.flows.size(), 0),
        crossed(t.links.size(), 0),
        started(t.flows.size(), false),
        ended(t.flows.size(), false) {}

  void add_up(Ticks until, const std::vector<double>& rates, const std::vector<double>& loads) {
    const double seconds = static_cast<double>((until - since).ps) * 1e-12;
    for (std::size_t f = 0; f < moved.size(); ++f) {
      moved[f] += rates[f] * seconds;
      fastest[f] = std::max(fastest[f], rates[f]);
    }
    for (std::size_t l = 0; l < crossed.size(); ++l) crossed[l] += loads[l] * seconds;
    since = until;
  }
  // Up to `until`, instant by instant.
  void run(Ticks until) {
    std::vector<double> rates(moved.size()), loads(crossed.size());
    while (true) {
      const std::uint64_t solves = clock.solves();
      while (const auto end = clock.next_until(clock.now())) ended[end->flow] = true;
      one_solve_an_instant &= clock.solves() <= solves + 1;
      for (FlowIndex f = 0; f < moved.size(); ++f) rates[f] = clock.solver().rate(f);
      for (LinkIndex l = 0; l < crossed.size(); ++l) loads[l] = clock.solver().load(l);
      const auto end = clock.next_until(until);
      add_up(clock.now(), rates, loads);
      if (!end) return;
      ended[end->flow] = true;
    }
  }
};

}  // namespace

TEST_CASE("law 1: what flows must move is what crosses the links") {
  CHECK(holds([](RandomStream& random) {
    const FlowTable table =
        random.below(2) == 0 ? random_table(random) : random_symmetric_table(random);
    Tally tally(table);
    for (std::size_t step = 0; step < 2 * table.flows.size(); ++step) {
      const auto f = static_cast<FlowIndex>(random.below(table.flows.size()));
      const auto l = static_cast<LinkIndex>(random.below(table.links.size()));
      if (!tally.started[f]) {
        tally.clock.start(f, tally.clock.now());
        tally.started[f] = true;
      } else if (random.below(6) == 0) {
        tally.clock.stop(f, tally.clock.now());
      } else if (std::isfinite(table.links[l].capacity)) {
        tally.clock.set_capacity(l, 50e9 * random.uniform(), tally.clock.now());
      }
      if (random.below(2) == 0)
        tally.run(tally.clock.now() +
                  Ticks{static_cast<std::int64_t>(random.below(2'000'000'000))});
    }
    tally.run(tally.clock.now() + Ticks{1'000'000'000'000'000});
    std::vector<double> through(table.links.size(), 0), slack(table.links.size(), 0);
    for (FlowIndex f = 0; f < table.flows.size(); ++f) {
      const double bytes = table.flows[f].bytes, moved = tally.clock.bytes_moved(f);
      if (tally.ended[f]) RC_ASSERT(moved == bytes);
      RC_ASSERT(moved <= bytes);
      // The last picosecond of a flow may pass after its last byte.
      const double last = 1e-12 * tally.fastest[f];
      RC_ASSERT(std::abs(tally.moved[f] - moved) <= 1e-9 * moved + last);
      for (const FlowUse& use : table.uses_of(table.flows[f])) {
        through[use.link] += use.weight * moved;
        slack[use.link] += use.weight * last;
      }
    }
    for (LinkIndex l = 0; l < table.links.size(); ++l)
      RC_ASSERT(std::abs(tally.crossed[l] - through[l]) <= 1e-9 * through[l] + slack[l]);
    RC_ASSERT(tally.one_solve_an_instant);
  }));
}
