// SPDX-License-Identifier: Apache-2.0
// Bills a network and its power: switches, NICs, transceivers and cables, unknowns named.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/price/optics.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/units/sourced.h"
#include "topologies/parts.h"

namespace orrery {

enum class BillGroup : std::uint8_t { scale_up_switch, switch_, nic, transceiver, cable };
inline constexpr int bill_group_count = enumerator_count<BillGroup>();
std::string_view to_text(BillGroup);

// Equal parts. Price and power are of one; absent ones say why in `reason`.
struct BillLine {
  BillGroup group = BillGroup::switch_;
  std::string item;  // what it is there for: "leaf", "nic to leaf", "NIC"
  std::string part;  // name in the catalogue; empty: the wiring does not name it
  std::string title;
  std::int64_t count = 0;
  Sourced<Dollars> price;
  Sourced<Watts> power;
};

// The known part of a sum. Low and high add the lows and the highs: the bounds if all estimates
// miss to the same side. A value without a range counts as itself.
template <class Q>
struct BillSum {
  Q value = {}, low = {}, high = {};
  std::vector<std::string> unknown;  // what is left out, in the order of the lines
};
struct BillTotal {
  BillSum<Dollars> price;
  BillSum<Watts> power;
};

struct NetworkBill {
  std::int64_t accelerators = 0;
  std::vector<BillLine> lines;     // none with a count of 0
  std::vector<std::string> notes;  // what the choice of parts assumes
  BillTotal total() const;
  BillTotal total(BillGroup group) const;
  bool has(BillGroup group) const;
};

// Whether switches of this role (of SwitchCount) are outside the scale-up domains.
bool is_scale_out_role(std::string_view role);
bool is_scale_up_run(const CableRun& run);  // neither end at a NIC or a switch of that kind

// Parts by name from the catalogue of machines; a name that is not in it is an unknown, not an
// Error: wirings may name parts of their own. Ends in switches with co-packaged optics and in
// optical circuit switches need no transceiver.
// `optics`: as load_optics() gives them; many bills read them once.
NetworkBill network_bill(const Fabric& fabric, const FabricParts& parts);
NetworkBill network_bill(const Fabric& fabric, const FabricParts& parts,
                         const std::vector<Optic>& optics);

}  // namespace orrery
