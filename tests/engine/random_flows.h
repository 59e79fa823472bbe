// SPDX-License-Identifier: Apache-2.0
// Knows random flows and links for the laws of the solver, the clock and the folding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "sim/base/random.h"
#include "sim/engine/flows/flows.h"
#include "tests/base/fresh_seed.h"

// After the engine's headers: RapidCheck's printing would take part of them else.
#include <rapidcheck.h>

namespace orrery {

// Whether law(RandomStream&), which asserts by RC_ASSERT, holds for 100 seeds, 20 times each.
template <typename Law>
bool holds(Law law) {
  return rc::check([&] {
    const std::uint64_t seed = *rc::gen::arbitrary<std::uint32_t>();
    for (std::uint64_t i = 0; i < 20; ++i) {
      RandomStream random(fresh(seed), i);
      law(random);
    }
  });
}

// A share of 1/n as routes give it: the nearest multiple of 2^-30, not 0.
inline double share_of(std::uint64_t n) {
  return std::max(1.0, std::nearbyint(0x1.0p30 / static_cast<double>(n))) * weight_unit;
}

// Gives every link nearly, but for rounding, the same rate for its flows to share.
inline void tie_links(FlowTable& table, double rate) {
  std::vector<double> weight(table.links.size(), 0);
  for (const FlowUse& use : table.uses) weight[use.link] += use.weight;
  for (std::size_t l = 0; l < weight.size(); ++l)
    if (std::isfinite(table.links[l].capacity)) table.links[l].capacity = rate * weight[l];
}

// Anything: capacities from few values (ties) or many, 0 among them, shared and lonely links, caps,
// priorities, weights under and over 1, a link twice in a flow, background flows.
inline FlowTable random_table(RandomStream& random, std::uint64_t most_links = 12,
                              std::uint64_t most_flows = 24) {
  FlowTable table;
  const std::uint64_t links = 1 + random.below(most_links), flows = 1 + random.below(most_flows);
  const bool ties = random.below(2) == 0, priorities = random.below(3) == 0;
  for (std::uint64_t l = 0; l < links; ++l) {
    double capacity =
        ties ? 25e9 * static_cast<double>(1 + random.below(3)) : 1e9 * (1 + 99 * random.uniform());
    if (random.below(40) == 0) capacity = 0;
    if (random.below(40) == 0) capacity = std::numeric_limits<double>::infinity();
    table.add_link(capacity, 1, random.below(2));
  }
  std::vector<LinkIndex> order(links);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint64_t f = 0; f < flows; ++f) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i)
      std::swap(order[i], order[i + random.below(order.size() - i)]);
    std::vector<FlowUse> uses;
    const std::uint64_t length = 1 + random.below(std::min<std::uint64_t>(links, 5));
    bool limited = false;
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t kind = random.below(4);
      const double weight = kind == 0   ? share_of(1 + random.below(9))
                            : kind == 1 ? static_cast<double>(1 + random.below(1000))
                                        : 1;
      uses.push_back({order[i], weight});
      limited |= std::isfinite(table.links[order[i]].capacity);
    }
    if (random.below(20) == 0) uses.push_back({uses[0].link, share_of(3)});
    if (random.below(20) == 0) uses.push_back({order.back(), 0});
    FlowEntry flow;
    flow.bytes = std::floor(std::exp(20 * random.uniform()));
    if (random.below(15) == 0) flow.bytes = std::numeric_limits<double>::infinity();
    if (!limited || random.below(4) == 0) flow.cap = ties ? 5e9 : 2e10 * random.uniform();
    if (priorities) flow.priority = static_cast<std::int32_t>(random.below(3)) - 1;
    table.add_flow(flow, uses);
  }
  if (random.below(3) == 0) tie_links(table, 1e9 * (1 + random.uniform()));
  return table;
}

