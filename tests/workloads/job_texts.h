// SPDX-License-Identifier: Apache-2.0
// Holds lists of jobs that several tests read.
#pragma once

#include <string>

namespace orrery {

inline const std::string json_text =
    "{\"id\": \"x\", \"submit_s\": 10, \"length_s\": 20, \"gpus\": 4, \"limit_s\": 30, "
    "\"queue\": \"big|fast\", \"user\": \"ann\", \"fate\": \"failed\"}\n"
    "\n"
    "{\"id\": 7, \"submit_s\": 12.5000015, \"length_s\": 0, \"gpus\": 1, \"user\": null}\n"
    "{\"id\": \"z\", \"submit_s\": 10, \"length_s\": 1e3, \"gpus\": 8, \"queue\": \"big|fast\"}\n";

}  // namespace orrery
