// SPDX-License-Identifier: Apache-2.0
// Compiles nlohmann's documents for all units: those sorted by key and those in order of insertion.
#include "sim/base/json_document.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
