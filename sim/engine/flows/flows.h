// SPDX-License-Identifier: Apache-2.0
// Lays out flows and links as plain tables: what the max-min solver and the folding work on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/units/units.h"

namespace orrery {

// Weights are whole numbers of this unit: sums of them are exact in any order as integers.
inline constexpr double weight_unit = 0x1.0p-30;

// A weight in units. Aborts when it is negative, no multiple of the unit or above 2^22.
inline std::int64_t weight_units(double weight) {
  const double units = weight * 0x1.0p30;
  ORRERY_CHECK(units >= 0 && units <= 0x1.0p52, "a weight lies out of range");
  const auto whole = static_cast<std::int64_t>(units);
  ORRERY_CHECK(static_cast<double>(whole) == units, "a weight is no multiple of 2^-30");
  return whole;
}

using LinkIndex = std::uint32_t;
using FlowIndex = std::uint32_t;

// One flow entry on one link entry. `weight` is what one link of the entry carries, in bytes per
// byte of one flow of the entry, summed over the entry's flows on that link. A multiple of 2^-30
// (topologies/routing/routing.h), so that sums are exact in any order. A use of weight 0 is no use.
struct FlowUse {
  LinkIndex link = 0;
  double weight = 1;
};

// Entries stand for `count` flows (links) that nothing tells apart; unfolded tables have counts 1.
struct FlowEntry {
  double bytes = infinite;    // of one flow; infinite: background
  double cap = infinite;      // B/s: a private link of one flow
  std::int32_t priority = 0;  // higher is served first
  std::uint64_t colour = 0;   // flows of different colours are never folded together
  double count = 1;
  std::uint32_t first_use = 0, uses = 0;  // in FlowTable::uses
};
struct LinkEntry {
  double capacity = 0;  // B/s of one link
  std::uint64_t colour = 0;
  double count = 1;
};
struct FlowTable {
  std::vector<FlowEntry> flows;
  std::vector<FlowUse> uses;
  std::vector<LinkEntry> links;

  std::span<const FlowUse> uses_of(const FlowEntry& f) const {
    return std::span(uses).subspan(f.first_use, f.uses);
  }
  LinkIndex add_link(double capacity, double count = 1, std::uint64_t colour = 0) {
    links.push_back({.capacity = capacity, .colour = colour, .count = count});
    return static_cast<LinkIndex>(links.size() - 1);
  }
  FlowIndex add_flow(FlowEntry flow, std::span<const FlowUse> with) {
    flow.first_use = static_cast<std::uint32_t>(uses.size());
    flow.uses = static_cast<std::uint32_t>(with.size());
    uses.insert(uses.end(), with.begin(), with.end());
    flows.push_back(flow);
    return static_cast<FlowIndex>(flows.size() - 1);
  }
};

}  // namespace orrery
