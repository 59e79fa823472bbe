// SPDX-License-Identifier: Apache-2.0
// Knows how a job is read from settings: what each task takes, and what it has no use for.
#pragma once

#include "sim/base/json/json.h"
#include "workloads/layout/job.h"
#include "workloads/model/model.h"

namespace orrery {

inline constexpr std::int64_t most_of_a_count = 1'000'000'000;

// Keys that the task or the model would ignore are Errors.
Job read_job(const JsonValue& settings, const Model& model);

// Errors at the first of the job's keys in `like` that makes its job differ from the one asked for.
void check_same_job(const JsonValue& like, const Job& now, const Job& asked);

}  // namespace orrery
