// SPDX-License-Identifier: Apache-2.0
// Knows how reasons are written for machines.
#pragma once

#include "sim/base/json/tree.h"
#include "sim/explain/reasons.h"

namespace orrery {

Json reasons_json(const Reasons& reasons);
Json rival_json(const Rival& rival);

}  // namespace orrery
