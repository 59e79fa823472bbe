// Holds the peak of a machine's racks against what a site's racks may draw.
#include "sim/outcome/rack_fit.h"

#include <fmt/format.h>

namespace orrery {

std::string rack_misfit(const Cluster& cluster, const BillFacts& facts, const Bill& bill) {
  if (bill.ownership != Ownership::buy || !cluster.device.price_includes.scale_up ||
      !facts.site.rack_power.known() || bill.power.size() < 2 || bill.bought < 1)
    return "";
  const double domain = static_cast<double>(cluster.fabric.scale_up.domain);
  // Accelerators and hosts come first: they are what stands in the rack.
  const double one = (bill.power[0].peak.value + bill.power[1].peak.value).si() * domain /
                     static_cast<double>(bill.bought);
  if (one <= facts.site.rack_power.get().si()) return "";
  return fmt::format("one rack may draw {}, the site's racks {}", to_text(Watts(one)),
                     to_text(facts.site.rack_power.get()));
}

}  // namespace orrery
