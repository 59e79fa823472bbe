// SPDX-License-Identifier: Apache-2.0
// Guesses which links limit flows, and checks the guess against the rates that follow from it.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/flows/flows.h"

namespace orrery {

// Hashed flows cross dozens of links each, few of which ever fill. Without the others rates are the
// same, to the bit, and most flows are alike.
//
// Why it is exact. Of every flow the link that gives it least counts. A link that does not count
// and that the rates so found leave below its capacity, by more than any rounding, would not have
// been saturated by progressive filling either: it fixes no flow, and no level is its own. Where
// rates change over time, the greatest that each flow had stand for them all.
class LimitingLinks {
 public:
  // The table without uses of links that do not count. Flows and links keep their numbers; a table
  // may have grown since the last call.
  FlowTable of(const FlowTable& table);
  // `most`: the greatest rate that each flow had, with of(table). True when links might have been
  // filled that did not count: from now on they do, and what ran has to run again.
  bool missed(const FlowTable& table, std::span<const double> most);

 private:
  std::vector<std::uint8_t> counts_;  // of every link
};

}  // namespace orrery
