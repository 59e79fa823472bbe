// SPDX-License-Identifier: Apache-2.0
// Holds the peak of a machine's racks against what a site's racks may draw.
#include "sim/outcome/money/rack_fit.h"

#include <fmt/format.h>

namespace orrery {

Watts rack_peak(const Cluster& cluster, const BillFacts& facts, const Bill& bill) {
  if (bill.ownership != Ownership::buy || !cluster.device.price_includes.scale_up ||
      !facts.site.rack_power.known() || bill.power.size() < 2 || bill.bought < 1)
    return {};
  // Accelerators and hosts come first: they are what stands in the rack.
  return (bill.power[0].peak.value + bill.power[1].peak.value) *
         (static_cast<double>(cluster.fabric.scale_up.domain) / static_cast<double>(bill.bought));
}

std::string rack_excess(const Cluster& cluster, const BillFacts& facts, const Bill& bill) {
  const Watts peak = rack_peak(cluster, facts, bill);
  const Sourced<Watts>& rack = facts.site.rack_power;
  if (peak <= Watts(0) || peak <= rack.get()) return "";
  const std::string range =
      rack.low && rack.high ? fmt::format(" ({} to {})", to_text(*rack.low), to_text(*rack.high))
                            : "";
  return fmt::format("one rack may draw {}, the site's racks {}{}", to_text(peak),
                     to_text(rack.get()), range);
}

std::string rack_misfit(const Cluster& cluster, const BillFacts& facts, const Bill& bill) {
  const Watts peak = rack_peak(cluster, facts, bill);
  const Sourced<Watts>& rack = facts.site.rack_power;
  if (peak <= Watts(0) || peak <= rack.high.value_or(rack.get())) return "";
  return rack_excess(cluster, facts, bill);
}

}  // namespace orrery
