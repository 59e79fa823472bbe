// SPDX-License-Identifier: Apache-2.0
// Knows whether a site's racks can feed and cool those of a machine.
#pragma once

#include <string>

#include "sim/outcome/money/bill.h"

namespace orrery {

// What one rack of machines that are sold as whole racks draws at its peak; 0 for others, for
// rented ones, and where the site's limit is not known. `bill` is one of the cluster at the site of
// `facts`.
Watts rack_peak(const Cluster& cluster, const BillFacts& facts, const Bill& bill);

// "one rack may draw 135 kW, the site's racks 40 kW (20 kW to 60 kW)", where that is more than any
// rack of the site may, at the upper end of its range; else empty.
std::string rack_misfit(const Cluster& cluster, const BillFacts& facts, const Bill& bill);
// The same where it is more than the site's value, whatever its range.
std::string rack_excess(const Cluster& cluster, const BillFacts& facts, const Bill& bill);

}  // namespace orrery
