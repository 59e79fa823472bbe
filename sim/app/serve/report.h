// SPDX-License-Identifier: Apache-2.0
// Says what a deployment does with its traffic, to people and to machines.
#pragma once

#include <string>

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/serve/serve.h"

namespace orrery {

// One point in full; several as a table with the best of them marked.
Document service_document(const Served& served, std::size_t width);
Json service_json(const ServedPoint& point);
// Which point bears the load that was asked for, in a sentence; "" and null where none was.
std::string load_sentence(const Served& served);
Json load_json(const Served& served);
// A row for each request: arrival, waits, lengths, times.
std::string requests_csv(const ServedPoint& point);

}  // namespace orrery
