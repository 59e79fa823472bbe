// SPDX-License-Identifier: Apache-2.0
// Draws the steps of served engines for Perfetto.
#pragma once

#include <string>

#include "sim/outcome/serving/service.h"

namespace orrery {

// A process for each engine, a track in it for each batch of a pipeline, a slice for steps that are
// alike; counters of requests that run and wait. In order of time.
std::string service_trace(const ServiceCase& asked, const StepLog& log);

}  // namespace orrery
