// SPDX-License-Identifier: Apache-2.0
// Holds the last end that is told without a run to the last end of a run.
#include <catch2/catch.hpp>

#include "sim/engine/flows/clock.h"
#include "sim/engine/flows/last_end.h"
#include "tests/engine/random_flows.h"

namespace orrery {
namespace {

Ticks last_of_run(const FlowTable& table, double bytes) {
  FlowClock clock(table);
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    clock.start(f, table.flows[f].bytes * bytes, {});
  Ticks last;
  while (const auto end = clock.next()) last = end->time;
  return last;
}

FlowTable two_links(double first, double second) {
  FlowTable table;
  const LinkIndex a = table.add_link(first), b = table.add_link(second);
  for (const auto& uses : {std::vector<FlowUse>{{a, 1}}, {{a, 1}, {b, 0.5}}, {{b, 1}}})
    table.add_flow({.bytes = 1}, uses);
  return table;
}

// Flows of one size, all of which something limits.
FlowTable alike_table(RandomStream& random) {
  FlowTable table = random_table(random, 40, 60);
  // Flows that nothing limits run in no table of a job.
  const LinkIndex all = table.add_link(25e9 * static_cast<double>(table.flows.size()));
  std::vector<FlowEntry> flows;
  flows.swap(table.flows);
  std::vector<FlowUse> uses;
  uses.swap(table.uses);
  for (const FlowEntry& flow : flows) {
    std::vector<FlowUse> with(uses.begin() + flow.first_use,
                              uses.begin() + flow.first_use + flow.uses);
    with.push_back({all, 1});
    table.add_flow({.bytes = 0.25}, with);
  }
  return table;
}

}  // namespace

TEST_CASE("the last end is that of the links that fill first") {
  // Two share the first link, 1.5 of a flow the second.
  CHECK(last_end(two_links(1e9, 10e9), 1e6) == Ticks{2'000'000'000});
  CHECK(last_end(two_links(10e9, 1e9), 1e6) == Ticks{1'500'000'000});
  FlowTable uneven = two_links(1e9, 10e9);
  uneven.flows[0].bytes = 2;
  CHECK_FALSE(last_end(uneven, 1e6));
  FlowTable capped = two_links(1e9, 10e9);
  capped.flows[2].cap = 1e8;
  CHECK_FALSE(last_end(capped, 1e6));
  CHECK_FALSE(last_end(two_links(1e9, 0), 1e6));
  // All but equally full: only a run can tell.
  CHECK_FALSE(last_end(two_links(1e9, 0.75e9 * (1 + 1e-12)), 1e6));
}

TEST_CASE("law: the last end is that of a run, to the picosecond") {
  std::size_t told = 0, asked = 0;
  CHECK(holds([&](RandomStream& random) {
    const FlowTable table = alike_table(random);
    const double bytes = 1 + 1e8 * random.uniform();
    ++asked;
    const auto end = last_end(table, bytes);
    if (!end) return;
    ++told;
    RC_ASSERT(*end == last_of_run(table, bytes));
  }));
  CHECK(2 * told > asked);
}

TEST_CASE("law: all ends of flows of one size follow from one solve, to the picosecond") {
  std::size_t told = 0, asked = 0;
  CHECK(holds([&](RandomStream& random) {
    FlowTable table = alike_table(random);
    if (random.below(2) == 0) tie_links(table, 1e9 * (1 + random.uniform()));
    const double bytes = 1 + 1e8 * random.uniform();
    ++asked;
    const FlowEnds all = ends_together(table, bytes);
    if (all.ends.empty()) return;
    ++told;
    FlowClock clock(table);
    for (FlowIndex f = 0; f < table.flows.size(); ++f)
      clock.start(f, table.flows[f].bytes * bytes, {});
    while (const auto end = clock.next()) RC_ASSERT(all.ends[end->flow] == end->time);
    for (FlowIndex f = 0; f < table.flows.size(); ++f)
      RC_ASSERT(all.rates[f] == clock.most_rate(f));
  }));
  CHECK(2 * told > asked);
  FlowTable uneven = two_links(1e9, 10e9);
  uneven.flows[0].bytes = 2;
  CHECK(ends_together(uneven, 1e6).ends.empty());
}

}  // namespace orrery
