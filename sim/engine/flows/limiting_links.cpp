// SPDX-License-Identifier: Apache-2.0
// Sums what flows put on links that were left out.
#include "sim/engine/flows/limiting_links.h"

namespace orrery {
namespace {

constexpr std::uint32_t nothing = UINT32_MAX;
// Sums of a million terms round by less than this share.
constexpr double load_margin = 0x1.0p-20;

bool may_fill(double load, const LinkEntry& link) {
  return load > link.capacity * (1 - load_margin);
}

// The use whose link gives a flow least; nothing: no finite link.
std::uint32_t narrowest(const FlowTable& table, const FlowEntry& flow) {
  std::uint32_t found = nothing;
  double least = infinite;
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.uses; ++u) {
    const FlowUse& use = table.uses[u];
    if (!(use.weight > 0)) continue;
    const double rate = table.links[use.link].capacity / use.weight;
    if (rate >= least) continue;
    least = rate;
    found = u;
  }
  return found;
}

std::vector<double> loads_of(const FlowTable& table, std::span<const double> rates) {
  std::vector<double> loads(table.links.size(), 0);
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    for (const FlowUse& use : table.uses_of(table.flows[f]))
      loads[use.link] += use.weight * rates[f];
  return loads;
}

}  // namespace

// A first guess: flows share the narrowest of their links with those that it is narrowest for.
FlowTable LimitingLinks::of(const FlowTable& table) {
  counts_.resize(table.links.size(), 0);
  std::vector<std::uint32_t> at;
  std::vector<double> weights(table.links.size(), 0);
  for (const FlowEntry& flow : table.flows) {
    at.push_back(narrowest(table, flow));
    if (at.back() == nothing) continue;
    const FlowUse& use = table.uses[at.back()];
    weights[use.link] += use.weight;
    counts_[use.link] = 1;
  }
  std::vector<double> rates(table.flows.size(), 0);
  for (FlowIndex f = 0; f < table.flows.size(); ++f) {
    if (at[f] == nothing) continue;
    const LinkIndex link = table.uses[at[f]].link;
    rates[f] = table.links[link].capacity / weights[link];
  }
  missed(table, rates);
  FlowTable out{.flows = table.flows, .uses = {}, .links = table.links};
  for (FlowEntry& flow : out.flows) {
    const std::span<const FlowUse> all = table.uses_of(flow);
    flow.first_use = static_cast<std::uint32_t>(out.uses.size());
    for (const FlowUse& use : all)
      if (counts_[use.link]) out.uses.push_back(use);
    flow.uses = static_cast<std::uint32_t>(out.uses.size()) - flow.first_use;
  }
  return out;
}

bool LimitingLinks::missed(const FlowTable& table, std::span<const double> most) {
  const std::vector<double> loads = loads_of(table, most);
  counts_.resize(loads.size(), 0);
  bool some = false;
  for (LinkIndex l = 0; l < loads.size(); ++l) {
    if (counts_[l] || !may_fill(loads[l], table.links[l])) continue;
    counts_[l] = 1;
    some = true;
  }
  return some;
}

}  // namespace orrery