// `copies` of a table that share the links marked in `shared`; links that are not shared become
// `bundle` parallel ones over which every flow spreads. Capacities of shared links grow.
inline FlowTable replicate(const FlowTable& part, const std::vector<bool>& shared,
                           std::uint32_t copies, std::uint32_t bundle) {
  FlowTable table;
  std::vector<LinkIndex> first_of(part.links.size());
  const auto add = [&](std::size_t l, std::uint32_t count) {
    first_of[l] = static_cast<LinkIndex>(table.links.size());
    for (std::uint32_t i = 0; i < count; ++i)
      table.add_link(part.links[l].capacity / (shared[l] ? 1 : bundle), part.links[l].count,
                     part.links[l].colour);
  };
  for (std::size_t l = 0; l < part.links.size(); ++l)
    if (shared[l]) add(l, 1);
  for (std::uint32_t copy = 0; copy < copies; ++copy) {
    for (std::size_t l = 0; l < part.links.size(); ++l)
      if (!shared[l]) add(l, bundle);
    for (const FlowEntry& flow : part.flows) {
      std::vector<FlowUse> uses;
      for (const FlowUse& use : part.uses_of(flow)) {
        const std::uint32_t members = shared[use.link] ? 1 : bundle;
        const double units = std::ceil(use.weight * 0x1.0p30 / members);
        for (std::uint32_t i = 0; i < members; ++i)
          uses.push_back({first_of[use.link] + i, units * weight_unit});
      }
      table.add_flow(flow, uses);
    }
  }
  return table;
}

// Every endpoint sends to every one (itself too, through its leaf), over leaves of `per_leaf`
// endpoints and `spines` spines, spread over the spines evenly; two tiers, links one by one.
inline FlowTable two_tier_all_to_all(std::uint32_t endpoints, std::uint32_t per_leaf,
                                     std::uint32_t spines, double rate, double bytes) {
  FlowTable table;
  const std::uint32_t leaves = (endpoints + per_leaf - 1) / per_leaf;
  for (std::uint32_t i = 0; i < 2 * endpoints; ++i) table.add_link(rate);            // out, then in
  for (std::uint32_t i = 0; i < 2 * leaves * spines; ++i) table.add_link(2 * rate);  // up, down
  const std::uint32_t up = 2 * endpoints, down = up + leaves * spines;
  std::vector<FlowUse> uses;
  for (std::uint32_t from = 0; from < endpoints; ++from)
    for (std::uint32_t to = 0; to < endpoints; ++to) {
      uses.assign({{from, 1}, {endpoints + to, 1}});
      const std::uint32_t a = from / per_leaf, b = to / per_leaf;
      for (std::uint32_t s = 0; a != b && s < spines; ++s) {
        uses.push_back({up + a * spines + s, share_of(spines)});
        uses.push_back({down + b * spines + s, share_of(spines)});
      }
      table.add_flow({.bytes = bytes}, uses);
    }
  return table;
}

// Tables with much symmetry, and now and then a fault or an odd flow in it.
inline FlowTable random_symmetric_table(RandomStream& random) {
  FlowTable table;
  if (random.below(3) == 0) {
    const auto per_leaf = static_cast<std::uint32_t>(1 + random.below(4));
    table = two_tier_all_to_all(static_cast<std::uint32_t>(2 + random.below(9)), per_leaf,
                                static_cast<std::uint32_t>(1 + random.below(4)),
                                random.below(2) == 0 ? 50e9 : 1e9 * (1 + random.uniform()),
                                std::floor(std::exp(18 * random.uniform())) + 1);
    if (random.below(3) == 0)
      for (FlowEntry& flow : table.flows) flow.cap = 10e9;
  } else {
    table = random_table(random, 5, 5);
    for (std::uint64_t level = 0, levels = 1 + random.below(2); level < levels; ++level) {
      std::vector<bool> shared(table.links.size());
      for (std::size_t l = 0; l < shared.size(); ++l) shared[l] = random.below(3) == 0;
      table = replicate(table, shared, static_cast<std::uint32_t>(1 + random.below(5)),
                        static_cast<std::uint32_t>(1 + random.below(3)));
    }
  }
  for (std::uint64_t faults = random.below(3); faults > 0; --faults) {
    const std::uint64_t kind = random.below(4);
    if (kind == 0) table.flows[random.below(table.flows.size())].bytes = 1 + 1e6 * random.uniform();
    if (kind == 1) table.flows[random.below(table.flows.size())].cap = 1e9;
    if (kind >= 2) {
      LinkEntry& link = table.links[random.below(table.links.size())];
      if (std::isfinite(link.capacity)) link.capacity *= kind == 2 ? 0.5 : random.uniform();
    }
  }
  return table;
}

}  // namespace orrery
