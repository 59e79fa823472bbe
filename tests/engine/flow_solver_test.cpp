// SPDX-License-Identifier: Apache-2.0
// Checks laws 3 and 4 on random flows, and that a partial solve is the whole one to the bit.
#include "sim/engine/flows/solver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <optional>

#include <catch2/catch.hpp>

#include "tests/engine/random_flows.h"

using namespace orrery;

namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

void start_all(FlowSolver& solver, const FlowTable& table) {
  for (FlowIndex f = 0; f < table.flows.size(); ++f) solver.start(f);
  solver.solve();
}

// A link's load, from the table and not from what the solver made of it.
std::vector<double> loads(const FlowTable& table, const FlowSolver& solver) {
  std::vector<double> load(table.links.size(), 0);
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    for (const FlowUse& use : table.uses_of(table.flows[f]))
      load[use.link] += use.weight * solver.rate(f);
  return load;
}

// Law 3: no link above its capacity, to rounding.
bool within_capacity(const FlowTable& table, const FlowSolver& solver) {
  const std::vector<double> load = loads(table, solver);
  for (LinkIndex l = 0; l < load.size(); ++l)
    if (!(load[l] <= solver.capacity(l) * (1 + 1e-9))) return false;
  return true;
}

// Law 4: a flow runs at its cap, or has a link that flows of its and higher priorities fill and on
// which no flow of its priority is faster (one of a higher priority may be).
bool is_max_min(const FlowTable& table, const FlowSolver& solver) {
  for (FlowIndex f = 0; f < table.flows.size(); ++f) {
    const FlowEntry& flow = table.flows[f];
    if (!solver.running(f)) continue;
    if (solver.rate(f) > flow.cap) return false;
    bool certified = solver.rate(f) == flow.cap;
    for (const FlowUse& use : table.uses_of(flow)) {
      if (use.weight == 0) continue;
      double load = 0;
      bool greatest = true;
      for (FlowIndex g = 0; g < table.flows.size(); ++g)
        for (const FlowUse& other : table.uses_of(table.flows[g])) {
          const FlowEntry& rival = table.flows[g];
          if (other.link != use.link || other.weight == 0 || rival.priority < flow.priority)
            continue;
          load += other.weight * solver.rate(g);
          if (rival.priority == flow.priority && solver.rate(g) > solver.rate(f)) greatest = false;
        }
      certified |= greatest && load >= solver.capacity(use.link) * (1 - 1e-9);
    }
    if (!certified) return false;
  }
  return true;
}

template <typename Mistake>
bool aborts(Mistake mistake) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    std::freopen("/dev/null", "w", stderr);
    mistake();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST_CASE("flows share a link in equal rates, by weight, and leave the rest to others") {
  FlowTable table;
  const LinkIndex narrow = table.add_link(30), wide = table.add_link(100);
  table.add_flow({}, std::vector<FlowUse>{{narrow, 1}});
  table.add_flow({}, std::vector<FlowUse>{{narrow, 0.5}, {wide, 1}});
  table.add_flow({}, std::vector<FlowUse>{{wide, 1}});
  table.add_flow({.cap = 7}, std::vector<FlowUse>{{wide, 2}});
  FlowSolver solver(table);
  start_all(solver, table);
  CHECK(solver.rate(3) == 7);
  CHECK(solver.rate(0) == 20);
  CHECK(solver.rate(1) == 20);
  CHECK(solver.rate(2) == 66);  // 100 - 20 - 2 x 7
  CHECK(solver.load(wide) == 100);
  solver.stop(2);
  CHECK(solver.solve().empty());  // nobody is slowed by the one that left
  CHECK(solver.rate(2) == 0);
  solver.set_capacity(wide, 20);
  solver.set_capacity(wide, 20);
  CHECK(solver.solve().size() == 3);
  CHECK(solver.rate(1) == 20.0 / 3);
}

