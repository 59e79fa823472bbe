// SPDX-License-Identifier: Apache-2.0
// Holds rates with links left out to those with all links, and says how often the guess fails.
#include "sim/engine/flows/limiting_links.h"

#include <bit>

#include <catch2/catch.hpp>

#include "sim/engine/flows/solver.h"
#include "tests/engine/random_flows.h"

namespace orrery {
namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

std::vector<double> rates_of(const FlowTable& table, const std::vector<std::uint8_t>& runs) {
  FlowSolver solver(table);
  std::vector<double> rates;
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    if (runs[f]) solver.start(f);
  solver.solve();
  for (FlowIndex f = 0; f < table.flows.size(); ++f) rates.push_back(solver.rate(f));
  return rates;
}

// Two flows over narrow links of their own, which meet on a wide one.
FlowTable two_that_meet(double meeting) {
  FlowTable table;
  const LinkIndex a = table.add_link(2), b = table.add_link(3), both = table.add_link(meeting);
  table.add_flow({.bytes = 1}, std::vector<FlowUse>{{a, 1}, {both, 1}});
  table.add_flow({.bytes = 1}, std::vector<FlowUse>{{b, 1}, {both, 1}});
  return table;
}

}  // namespace

TEST_CASE("links that flows cannot fill are left out") {
  const FlowTable wide = two_that_meet(6), narrow = two_that_meet(4);
  CHECK(LimitingLinks().of(wide).uses.size() == 2);
  CHECK(LimitingLinks().of(narrow).uses.size() == 4);
  CHECK(LimitingLinks().of(wide).links.size() == 3);
}

TEST_CASE("a link counts once flows were faster than guessed") {
  // Two share a link; when one leaves, the other is twice as fast, too fast for where it meets a
  // third.
  FlowTable table;
  const LinkIndex shared = table.add_link(4), meeting = table.add_link(4.5),
                  own = table.add_link(2);
  table.add_flow({.bytes = 1}, std::vector<FlowUse>{{shared, 1}, {meeting, 1}});
  table.add_flow({.bytes = 1}, std::vector<FlowUse>{{shared, 1}});
  table.add_flow({.bytes = 1}, std::vector<FlowUse>{{own, 1}, {meeting, 1}});
  LimitingLinks limiting;
  CHECK(limiting.of(table).uses.size() == 3);
  CHECK_FALSE(limiting.missed(table, rates_of(limiting.of(table), {1, 1, 1})));
  CHECK(limiting.missed(table, rates_of(limiting.of(table), {1, 0, 1})));
  CHECK(limiting.of(table).uses.size() == 5);
  CHECK(rates_of(limiting.of(table), {1, 0, 1}) == std::vector<double>{2.5, 0, 2});
}

TEST_CASE("law: rates without links that do not count are the same, to the bit") {
  std::size_t left_out = 0, missed = 0;
  CHECK(holds([&](RandomStream& random) {
    const FlowTable table = random_table(random, 40, 60);
    std::vector<std::uint8_t> runs(table.flows.size());
    for (std::uint8_t& run : runs) run = random.below(4) > 0;
    LimitingLinks limiting;
    while (true) {
      const FlowTable less = limiting.of(table);
      const std::vector<double> rates = rates_of(less, runs);
      if (limiting.missed(table, rates)) {
        ++missed;
        continue;
      }
      const std::vector<double> whole = rates_of(table, runs);
      for (FlowIndex f = 0; f < table.flows.size(); ++f)
        RC_ASSERT(bits(rates[f]) == bits(whole[f]));
      left_out += less.uses.size() < table.uses.size() ? 1 : 0;
      return;
    }
  }));
  CHECK(left_out > 100);
  CHECK(missed > 10);
}

}  // namespace orrery
