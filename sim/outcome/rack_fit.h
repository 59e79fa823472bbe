// Knows whether a site's racks can feed and cool those of a machine.
#pragma once

#include <string>

#include "sim/outcome/bill.h"

namespace orrery {

// "one rack may draw 135 kW, the site's racks 60 kW", where machines that are sold as whole racks
// draw more at their peak than a rack of the site may; else, and where the site's limit is not
// known or the machines are rented, empty. `bill` is one of the cluster at the site of `facts`.
std::string rack_misfit(const Cluster& cluster, const BillFacts& facts, const Bill& bill);

}  // namespace orrery