TEST_CASE("a lower priority gets what a higher one leaves") {
  FlowTable table;
  const LinkIndex a = table.add_link(10), b = table.add_link(4);
  table.add_flow({.priority = 1}, std::vector<FlowUse>{{a, 1}, {b, 1}});
  table.add_flow({.priority = 0}, std::vector<FlowUse>{{a, 1}});
  table.add_flow({.priority = 0}, std::vector<FlowUse>{{b, 1}});
  FlowSolver solver(table);
  start_all(solver, table);
  CHECK(solver.rate(0) == 4);
  CHECK(solver.rate(1) == 6);
  CHECK(bits(solver.rate(2)) == bits(0.0));  // nothing, not what rounding leaves
}

TEST_CASE("dead links stop their flows and infinite ones limit nothing") {
  FlowTable table;
  const LinkIndex dead = table.add_link(0), endless = table.add_link(infinite),
                  real = table.add_link(8);
  table.add_flow({}, std::vector<FlowUse>{{dead, 1}, {real, 1}});
  table.add_flow({}, std::vector<FlowUse>{{endless, 1}, {real, 1}});
  table.add_flow({.cap = 3}, std::vector<FlowUse>{{endless, 1}});
  table.add_flow({.cap = 5}, {});
  FlowSolver solver(table);
  start_all(solver, table);
  CHECK(solver.rate(0) == 0);
  CHECK(solver.rate(1) == 8);
  CHECK(solver.rate(2) == 3);
  CHECK(solver.rate(3) == 5);
  // A link joins components when it becomes finite and parts them when it becomes infinite.
  solver.set_capacity(endless, 4);
  solver.solve();
  CHECK(solver.rate(1) == 2);
  CHECK(solver.rate(2) == 2);
  solver.set_capacity(endless, infinite);
  CHECK(solver.solve().size() == 2);
  CHECK(solver.rate(1) == 8);
  CHECK(solver.rate(2) == 3);
  solver.set_capacity(dead, 2);
  solver.solve();
  CHECK(solver.rate(0) == 2);
  CHECK(solver.rate(1) == 6);
}

TEST_CASE("the solver aborts on our mistakes") {
  FlowTable table;
  table.add_link(1);
  table.add_flow({}, std::vector<FlowUse>{{0, 1}});
  table.add_flow({}, {});
  FlowSolver solver(table);
  CHECK(aborts([&] { solver.stop(0); }));
  CHECK(aborts([&] { solver.start(0), solver.start(0); }));
  CHECK(aborts([&] { solver.start(1), solver.solve(); }));  // nothing limits it
  CHECK(aborts([&] { solver.set_capacity(0, -1); }));
  CHECK(aborts([&] { solver.set_capacity(0, std::nan("")); }));
  table.uses[0].weight = 1.0 / 3;
  CHECK(aborts([&] { FlowSolver{table}; }));
  table.uses[0] = {.link = 7, .weight = 1};
  CHECK(aborts([&] { FlowSolver{table}; }));
  CHECK_FALSE(aborts([&] { solver.start(0), solver.solve(); }));
}

TEST_CASE("laws 3 and 4: no link above its capacity, and rates are max-min fair") {
  CHECK(holds([](RandomStream& random) {
    const FlowTable table =
        random.below(2) == 0 ? random_table(random) : random_symmetric_table(random);
    FlowSolver solver(table);
    start_all(solver, table);
    RC_ASSERT(within_capacity(table, solver));
    RC_ASSERT(is_max_min(table, solver));
    for (LinkIndex l = 0; l < table.links.size(); ++l) {
      const double load = loads(table, solver)[l];
      RC_ASSERT(std::abs(solver.load(l) - load) <= 1e-9 * load);
    }
  }));
}

TEST_CASE("links that would saturate together but for rounding leave rates max-min fair") {
  CHECK(holds([](RandomStream& random) {
    FlowTable table = random_table(random, 8, 30);
    for (FlowEntry& flow : table.flows) flow.priority = 0;
    tie_links(table, 1e9 * (1 + random.uniform()));
    FlowSolver solver(table);
    start_all(solver, table);
    RC_ASSERT(within_capacity(table, solver));
    RC_ASSERT(is_max_min(table, solver));
  }));
}

