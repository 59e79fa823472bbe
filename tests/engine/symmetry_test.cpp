// SPDX-License-Identifier: Apache-2.0
// Checks folding: that it is exact (law 5), the coarsest, and found out when it is wrong.
#include "sim/engine/flows/symmetry.h"

#include <map>
#include <optional>
#include <set>

#include <catch2/catch.hpp>

#include "sim/engine/flows/clock.h"
#include "tests/engine/random_flows.h"

using namespace orrery;

namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

// Colour refinement as its definition says it: signatures in full, all members in every round.
std::pair<std::size_t, std::size_t> coarsest(const FlowTable& table) {
  std::vector<std::size_t> flow(table.flows.size(), 0), link(table.links.size(), 0);
  std::size_t flows = 0, links = 0;
  while (true) {
    std::map<std::tuple<double, double, int, std::uint64_t, std::set<std::size_t>>, std::size_t>
        f_of;
    for (std::size_t f = 0; f < flow.size(); ++f) {
      const FlowEntry& e = table.flows[f];
      std::set<std::size_t> seen;
      for (const FlowUse& use : table.uses_of(e))
        if (use.weight > 0) seen.insert(link[use.link]);
      flow[f] =
          f_of.try_emplace({e.bytes, e.cap, e.priority, e.colour, seen}, f_of.size()).first->second;
    }
    std::vector<std::map<std::size_t, double>> weight(link.size());
    for (std::size_t f = 0; f < flow.size(); ++f)
      for (const FlowUse& use : table.uses_of(table.flows[f]))
        if (use.weight > 0) weight[use.link][flow[f]] += use.weight;
    std::map<std::tuple<double, std::uint64_t, std::map<std::size_t, double>>, std::size_t> l_of;
    for (std::size_t l = 0; l < link.size(); ++l)
      link[l] =
          l_of.try_emplace({table.links[l].capacity, table.links[l].colour, weight[l]}, l_of.size())
              .first->second;
    if (f_of.size() == flows && l_of.size() == links) return {flows, links};
    flows = f_of.size();
    links = l_of.size();
  }
}

// When whole colours start and stop and whole colours of links change their capacity.
struct FlowSchedule {
  std::map<std::uint64_t, Ticks> start, stop;
  std::map<std::uint64_t, std::pair<Ticks, double>> capacity;
};

FlowSchedule random_schedule(RandomStream& random, const FlowTable& table) {
  FlowSchedule schedule;
  const auto time = [&] { return Ticks{static_cast<std::int64_t>(random.below(100'000'000))}; };
  for (const FlowEntry& flow : table.flows) {
    schedule.start.try_emplace(flow.colour, random.below(2) == 0 ? time() : Ticks{});
    if (random.below(40) == 0) schedule.stop.try_emplace(flow.colour, time() + Ticks{100'000'000});
  }
  for (const LinkEntry& link : table.links)
    if (random.below(40) == 0)
      schedule.capacity.try_emplace(link.colour, time(), 20e9 * random.uniform());
  return schedule;
}

struct Timeline {
  std::vector<std::int64_t> end;                  // -1: none
  std::vector<std::vector<std::uint64_t>> rates;  // at each of some instants, by flow
  std::uint64_t solves = 0;
};

Timeline play(const FlowTable& table, const FlowSchedule& schedule) {
  FlowClock clock(table);
  Timeline timeline;
  timeline.end.assign(table.flows.size(), -1);
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    clock.start(f, schedule.start.at(table.flows[f].colour));
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    if (const auto at = schedule.stop.find(table.flows[f].colour); at != schedule.stop.end())
      clock.stop(f, at->second);
  for (LinkIndex l = 0; l < table.links.size(); ++l)
    if (const auto at = schedule.capacity.find(table.links[l].colour);
        at != schedule.capacity.end())
      clock.set_capacity(l, at->second.second, at->second.first);
  for (Ticks until = {1'000'000}; until.ps < 1'000'000'000'000'000; until = until * 10) {
    while (const auto end = clock.next_until(until)) timeline.end[end->flow] = end->time.ps;
    std::vector<std::uint64_t>& rates = timeline.rates.emplace_back();
    for (FlowIndex f = 0; f < table.flows.size(); ++f)
      rates.push_back(bits(clock.solver().rate(f)));
  }
  timeline.solves = clock.solves();
  return timeline;
}

}  // namespace

TEST_CASE("law 5: folded equals unfolded, to the picosecond and to the bit") {
  CHECK(holds([](RandomStream& random) {
    const FlowTable table = random_symmetric_table(random);
    const Folded folded = fold(table);
    const FlowSchedule schedule = random_schedule(random, table);
    const Timeline whole = play(table, schedule), part = play(folded.table, schedule);
    RC_ASSERT(whole.solves == part.solves);
    for (FlowIndex f = 0; f < table.flows.size(); ++f) {
      const FlowIndex c = folded.flow_class[f];
      RC_ASSERT(whole.end[f] == part.end[c]);
      for (std::size_t i = 0; i < whole.rates.size(); ++i)
        RC_ASSERT(whole.rates[i][f] == part.rates[i][c]);
    }
  }));
}

