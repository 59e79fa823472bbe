// SPDX-License-Identifier: Apache-2.0
// Knows how reasons are written for machines.
#pragma once

#include "sim/advise/reasons.h"
#include "sim/base/json_document.h"

namespace orrery {

nlohmann::ordered_json reasons_json(const Reasons& reasons);
nlohmann::ordered_json rival_json(const Rival& rival);

}  // namespace orrery
