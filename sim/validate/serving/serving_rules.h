// SPDX-License-Identifier: Apache-2.0
// Leaves rows out of serving tables that no simulator can be judged by, in a fixed order.
#pragma once

#include <vector>

#include "sim/validate/serving/serving_case.h"
#include "sim/validate/serving/serving_catalogue.h"
#include "sim/validate/serving/speculation_labels.h"

namespace orrery {

// R3: no concurrency.
void drop_without_concurrency(ServingCases& cases);
// R4: the accelerators of a disaggregated deployment added up.
void drop_sums(ServingCases& cases);
// R5: disaggregated, without the numbers of workers.
void drop_without_workers(ServingCases& cases);
// R6: the layout or the batch does not fit the accelerators.
void drop_unfit_layouts(ServingCases& cases);
// R13: throughput and latency, or total and throughput of one accelerator, contradict each other.
void drop_contradicting_throughput(ServingCases& cases);
// R15: stages of a load that is not told.
void drop_without_load(ServingCases& cases);
// R17: accelerators that were capped in power.
void drop_capped(ServingCases& cases);
// What is known of rows from a table that does not ship (R14, R18).
void apply_known(ServingCases& cases, const ServingCatalogue& catalogue);

// All rules, in order; the first that leaves a row out is kept.
void apply_serving_rules(ServingCases& cases, const ServingCatalogue& catalogue,
                         const std::vector<SpeculationLabel>& labels);

}  // namespace orrery