TEST_CASE("the folding is the coarsest, counts add up, and folding again changes nothing") {
  CHECK(holds([](RandomStream& random) {
    FlowTable table = random_symmetric_table(random);
    for (FlowEntry& flow : table.flows) flow.count = static_cast<double>(1 + random.below(3));
    const Folded folded = fold(table);
    const auto [flows, links] = coarsest(table);
    RC_ASSERT(folded.table.flows.size() == flows);
    RC_ASSERT(folded.table.links.size() == links);
    RC_ASSERT(is_quotient(table, folded));
    double count = 0, expected = 0, crossing = 0, expected_crossing = 0;
    for (const FlowEntry& flow : table.flows) {
      expected += flow.count;
      for (const FlowUse& use : table.uses_of(flow)) expected_crossing += use.weight;
    }
    for (const FlowEntry& flow : folded.table.flows) {
      count += flow.count;
      for (const FlowUse& use : folded.table.uses_of(flow))
        crossing += use.weight * folded.table.links[use.link].count;
    }
    RC_ASSERT(count == expected);
    RC_ASSERT(crossing == expected_crossing);  // exact: weights are whole units
    RC_ASSERT(fold(folded.table).table.flows.size() == flows);
    for (FlowIndex c = 0; c < flows; ++c)
      RC_ASSERT(folded.flow_class[folded.representative[c]] == c);
  }));
}

TEST_CASE("folding leaves what one fault makes different") {
  FlowTable table = two_tier_all_to_all(32, 8, 4, 50e9, 1e6);
  const Folded healthy = fold(table);
  CHECK(healthy.table.flows.size() == 2);  // under a leaf, and across
  CHECK(healthy.table.links.size() == 2);  // NICs, in or out alike, and uplinks or downlinks
  CHECK(healthy.table.links[0].count == 64);
  CHECK(healthy.table.flows[0].count + healthy.table.flows[1].count == 1024);
  table.links[64].capacity /= 2;  // one of leaf 0's four uplinks
  const Folded faulty = fold(table);
  // Across: from leaf 0, to leaf 0, between others. Within: leaf 0, others.
  CHECK(faulty.table.flows.size() == 5);
  // NICs: leaf 0 and others, out and in. Up: broken, leaf 0's others, others. Down: to leaf 0 and
  // to others. Spines do not tell apart what flows spread over all of them.
  CHECK(faulty.table.links.size() == 9);
}

TEST_CASE("a ring with one slow link folds into its two halves") {
  FlowTable table;
  for (LinkIndex i = 0; i < 1000; ++i) table.add_link(i == 0 ? 0.5 : 1);
  for (LinkIndex i = 0; i < 1000; ++i)
    table.add_flow({}, std::vector<FlowUse>{{i, 1}, {(i + 1) % 1000, 1}});
  const Folded folded = fold(table);
  CHECK(folded.table.flows.size() == 500);
  CHECK(folded.table.links.size() == 501);
  CHECK(folded.rounds > 400);
}

TEST_CASE("wrong foldings are found out") {
  const FlowTable table = two_tier_all_to_all(6, 2, 2, 50e9, 1e6);
  const Folded right = fold(table);
  CHECK(is_quotient(table, right));
  const auto wrong = [&](auto change) {
    Folded folded = right;
    change(folded);
    return !is_quotient(table, folded);
  };
  CHECK(wrong([](Folded& f) { f.flow_class[1] = f.flow_class[1] == 0 ? 1 : 0; }));
  CHECK(wrong([](Folded& f) { f.link_class[0] = f.link_class[12]; }));
  CHECK(wrong([](Folded& f) { f.table.uses[0].weight += weight_unit; }));
  CHECK(wrong([](Folded& f) { f.table.uses[1].link = f.table.uses[2].link; }));
  CHECK(wrong([](Folded& f) { f.table.links[0].capacity += 1; }));
  CHECK(wrong([](Folded& f) { f.table.flows[0].bytes += 1; }));
  CHECK(wrong([](Folded& f) { f.table.flows[0].priority += 1; }));
  CHECK(wrong([](Folded& f) { f.table.flows[0].uses -= 1; }));
  // All links as one class: capacities are equal, weights are not.
  FlowTable pair;
  pair.add_link(1), pair.add_link(1);
  pair.add_flow({}, std::vector<FlowUse>{{0, 1}, {1, 0.5}});
  Folded merged = {.table = {}, .flow_class = {0}, .link_class = {0, 0}, .representative = {0}};
  merged.table.add_link(1, 2);
  merged.table.add_flow({}, std::vector<FlowUse>{{0, 1}});
  CHECK_FALSE(is_quotient(pair, merged));
  CHECK(fold(pair).table.links.size() == 2);
  // Two flows as one class, of which one uses the link.
  FlowTable apart;
  apart.add_link(1);
  apart.add_flow({.cap = 1}, std::vector<FlowUse>{{0, 1}});
  apart.add_flow({.cap = 1}, {});
  merged = {.table = {}, .flow_class = {0, 0}, .link_class = {0}, .representative = {0}};
  merged.table.add_link(1);
  merged.table.add_flow({.cap = 1, .count = 2}, std::vector<FlowUse>{{0, 1}});
  CHECK_FALSE(is_quotient(apart, merged));
  CHECK(fold(apart).table.flows.size() == 2);
}

TEST_CASE("weights that are equal modulo high powers of two are told apart") {
  // Sums of 64 bits would lose all but 12 bits of these and merge about ten of the links.
  FlowTable table;
  for (std::uint64_t l = 0; l < 300; ++l)
    table.add_flow({.colour = l}, std::vector<FlowUse>{{table.add_link(1), 0x1.0p22}});
  CHECK(fold(table).table.links.size() == 300);
}

TEST_CASE("empty tables and links without flows fold too") {
  CHECK(fold({}).table.flows.empty());
  FlowTable table;
  table.add_link(1), table.add_link(1), table.add_link(2);
  const LinkIndex used = table.add_link(1);
  table.add_flow({}, std::vector<FlowUse>{{used, 1}, {0, 0}});  // weight 0 is no use
  const Folded folded = fold(table);
  CHECK(folded.table.links.size() == 3);
  CHECK(folded.link_class[0] == folded.link_class[1]);
  CHECK(folded.table.links[0].count == 2);
  CHECK(folded.table.flows[0].uses == 1);
}
