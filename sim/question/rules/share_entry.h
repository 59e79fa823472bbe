// SPDX-License-Identifier: Apache-2.0
// Reads whether jobs that ask for parts of a GPU share one.
#pragma once

#include "hw_models/colocation.h"
#include "sim/base/json/json.h"
#include "sim/engine/fleet/fleet_question.h"

namespace orrery {

// Setting share; without it they do, if some job asks for a part (`parts`). `question` has its
// rules, its place and its limits of power. Errors: no such job; rules that know whole GPUs alone.
GpuShare read_share(const JsonValue& settings, bool parts, const FleetQuestion& question);

// Setting sharing; without it processes take turns. Error where no entry says what its jobs ask of
// a GPU (`uses`).
DeviceShare read_sharing(const JsonValue& settings, bool uses);

// {"busy": 0.6, "kernel": "40 us"}: what a job asks of a GPU that it has alone. Errors: a share of
// time that is not above 0 and at most 1, a time that is not above 0.
DeviceUse read_gpu_use(const JsonValue& at);

}  // namespace orrery
