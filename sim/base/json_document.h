// SPDX-License-Identifier: Apache-2.0
// Declares nlohmann's documents. What all units use of them is compiled once, in json_document.cpp.
#pragma once

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
