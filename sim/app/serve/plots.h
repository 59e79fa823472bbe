// SPDX-License-Identifier: Apache-2.0
// Draws latencies of requests and the curve over points with letters.
#pragma once

#include "sim/paper/document.h"
#include "sim/question/serve/serve.h"

namespace orrery {

// How TTFT and TPOT spread over the requests that count.
void add_spread(Document& document, const ServicePrediction& prediction);
// Tokens a GPU against tokens a user; nothing for fewer than three points.
void add_curve(Document& document, const Served& served);

}  // namespace orrery
