// SPDX-License-Identifier: Apache-2.0
// Finds rows that are one measurement in several tables, and trials of one run.
#pragma once

#include "sim/validate/serving/serving_case.h"

namespace orrery {

// R1: equal latencies of the same model, machine and load in tables of InferenceX runs.
void drop_repeated_rows(ServingCases& cases);
// The same within TensorRT-LLM's overview: equal throughput.
void drop_repeated_throughput(ServingCases& cases);
// R2: the run that InferenceX's application labels. The row that tells workers stays.
void join_labelled_runs(ServingCases& cases);
// R16: of trials of one run the one with the median TPOT stays.
void drop_trials(ServingCases& cases);

// Five digits of both latencies, machine, family, lengths and load: equal for one measurement.
std::string measurement_key(const ServingCase& c);

}  // namespace orrery