TEST_CASE("a partial solve is the whole one to the bit, whatever came before") {
  CHECK(holds([](RandomStream& random) {
    FlowTable table = random_table(random, 16, 30);
    FlowSolver solver(table);
    std::vector<double> reported(table.flows.size(), 0);
    for (int step = 0; step < 12; ++step) {
      for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
        const auto f = static_cast<FlowIndex>(random.below(table.flows.size()));
        const auto l = static_cast<LinkIndex>(random.below(table.links.size()));
        if (random.below(4) == 0 && std::isfinite(solver.capacity(l)))
          solver.set_capacity(l, table.links[l].capacity = 1e9 * random.uniform());
        else if (solver.running(f))
          solver.stop(f), reported[f] = 0;
        else
          solver.start(f);
      }
      const auto changed = solver.solve();
      RC_ASSERT(std::is_sorted(changed.begin(), changed.end()));
      for (const FlowIndex f : changed) {
        RC_ASSERT(bits(reported[f]) != bits(solver.rate(f)));
        reported[f] = solver.rate(f);
      }
      FlowSolver whole(table);
      for (FlowIndex f = 0; f < table.flows.size(); ++f)
        if (solver.running(f)) whole.start(f);
      whole.solve();
      for (FlowIndex f = 0; f < table.flows.size(); ++f) {
        RC_ASSERT(bits(solver.rate(f)) == bits(whole.rate(f)));
        RC_ASSERT(bits(reported[f]) == bits(solver.rate(f)));  // every change is reported
      }
    }
  }));
}

TEST_CASE("flows that leave leave the others the rates of a whole solve, to the bit") {
  CHECK(holds([](RandomStream& random) {
    FlowTable table = random_table(random, 20, 60);
    for (FlowEntry& flow : table.flows) flow.priority = 0;
    if (random.below(2) == 0) tie_links(table, 1e9 * (1 + random.uniform()));
    FlowSolver solver(table);
    start_all(solver, table);
    std::vector<FlowIndex> running(table.flows.size());
    std::iota(running.begin(), running.end(), FlowIndex{0});
    // In any order, or the fastest first, as equal sizes end.
    const bool by_rate = random.below(2) == 0;
    while (!running.empty()) {
      const auto fastest = std::max_element(
          running.begin(), running.end(),
          [&](FlowIndex a, FlowIndex b) { return solver.rate(a) < solver.rate(b); });
      const auto leaves =
          by_rate ? fastest
                  : running.begin() + static_cast<std::ptrdiff_t>(random.below(running.size()));
      solver.stop(*leaves);
      running.erase(leaves);
      if (random.below(3) == 0) continue;
      solver.solve();
      FlowSolver whole(table);
      for (const FlowIndex f : running) whole.start(f);
      whole.solve();
      for (const FlowIndex f : running) RC_ASSERT(bits(solver.rate(f)) == bits(whole.rate(f)));
    }
  }));
}

TEST_CASE("those that are slower than whoever leaves are not looked at") {
  FlowTable table;
  const LinkIndex narrow = table.add_link(1), wide = table.add_link(10), own = table.add_link(5);
  table.add_flow({}, std::vector<FlowUse>{{narrow, 1}, {wide, 1}});
  table.add_flow({}, std::vector<FlowUse>{{wide, 1}});
  table.add_flow({}, std::vector<FlowUse>{{wide, 1}, {own, 2}});
  FlowSolver solver(table);
  start_all(solver, table);
  CHECK(solver.rate(1) == 6.5);
  solver.stop(1);
  CHECK(solver.solve().empty());
  CHECK(solver.solved_flows() == 0);
  solver.stop(0);
  solver.solve();
  CHECK(solver.solved_flows() == 1);
  CHECK(solver.rate(2) == 2.5);
}

TEST_CASE("only the component that changed is solved") {
  FlowTable table;
  const LinkIndex endless = table.add_link(infinite);  // joins nothing
  for (int i = 0; i < 20; ++i) {
    const LinkIndex link = table.add_link(10);
    for (int j = 0; j < 3; ++j) table.add_flow({}, std::vector<FlowUse>{{link, 1}, {endless, 1}});
  }
  FlowSolver solver(table);
  start_all(solver, table);
  CHECK(solver.solved_flows() == 60);
  solver.stop(31);
  CHECK(solver.solve().size() == 2);
  CHECK(solver.solved_flows() == 2);
  CHECK(solver.solve().empty());
  CHECK(solver.solved_flows() == 0);
}
