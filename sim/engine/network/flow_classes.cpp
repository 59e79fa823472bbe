// SPDX-License-Identifier: Apache-2.0
// Knows when classes of flows are worth looking for.
#include "sim/engine/network/flow_classes.h"

#include <cmath>
#include <numeric>

namespace orrery {
namespace {

// Flows that are hashed onto several links that count are hardly ever alike.
constexpr std::size_t most_alike = 6;

}  // namespace

Folded unfolded(const FlowTable& table) {
  Folded f{.table = table};
  f.flow_class.resize(table.flows.size());
  std::iota(f.flow_class.begin(), f.flow_class.end(), FlowIndex{0});
  f.representative = f.flow_class;
  f.link_class.resize(table.links.size());
  std::iota(f.link_class.begin(), f.link_class.end(), LinkIndex{0});
  return f;
}

Folded classes_of(const FlowGround& ground, const FlowTable& limited) {
  const bool unlike = ground.hashed() && limited.uses.size() > most_alike * limited.flows.size();
  return unlike ? unfolded(limited) : fold(limited);
}

std::vector<FlowIndex> one_of_each(const Folded& folded, const FlowRange& range) {
  std::vector<FlowIndex> flows;
  std::vector<char> seen(folded.table.flows.size(), 0);
  for (FlowIndex f = range.first; f < range.last; ++f) {
    if (seen[folded.flow_class[f]]) continue;
    seen[folded.flow_class[f]] = 1;
    flows.push_back(f);
  }
  return flows;
}

void start_background(const FlowTable& table, FlowClock& clock, Ticks now) {
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    if (std::isinf(table.flows[f].bytes)) clock.start(f, now);
}

double rank_bytes(const FlowRange& range, const CollectiveTime& alone) {
  return (range.crosses ? alone.scale_out_bytes : alone.scale_up_bytes).si();
}

}  // namespace orrery
